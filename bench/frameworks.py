"""Messages a second through a handler that does nothing: warren beside what people use today.

    python -m bench.frameworks [--url amqp://…] [--count 10000] [--rounds 3] [--keep]

Each framework works in one process of its own, set up for speed as its documentation says, with
acknowledgement after the handler (at least once, as ours). The messages are published by the
framework's own client before the clock starts; the clock runs from the first handled message to the
last one, inside the worker. Rounds alternate; medians are compared. One that fails, or takes
longer than ``--limit`` seconds, is named and left out of the rounds that follow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import IO, Any

import pika
from pika.exceptions import AMQPError

from bench import machine, pages
from bench.brokers import launchers
from bench.framework_jobs import FIGURE, FRAMEWORKS, QUEUE
from bench.load.process import ROOT
from bench.model import StartFailed

#: For what a broker does at once, if it is well.
ANSWER_S = 30.0
Rates = dict[str, list[float]]


class Failed(Exception):
    """A framework that did not do its work; the words say why."""


# -- one round -----------------------------------------------------------------------------------
def measure(name: str, url: str, count: int, limit_s: float) -> float:
    """Fill, work, clean up. Returns messages a second."""
    clean(url)
    try:
        _fill(name, url, count, limit_s)
        return _work(name, url, count, limit_s)
    finally:
        clean(url)


def _fill(name: str, url: str, count: int, limit_s: float) -> None:
    with job("fill", name, url, count, limit_s) as (child, errors):
        child.communicate()
        if child.returncode:
            raise Failed(f"could not publish: {_why(child, errors, limit_s)}")
    deadline = time.monotonic() + ANSWER_S
    while (queued := depth(url)) < count:
        if time.monotonic() > deadline:
            raise Failed(f"published {count:,} messages and {queued:,} of them are in the queue")
        time.sleep(0.05)


def _work(name: str, url: str, count: int, limit_s: float) -> float:
    with job("work", name, url, count, limit_s) as (child, errors):
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(FIGURE):
                return float(line.split()[1])
        child.wait()
        left = f"{depth(url):,} of {count:,} messages are still in the queue"
        raise Failed(f"the worker gave no figure, {left}: {_why(child, errors, limit_s)}")


@contextmanager
def job(
    what: str, name: str, url: str, count: int, limit_s: float
) -> Iterator[tuple[subprocess.Popen[str], IO[bytes]]]:
    """A process that is killed when its time is over, and ended when this is left."""
    command = [sys.executable, "-m", "bench.framework_jobs", what, name, url, str(count)]
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        timer = threading.Timer(limit_s, child.kill)
        timer.start()
        try:
            yield child, errors
        finally:
            timer.cancel()
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    assert child.stdout is not None
    child.stdout.close()


def _why(child: subprocess.Popen[str], errors: IO[bytes], limit_s: float) -> str:
    if child.returncode == -9:
        return f"it took more than {limit_s:g} s"
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {child.returncode}"


# -- the broker ----------------------------------------------------------------------------------
def _open(url: str) -> pika.BlockingConnection:
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.blocked_connection_timeout = ANSWER_S
    return pika.BlockingConnection(parameters)


def depth(url: str) -> int:
    """How many messages are in the queue; none if there is no queue."""
    with _open(url) as connection:
        try:
            found = connection.channel().queue_declare(QUEUE, passive=True)
        except pika.exceptions.ChannelClosedByBroker:
            return 0
        return int(found.method.message_count)


def clean(url: str) -> None:
    """Take away what a framework leaves on a broker."""
    with _open(url) as connection:
        channel = connection.channel()
        for queue in (QUEUE, f"{QUEUE}.DQ", f"{QUEUE}.XQ"):
            channel.queue_delete(queue)
        channel.exchange_delete(QUEUE)


# -- all rounds ----------------------------------------------------------------------------------
def compare(broker: str, url: str, options: argparse.Namespace) -> tuple[Rates, dict[str, str]]:
    """Rates and, of those that failed, the reason, by framework."""
    rates: Rates = {name: [] for name in options.only}
    failures: dict[str, str] = {}
    for _ in range(options.rounds):
        for name in options.only:
            if name in failures:
                continue
            try:
                rates[name].append(measure(name, url, options.count, options.limit))
                _say(f"  {broker} {name:<12}{rates[name][-1]:>10,.0f}/s")
            except Failed as error:
                failures[name] = str(error)
                _say(f"  {broker} {name:<12}    FAILED: {error}")
    return {name: found for name, found in rates.items() if found}, failures


def run(options: argparse.Namespace) -> dict[str, Any]:
    rates, failures = {}, {}
    for broker, url in brokers(options.url):
        rates[broker], failed = compare(broker, url, options)
        failures.update({f"{name} on {broker}": why for name, why in failed.items()})
    return {
        "frameworks": rates,
        "failures": failures,
        "messages": options.count,
        "versions": {name: version(name.lower()) for name in options.only},
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "load": os.getloadavg(),
    }


def brokers(given: str | None) -> Iterator[tuple[str, str]]:
    """The broker that was asked for, or a RabbitMQ and a warren of our own, one after the other."""
    if given is not None:
        yield given.rpartition("@")[2].strip("/"), given
        return
    with launchers(["rabbitmq", "warren"]) as both:
        for launcher in both:
            broker = launcher.start()
            try:
                yield launcher.name, broker.url
            finally:
                broker.stop()


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        result = run(options)
    except (StartFailed, AMQPError, OSError) as error:
        where = "" if options.url is None else f" (is there a broker at {_shown(options.url)}?)"
        _say(f"bench.frameworks: {str(error) or type(error).__name__}{where}")
        return 1
    except KeyboardInterrupt:
        _say("bench.frameworks: stopped")
        return 130
    print(pages.frameworks_text(result))
    if options.keep:
        _say(f"kept in {_keep(result)}")
    wrong = [f"{name}: {why}" for name, why in result["failures"].items()]
    wrong += faster_ones(result["frameworks"])
    for each in wrong:
        _say(f"bench.frameworks: {each}")
    return 1 if wrong else 0


def faster_ones(rates: Mapping[str, Rates]) -> list[str]:
    """Who was faster than warren, by medians and in words; nobody, if warren was not asked."""
    return [
        f"{name} on {broker} is faster than warren"
        for broker, found in rates.items()
        for name in found
        if "warren" in found and median(found[name]) > median(found["warren"])
    ]


def _shown(url: str) -> str:
    return url.rpartition("@")[2]  # without the password


def _keep(result: dict[str, Any]) -> Path:
    when = result["when"].replace(":", "")[:17]
    return pages.keep("frameworks", f"{when}-{result['machine']['commit']}", result)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.frameworks",
        description="Messages a second through a handler that does nothing, beside other "
        "frameworks. Exits with 1 if one of them failed, or was faster than warren.",
    )
    add = parser.add_argument
    add("--url", help="a broker that runs already; else a RabbitMQ and a warren are started")
    add("--count", type=_positive, default=10_000, help="messages a round (10,000)")
    add("--rounds", type=_positive, default=3)
    add("--only", nargs="+", choices=FRAMEWORKS, default=list(FRAMEWORKS), metavar="NAME")
    add("--limit", type=float, default=90.0, help="seconds for one job of a framework (90)")
    add("--keep", action="store_true", help="keep the result in bench/results/frameworks")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
