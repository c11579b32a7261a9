"""What the management API costs when nobody asks: the same broker with and without it, in turn.

    python -m bench.management                # some minutes
    python -m bench.management --rounds 3     # a first look

Each round publishes (confirmed) and consumes (acknowledged) on a broker with the API and on one
without, which goes first changes. Processor time a message is what to look at, and its least: the
rates of a busy machine say little. Last, both rest with a hundred connections and queues.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench import machine
from bench.load.link import Link
from bench.load.process import run_load
from bench.load.setup import exclusive_queue
from bench.scenarios.throughput import consume, publish

KINDS = {"with": "0", "without": "-1"}  # --management-port
SIZE = 200
REST_S = 12.0  # samples of the past are taken every five seconds


@contextmanager
def running(management_port: str) -> Iterator[tuple[str, int]]:
    """A broker in memory: its URL and process id."""
    command = [sys.executable, "-m", "warren", "broker", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--management-port", management_port], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        match = re.search(r"listens on ([\d.]+:\d+)", process.stdout.readline())
        assert match
        yield f"amqp://guest:guest@{match[1]}/", process.pid
    finally:
        process.terminate()
        process.communicate()


def used_s(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def work(url: str, pid: int, count: int) -> dict[str, float]:
    """A round's figures."""
    before = used_s(pid)
    published = run_load(publish, url=url, body_bytes=SIZE, count=count)["rate"]
    consumed = run_load(consume, url=url, body_bytes=SIZE, count=count)["rate"]
    # Published twice: what is consumed has to be published first.
    cost = (used_s(pid) - before) / count
    return {"publish_per_s": published, "consume_per_s": consumed, "cpu_us": cost * 1e6}


def rest(url: str, pid: int) -> float:
    """Milliseconds of processor time a second, with nothing to do."""
    with ExitStack() as stack:
        for _ in range(100):
            exclusive_queue(stack.enter_context(Link(url)))
        before = used_s(pid)
        time.sleep(REST_S)
        return (used_s(pid) - before) / REST_S * 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.management", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--messages", type=int, default=100_000)
    options = parser.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for number in range(options.rounds):
        for kind in sorted(KINDS, reverse=number % 2 == 0):
            # A process of its own each time: where its objects happen to lie makes a difference.
            with running(KINDS[kind]) as (url, pid):
                rounds[kind].append(work(url, pid, options.messages))
    resting = {}
    for kind, management_port in KINDS.items():
        with running(management_port) as (url, pid):
            resting[kind] = round(rest(url, pid), 2)
    figures = {
        kind: {key: median(each[key] for each in done) for key in done[0]}
        for kind, done in rounds.items()
    }
    result = {
        "machine": machine.describe(),
        "rounds": options.rounds,
        "medians": {
            kind: {key: round(value, 2) for key, value in each.items()}
            for kind, each in figures.items()
        },
        "least_cpu_us": {
            kind: round(min(each["cpu_us"] for each in done), 2) for kind, done in rounds.items()
        },
        "with_to_without": {
            key: round(figures["with"][key] / figures["without"][key], 3) for key in figures["with"]
        },
        "resting_cpu_ms_per_s": resting,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
