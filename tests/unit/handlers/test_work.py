from __future__ import annotations

from typing import Any

import pytest

import warren
from warren.errors import ConfigError

#: Handlers as (queue or pattern, dead-letter queue); those that can't work go round in circles.
CIRCLES = [
    [("orders.*", "orders.dead")],
    [("orders", "orders")],
    [("*", "dead")],
    [("orders", "dead"), ("dead", "elsewhere")],
    [("orders", None), ("warren.dead.g", "elsewhere")],
]
FINE = [
    [("*", None)],
    [("warren.*", None)],
    [("*", "warren.graveyard")],
    [("broker", "broker")],
    [("orders.*", "dead.orders")],
    [("warren.dead.another", None)],
]


def app_of(*handlers: tuple[str, str | None]) -> warren.App:
    app = warren.App("amqp://127.0.0.1:1", group="g")
    for queue, dead in handlers:

        async def handle(message: Any) -> None: ...

        app.handler(queue, dead_letter=dead)(handle)
    return app


@pytest.mark.parametrize("handlers", CIRCLES)
async def test_an_app_that_would_handle_its_own_dead_letters_does_not_start(
    handlers: list[tuple[str, str | None]],
) -> None:
    dead, taker = handlers[0][1] or "warren.dead.g", handlers[-1][0]
    with pytest.raises(ConfigError) as refused:
        await app_of(*handlers).start()
    said = str(refused.value)
    assert f"@app.handler({handlers[0][0]!r}) dead_letter" in said
    assert f"'{dead}', which handle takes, @app.handler({taker!r})" in said


@pytest.mark.parametrize("handlers", FINE)
async def test_dead_letters_may_go_where_no_handler_looks(
    handlers: list[tuple[str, str | None]],
) -> None:
    with pytest.raises(warren.errors.ConnectError):  # there is no broker: all else is well
        await app_of(*handlers).start()
