from __future__ import annotations

from typing import Any

import pytest

from warren.errors import Nacked
from warren.handlers.outbox import Outbox


class Channel:
    """One that refuses, or not."""

    closed = None

    def __init__(self, *, refuses: bool) -> None:
        self._refuses, self.unconfirmed = refuses, 0
        self.took: list[bytes] = []
        self.was_closed = False

    async def publish(self, body: bytes, **how: Any) -> None:
        if self._refuses:
            raise Nacked("", "dead")
        self.took.append(body)

    async def close(self) -> None:
        self.was_closed = True


class Connection:
    def __init__(self, *channels: Channel) -> None:
        self._channels = list(channels)

    async def channel(self) -> Channel:
        return self._channels.pop(0)


async def test_what_was_refused_goes_over_another_channel_the_next_time() -> None:
    refusing, taking = Channel(refuses=True), Channel(refuses=False)
    connection: Any = Connection(refusing, taking)
    outbox = Outbox(connection, "billing")

    with pytest.raises(Nacked):
        await outbox.publish(b"one", routing_key="dead")
    await outbox.publish(b"one", routing_key="dead")
    await outbox.publish(b"two", routing_key="dead")

    assert taking.took == [b"one", b"two"]
    assert refusing.was_closed


async def test_a_channel_that_has_answers_to_come_is_closed_when_they_are_there() -> None:
    first, second, third = (Channel(refuses=refuses) for refuses in (True, True, False))
    first.unconfirmed = 1
    connection: Any = Connection(first, second, third)
    outbox = Outbox(connection, "billing")

    for _ in range(2):
        with pytest.raises(Nacked):
            await outbox.publish(b"one", routing_key="dead")
    assert not first.was_closed
    first.unconfirmed = 0
    await outbox.publish(b"one", routing_key="dead")

    assert first.was_closed
    assert second.was_closed
