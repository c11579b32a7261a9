"""A publish and what became of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

from warren.errors import WarrenError


class Confirm:
    """Awaited, it waits for the broker to take the message, and raises if it did not.

    From a thread without an event loop, ``wait`` does the same. Nothing has to be awaited:
    ``Channel.confirmed`` waits for many at once.
    """

    __slots__ = (
        "_event",
        "_waiters",
        "body",
        "done",
        "error",
        "exchange",
        "mandatory",
        "properties",
        "routing_key",
        "seen",
    )

    def __init__(
        self, body: bytes, exchange: str, routing_key: str, properties: bytes, mandatory: bool
    ) -> None:
        self.body = body
        self.exchange = exchange
        self.routing_key = routing_key
        self.properties = properties
        self.mandatory = mandatory
        self.done = False
        self.error: WarrenError | None = None
        #: Somebody has been told of the error.
        self.seen = False
        self._waiters: list[asyncio.Future[None]] | None = None
        self._event: threading.Event | None = None

    def settle(self, error: WarrenError | None = None) -> None:
        """The answer is there."""
        if self.error is None:
            self.error = error
        self.done = True
        if self._waiters is not None:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiters = None
        if self._event is not None:
            self._event.set()

    def __await__(self) -> Generator[object, None, None]:
        if not self.done:
            waiter = asyncio.get_running_loop().create_future()
            if self._waiters is None:
                self._waiters = [waiter]
            else:
                self._waiters.append(waiter)
            yield from waiter
        self._tell()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait in a thread that is not the event loop's.

        Raises:
            TimeoutError: there is no answer yet.
        """
        if self._event is None:
            self._event = threading.Event()
        # ``done`` is looked at after the event is there: an answer between the two is not missed.
        if not self.done and not self._event.wait(timeout_s):
            raise TimeoutError(f"no confirm within {timeout_s} s")
        self._tell()

    def _tell(self) -> None:
        if self.error is not None:
            self.seen = True
            raise self.error

    def __repr__(self) -> str:
        state = "waiting" if not self.done else str(self.error or "confirmed")
        return f"<publish to '{self.exchange}' with '{self.routing_key}': {state}>"
