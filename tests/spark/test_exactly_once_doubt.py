"""Segments in doubt whose messages come late, or behind others; offsets that were forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.spark.drains import Task, publish
from tests.support.brokers import TestBroker
from tests.support.wire import Channel
from warren.client.blocking import BlockingConnection
from warren.client.blocking_reader import Tap
from warren.errors import LedgerGap
from warren.spark.drain import drain as drain_module
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range

MODES = [("exclusive", {}), ("single active", {"x-single-active-consumer": True})]


@pytest.mark.parametrize("fresh", [5, 20, 40])
def test_what_is_in_doubt_is_known_behind_messages_of_a_higher_priority(
    task: Task, channel: Channel, name: Callable[..., str], fresh: int
) -> None:
    queue = name("prior")
    channel.declare(queue, durable=True, arguments={"x-max-priority": 5})
    publish(channel, queue, range(10), priority=1)
    task.crash(queue, 0, 10, "after segment")
    publish(channel, queue, range(100, 100 + fresh), priority=5)

    assert task.run(queue, 0, 10) == list(range(10))
    assert task.run(queue, 10, 60) == list(range(100, 100 + fresh))
    assert channel.count(queue) == 0
    assert task.in_doubt(queue) == []


class Halting(BlockingConnection):
    """Nothing comes for a while, when a queue has given out ``after`` messages."""

    after = 4
    until: float | None = None

    def begin_channel(self, kind: Any) -> Any:
        self.tap = super().begin_channel(kind)
        return self.tap

    def pump(self, timeout_s: float, *, gather: bool = False) -> bool:
        tap = getattr(self, "tap", None)
        if self.until is None and isinstance(tap, Tap) and len(tap.took) >= self.after:
            self.until = time.monotonic() + 1.0
        if self.until is not None and time.monotonic() < self.until:
            time.sleep(timeout_s)
            return False
        return super().pump(timeout_s)


@pytest.mark.parametrize(("mode", "arguments"), MODES)
@pytest.mark.parametrize("alike", [False, True])
def test_what_is_in_doubt_is_known_when_a_part_of_it_comes_late(
    broker: TestBroker,
    channel: Channel,
    name: Callable[..., str],
    tmp_path: Path,
    mode: str,
    arguments: dict[str, Any],
    alike: bool,
) -> None:
    queue = name("late")
    channel.declare(queue, durable=True, arguments=arguments)
    task = Task(broker.url, tmp_path / "ledger", drainTimeoutMs="300")
    numbers = [7] * 10 if alike else list(range(10))
    for number in numbers:
        channel.publish(queue, b"%d" % number + b" " * 300_000)
    channel.sync()
    task.crash(queue, 0, 10, "after segment", mode=mode)

    def connect() -> BlockingConnection:
        return Halting.open(task.options.endpoints)

    assert task.run(queue, 0, 30, mode=mode, connect=connect) == numbers
    assert channel.count(queue) == 0


@pytest.mark.parametrize(("mode", "arguments"), MODES)
def test_an_attempt_that_slept_does_not_fill_offsets_that_were_forgotten(
    broker: TestBroker,
    channel: Channel,
    name: Callable[..., str],
    tmp_path: Path,
    mode: str,
    arguments: dict[str, Any],
) -> None:
    queue = name("slept")
    channel.declare(queue, durable=True, arguments=arguments)
    publish(channel, queue, range(20))
    task = Task(broker.url, tmp_path / "ledger", prefetch="10", ledgerRetention="0s")
    others: list[int] = []

    def connect() -> BlockingConnection:
        # This one has looked into the ledger. Another attempt reads all, and Spark commits it.
        if not others:
            others.extend(task.run(queue, 0, 20, mode=mode))
            task.ledger.prune({queue: 20}, older_than=time.time() + 1)
            publish(channel, queue, range(100, 110))
        return BlockingConnection.open(task.options.endpoints)

    with pytest.raises(LedgerGap):
        task.run(queue, 0, 20, mode=mode, connect=connect)

    assert others == list(range(20))
    assert task.run(queue, 20, 30, mode=mode) == list(range(100, 110))


@pytest.mark.parametrize(("mode", "arguments"), MODES)
@pytest.mark.parametrize("part", [1, 2])
def test_an_attempt_that_slept_before_it_wrote_takes_nothing_for_forgotten_offsets(
    broker: TestBroker,
    channel: Channel,
    name: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    arguments: dict[str, Any],
    part: int,
) -> None:
    queue = name("slept")
    channel.declare(queue, durable=True, arguments=arguments)
    publish(channel, queue, range(30))
    task = Task(broker.url, tmp_path / "ledger", prefetch="10", ledgerRetention="20s")
    others: list[int] = []
    came = slept_s = 0

    def sleep(at: str, _: str) -> None:
        nonlocal came, slept_s
        came += at == "before segment"
        if at != "before segment" or came != part:
            return
        # Its connection is gone. Another attempt reads all, Spark commits it, and 25 s pass.
        drain.connection.abandon()
        others.extend(task.run(queue, 0, 30, mode=mode) + task.run(queue, 30, 31, mode=mode))
        task.ledger.prune({queue: 31}, older_than=time.time() + 1)
        publish(channel, queue, range(100, 130))
        slept_s = 25

    clock = SimpleNamespace(time=time.time, monotonic=lambda: time.monotonic() + slept_s)
    monkeypatch.setattr(drain_module, "time", clock)
    drain = Drain(task.options, task.ledger, probe=sleep)
    with pytest.raises(LedgerGap):
        list(drain.rows([Range(queue, 0, 30, mode)]))

    assert others == list(range(30))
    assert task.run(queue, 31, 80, mode=mode) == list(range(100, 130))
    assert task.in_doubt(queue) == []
