"""How fast the load itself can go: the same jobs against a stand-in that does no broker's work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.brokers import await_listening, end_process
from bench.load.process import ROOT, run_load
from bench.report import UNITS
from bench.scenarios import roundtrip, throughput
from tests.support.servers import free_ports

COUNTS = {200: 200_000, 16: 200_000, 16_384: 10_000}
HEADINGS = ("The load alone", "rate", "busy")


def table(*, quick: bool) -> list[tuple[str, ...]]:
    """Rates against the stand-in, and how much of the time the load process computed."""
    lines: list[tuple[str, ...]] = [HEADINGS]
    for title, job in (("Publish", throughput.publish), ("Consume", throughput.consume)):
        for body_bytes, messages in COUNTS.items():
            count = messages // 10 if quick else messages
            with _stand_in(body_bytes, count + throughput.WARM_UP) as url:
                numbers = run_load(job, url=url, body_bytes=body_bytes, count=count)
            name = f"{title}, {throughput.size_name(body_bytes)}"
            lines.append((name, UNITS["rate"](numbers["rate"]), f"{numbers['busy']:.0%}"))
    with _stand_in(roundtrip.BODY_BYTES, 2 * roundtrip.COUNT) as url:
        trips = run_load(roundtrip.round_trip, url=url, count=roundtrip.COUNT)
    for part, seconds in trips.items():
        lines.append((part.replace("_", " "), UNITS["latency"](seconds), ""))
    return lines


@contextmanager
def _stand_in(body_bytes: int, messages: int) -> Iterator[str]:
    (port,) = free_ports(1)
    order = [sys.executable, "-m", "bench.standin", str(port), str(body_bytes), str(messages)]
    process = subprocess.Popen(order, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        await_listening(port, lambda: process.poll() is None)
        yield f"amqp://guest:guest@127.0.0.1:{port}/"
    finally:
        end_process(process)
