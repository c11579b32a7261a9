from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

import warren
from warren.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"coordinater": "etcd://x"}, "coordinater .* did you mean coordinator"),
        ({"rate_limt": 5}, "did you mean rate_limit"),
        ({"prefetch": 5}, "no such option"),
        ({"weight": "2"}, "weight .* is '2'; a number"),
        ({"weight": -1}, "weight .* negative"),
        ({"drain_s": -1}, "drain_s .* negative"),
        ({"drain_s": None}, "drain_s .* a number"),
        ({"min_interval_s": -1}, "min_interval_s .* negative"),
        ({"heartbeat_s": 0}, "heartbeat_s .* above 0"),
        ({"discover_s": 0}, "discover_s .* above 0"),
        ({"session_s": -1}, "session_s .* negative"),
        ({"balance": "even"}, "count or load"),
        ({"member_name": 7}, "member_name .* a text"),
        ({"member_name": "x" * 81}, "member_name .* 80 bytes"),
        ({"rate_limit": "5"}, "rate_limit"),
        ({"threads": "8"}, "threads"),
        ({"group": ""}, "group .* 1 to 100 bytes"),
        ({"group": None}, "group .* 1 to 100 bytes"),
    ],
)
def test_an_option_of_an_app_that_can_not_work_is_named_at_once(
    options: dict[str, Any], word: str
) -> None:
    with pytest.raises(ConfigError, match=word):
        warren.App(**{"group": "g", **options})


def test_a_plain_with_is_told_how_to_do_it() -> None:
    with pytest.raises(ConfigError, match="async with app"), warren.App(group="g"):
        pass


async def test_an_app_is_not_run_inside_an_event_loop() -> None:
    with pytest.raises(ConfigError, match="async with app"):
        warren.App(group="g").run()


def test_a_queue_has_one_handler() -> None:
    app = warren.App(group="g")
    app.handler("orders", "bills")(handle)
    with pytest.raises(ConfigError, match=r"'bills' has a handler already, handle"):
        app.handler("bills")(handle)


def test_options_that_work_are_taken() -> None:
    warren.App(group="g", drain_s=0, session_s=0, min_interval_s=0, weight=0, heartbeat_s=0.5)
    warren.App(group="g", member_name=None, management=None)


def takes_nothing() -> None: ...
def takes_two(message: Any, other: Any) -> None: ...
def yields(message: Any) -> Any:
    yield message


async def yields_later(message: Any) -> AsyncIterator[Any]:
    yield message


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (takes_nothing, "takes_nothing is called with one argument"),
        (takes_two, "takes_two .* 'other'"),
        (yields, "yields has a yield"),
        (yields_later, "yields_later has a yield"),
        ("handle", "'handle', which is no function"),
    ],
)
def test_what_can_not_be_called_with_a_message_is_no_handler(function: Any, word: str) -> None:
    with pytest.raises(ConfigError, match=rf"@app\.handler\('orders'\).* {word}"):
        warren.App(group="g").handler("orders")(function)


class Handler:
    async def __call__(self, message: Any) -> None: ...
    def plain(self, message: Any) -> None: ...


async def handle(message: Any, other: int = 1) -> None: ...


@pytest.mark.parametrize(
    "function", [handle, Handler(), Handler().plain, partial(takes_two, other=1), print]
)
def test_whatever_takes_one_argument_is_a_handler(function: Any) -> None:
    assert warren.App(group="g").handler("orders")(function) is function


@pytest.mark.parametrize("function", [handle, Handler()])
def test_an_async_handler_may_have_a_timeout(function: Any) -> None:
    warren.App(group="g").handler("orders", timeout_s=1)(function)


def test_a_plain_function_can_not_have_a_timeout() -> None:
    with pytest.raises(ConfigError, match=r"timeout_s .* plain .* a thread can't be stopped"):
        warren.App(group="g").handler("orders", timeout_s=1)(Handler().plain)
