"""How long a drain waits for messages that do not come: ``drainTimeoutMs``, by its own clock."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.spark.model_broker import Link
from tests.unit.spark.test_exactly_once_model import Job
from warren.spark.drain import drain as drain_module
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.options import SourceOptions


@pytest.mark.parametrize("timeout_s", [0.5, 8.0])
def test_messages_that_do_not_come_are_waited_for_as_long_as_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: float
) -> None:
    """A broker that gave out two messages and from then on can't say whether there are more."""
    clock, written_at = [100.0], [0.0]
    job = Job(str(tmp_path / "ledger"), "exclusive")
    for body in (b"0", b"1"):
        job.broker.queue.publish(body)
    pump = Link.pump

    def waiting(link: Link, wait_s: float, *, gather: bool = False) -> bool:
        came = pump(link, wait_s, gather=gather)
        if came:
            job.broker.blind_answers = 10**9
        clock[0] += 0.0 if came else wait_s
        return came

    def probe(at: str, _: str) -> None:
        if at == "before segment":
            written_at[0] = clock[0]
            job.broker.blind_answers = 0

    monkeypatch.setattr(Link, "pump", waiting)
    now = SimpleNamespace(monotonic=lambda: clock[0], time=time.time)
    monkeypatch.setattr(drain_module, "time", now)
    options = SourceOptions.parse({"queues": "q", "drainTimeoutMs": str(round(timeout_s * 1000))})
    drain = Drain(options, job.ledger, probe=probe, connect=job.broker.connect, retried=False)

    rows = list(drain.rows([Range("q", 0, 4)]))

    assert [body for batch in rows for body in batch.column("body").to_pylist()] == [b"0", b"1"]
    assert written_at[0] - 100.0 == pytest.approx(timeout_s, abs=0.3)
