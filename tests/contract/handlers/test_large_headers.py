"""Messages whose own headers leave little room, or none, for what a letter has to tell."""

from __future__ import annotations

import pytest

import warren
from tests.contract.handlers.conftest import Bench, until
from warren.client import Properties

#: Of both brokers, and of the client.
FRAME_MAX = 131_072


def filling(bench: Bench, room: int) -> dict[str, str]:
    """Headers that leave so many octets of their frame."""
    fits = bench.channel.connection.fits
    size = FRAME_MAX
    while not fits(Properties(headers={"x": "y" * size}, delivery_mode=2), room):
        size -= 1
    return {"x": "y" * size}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("room", "told"),
    [
        (3000, {"history", "error", "exchange", "routing-key", "queue", "reason", "attempts"}),
        (300, {"queue", "reason", "attempts"}),
        (0, set()),
    ],
)
async def test_a_failing_message_does_not_block_its_queue_however_large_its_headers_are(
    bench: Bench, ordered: bool, room: int, told: set[str]
) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []

    @app.handler(queue, retries=1, backoff=0.01, ordered=ordered)
    async def handle(message: warren.Message) -> None:
        seen.append((message.body, message.attempt))
        if message.body == b"bad":
            raise ValueError("x" * 400)

    headers = filling(bench, room)
    await bench.publish(queue, b"bad", headers=headers, delivery_mode=2)
    await bench.publish(queue, b"good")
    async with app:
        letter = await bench.next_of(bench.dead)
        await until(lambda: (b"good", 1) in seen)
    assert seen.count((b"bad", 1)) == seen.count((b"bad", 2)) == 1
    assert letter.headers["x"] == headers["x"]
    ours = {name.removeprefix("x-warren-") for name in letter.headers if "x-warren" in name}
    assert told <= ours
    assert told or not ours
