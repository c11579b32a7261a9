"""For tests that must do something before a time to live runs out."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tests.support.wire import Channel, Closed

TRIES = 5


def against_the_clock(test: Callable[..., None]) -> Callable[..., None]:
    """Try a test that takes a ``channel`` again, on a new channel, if it fails.

    A machine that stalls at the wrong moment loses such a race now and then; a broker that is
    wrong loses it every time.
    """

    @wraps(test)
    def tried(channel: Channel, **others: Any) -> None:
        for left in reversed(range(TRIES)):
            try:
                return test(channel=channel.connection.channel(), **others)
            except (AssertionError, Closed) as failure:
                gone = isinstance(failure, Closed) and failure.scope == "connection"
                if gone or not left:
                    raise
        raise AssertionError("unreachable")

    return tried
