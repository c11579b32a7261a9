from __future__ import annotations

from typing import Any

from warren.handlers.metrics import QueueCounters, exposition
from warren.handlers.middleware import Middleware, Stack


class Noted(Middleware):
    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    def before(self, message: Any) -> None:
        self.seen.append(f"{self.name} before")

    async def after(self, message: Any, result: Any) -> None:
        self.seen.append(f"{self.name} after {result}")

    def error(self, message: Any, error: Exception) -> None:
        self.seen.append(f"{self.name} error {error}")


async def test_before_runs_inwards_and_after_and_error_outwards() -> None:
    seen: list[str] = []
    stack = Stack([Noted("outer", seen), Noted("inner", seen)])
    message: Any = object()
    await stack.before(message)
    await stack.after(message, 7)
    await stack.error(message, ValueError("no"))
    assert seen == [
        "outer before",
        "inner before",
        "inner after 7",
        "outer after 7",
        "inner error no",
        "outer error no",
    ]


def test_a_middleware_that_overrides_nothing_costs_nothing() -> None:
    assert Stack([Middleware()]).empty


def test_counters_are_given_in_the_form_prometheus_reads() -> None:
    counters = QueueCounters(handled=2, failed=1)
    counters.took(0.003)
    counters.took(99.0)
    text = exposition("billing", {'a"b': counters}, [("members", "Members.", 3)])
    lines = text.splitlines()
    assert 'warren_group_members{group="billing"} 3' in lines
    labels = 'group="billing",queue="a\\"b"'
    assert f"warren_messages_handled_total{{{labels}}} 2" in lines
    assert f'warren_handler_seconds_bucket{{{labels},le="0.005"}} 1' in lines
    assert f'warren_handler_seconds_bucket{{{labels},le="60"}} 1' in lines
    assert f'warren_handler_seconds_bucket{{{labels},le="+Inf"}} 2' in lines
    assert f"warren_handler_seconds_count{{{labels}}} 2" in lines
