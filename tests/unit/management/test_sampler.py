"""Rates, on a clock that the test turns."""

from __future__ import annotations

import pytest

from warren.broker.core import BrokerCore
from warren.broker.direct import DirectChannel
from warren.management.sampler import KEEP_MS, Sampler
from warren.testing import FakeClock


def test_a_rate_is_what_a_counter_grew_by_between_two_looks() -> None:
    clock = FakeClock()
    core = BrokerCore(clock=clock)
    sampler = Sampler(core)
    sampler.asked()
    core.churn["queue_created"] = 10
    clock.advance(5)
    core.tick()
    assert sampler.rate("churn", "queue_created") == 2.0
    clock.advance(5)
    core.tick()
    assert sampler.rate("churn", "queue_created") == 0.0


def test_before_the_second_look_there_is_no_rate() -> None:
    core = BrokerCore(clock=FakeClock())
    sampler = Sampler(core)
    assert sampler.rate("churn", "queue_created") == 0.0
    sampler.asked()
    assert sampler.rate("churn", "queue_created") == 0.0


def test_when_nobody_asks_nothing_is_looked_at() -> None:
    clock = FakeClock()
    core = BrokerCore(clock=clock)
    sampler = Sampler(core)
    assert core.timers.next_deadline_ms() is None
    sampler.asked()
    assert core.timers.next_deadline_ms() is not None
    for _ in range(KEEP_MS // 5000 + 2):
        clock.advance(5)
        core.tick()
    assert core.timers.next_deadline_ms() is None


def test_asking_again_after_a_rest_begins_anew() -> None:
    clock = FakeClock()
    core = BrokerCore(clock=clock)
    sampler = Sampler(core)
    sampler.asked()
    for _ in range(KEEP_MS // 5000 + 2):
        clock.advance(5)
        core.tick()
    core.churn["queue_created"] = 100
    sampler.asked()
    assert sampler.rate("churn", "queue_created") == 0.0
    assert core.timers.next_deadline_ms() is not None


def test_many_queues_are_looked_at_some_at_a_time() -> None:
    core = BrokerCore(clock=FakeClock())
    with DirectChannel(core, core.admin.user("guest"), "/") as channel:  # type: ignore[arg-type]
        for number in range(1000):
            name = f"queue-{number}"
            channel.declare_queue(name, durable=False, auto_delete=False, arguments={})
    queues = core.vhosts["/"].queues
    sampler = Sampler(core)
    sampler.asked()
    assert len(sampler._last) == 0  # not there yet: others have their turn first
    core.vhosts["/"].delete_queue(queues["queue-999"])  # comes and goes in between
    for _ in range(10):
        core.clock.advance(0.002)  # type: ignore[attr-defined]
        core.tick()
    for queue in queues.values():
        queue.published += 50
    core.clock.advance(5)  # type: ignore[attr-defined]
    for _ in range(10):
        core.tick()
        core.clock.advance(0.002)  # type: ignore[attr-defined]
    assert sampler.rate(queues["queue-0"], "publish") == pytest.approx(10, rel=0.01)
    assert sampler.rate(queues["queue-998"], "publish") == pytest.approx(10, rel=0.01)
