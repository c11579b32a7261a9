"""How much memory a long backlog on disk takes, and how long a restart with it.

    python -m bench.durability                    # ten million messages, memory; minutes
    python -m bench.durability --messages 1000000 # a million: memory and recovery

One broker process with default settings on a data folder of its own, one publisher with confirms,
persistent messages of 100 octets to one queue. Then kill -9, and the time until the broker listens
again and tells the count. Then a consumer drains some of it, with acks.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import machine
from bench.load import frames
from bench.load.link import Link, received
from bench.management import used_s
from bench.memory import resident_bytes

QUEUE = "backlog"
STEP = 10_000
#: Messages that may be unconfirmed.
WINDOW = 50_000


@contextmanager
def running(folder: Path, *options: str) -> Iterator[tuple[str, int]]:
    """A broker that is killed in the end: its URL and process id."""
    command = [sys.executable, "-m", "warren", "broker", "--port", "0", "--data", str(folder)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"listens on ([\d.]+:\d+)", line)
        assert match, line
        yield f"amqp://guest:guest@{match[1]}/", process.pid
    finally:
        process.kill()
        process.communicate()


def fill(url: str, pid: int, count: int, size: int) -> dict[str, float]:
    """Publish; the rate, and the most memory the broker had meanwhile."""
    blob = frames.publish("", QUEUE, bytes(size), persistent=True) * STEP
    most = 0
    with Link(url) as link:
        link.call(frames.declare_queue(QUEUE, durable=True), (50, 11))
        link.call(frames.confirm_select(), (85, 11))
        began = time.monotonic()
        confirmed = sent = 0
        rest = b""
        while confirmed < count:
            while sent < count and sent - confirmed < WINDOW:
                link.sock.sendall(blob)
                sent += STEP
            data = rest + received(link.sock.recv(1 << 20))
            whole = len(data) // 21 * 21  # confirms, and nothing else: the client knows no more
            for at in range(0, whole, 21):
                confirmed = frames.ACK.unpack_from(data, at)[1]
            rest = data[whole:]
            most = max(most, resident_bytes(pid))
        return {"rate": count / (time.monotonic() - began), "most_bytes": most}


def drain(url: str, count: int) -> float:
    """Messages a second, consumed with acks."""
    with Link(url) as link:
        link.call(frames.qos(1000), (60, 11))
        began = time.monotonic()
        link.call(frames.consume(QUEUE, "bench"), (60, 21))
        size = len(link.read_message())  # they are all alike, also in length
        came, acked = size + len(link.receive_rest()), 0
        while acked < count:
            whole = came // size
            if whole - acked >= 200:
                link.sock.sendall(frames.acks(acked + 1, whole - acked))
                acked = whole
            came += len(received(link.sock.recv(1 << 20)))
        return count / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.durability", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--drain", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder) as (url, pid):
            filled = fill(url, pid, options.messages, options.size)
            settled = resident_bytes(pid)
        disk = sum(path.stat().st_size for path in folder.iterdir())
        began = time.monotonic()
        with running(folder) as (url, pid):
            listening, worked = time.monotonic() - began, used_s(pid)
            with Link(url) as link:
                found = link.ready(QUEUE)
            recovered = resident_bytes(pid)
            drained = drain(url, options.drain)
            after = resident_bytes(pid)
    assert found == options.messages, found
    megabyte = 1 << 20
    result = {
        "machine": machine.describe(),
        "messages": options.messages,
        "size_bytes": options.size,
        "publish_confirmed_per_s": round(filled["rate"]),
        "most_memory_mib": filled["most_bytes"] // megabyte,
        "memory_when_full_mib": settled // megabyte,
        "disk_mib": disk // megabyte,
        "recovery_s": round(listening, 2),
        "recovery_cpu_s": round(worked, 2),
        "memory_after_recovery_mib": recovered // megabyte,
        "drain_per_s": round(drained),
        "memory_while_draining_mib": after // megabyte,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
