"""What a group tells whoever works on its queues."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warren.client import Delivery
    from warren.groups.group import Group

log = logging.getLogger(__name__)


class Listener:
    """Subclass it and give it to a ``Group``; what is not overridden does nothing.

    For each queue: ``assigned``, then ``message`` for every message, in order, then either
    ``revoked`` or ``lost``. When one of them raises, that is logged, the queue is given back and
    claimed anew: after ``message``, a second later and beginning with the message it failed over.
    """

    #: The group that this listener was given to.
    group: Group

    async def assigned(self, queue: str) -> None:
        """The queue is ours; messages come after this has returned."""

    def message(self, delivery: Delivery) -> None:
        """One message. Called in the event loop and must not wait; acknowledge it when done."""

    async def revoked(self, queue: str) -> None:
        """The queue goes to another member: finish and acknowledge what is being worked on.

        No message comes any more. What is not acknowledged when this returns goes back to the
        queue, in order. Cancelled, and followed by ``lost``, when the drain time is over.
        """

    async def lost(self, queue: str) -> None:
        """The queue was taken away: another member may work on it already. Acknowledge nothing."""


class Ordered(Listener):
    """Gives the messages of each queue to one function, one at a time; its return acknowledges.

    When the drain time is over it is cancelled, and the queue is let go when it has ended. When it
    raises, whatever that is, all that is not acknowledged goes back to the queue, and the queue is
    claimed anew after ``retry_s``: order is kept, and a message that can't be handled blocks its
    queue.
    """

    def __init__(
        self, handle: Callable[[Delivery], Awaitable[None]], *, retry_s: float = 1.0
    ) -> None:
        self._handle, self._retry_s = handle, retry_s
        self._lanes: dict[str, _Lane] = {}

    async def assigned(self, queue: str) -> None:
        self._lanes[queue] = _Lane(queue, self._handle, self._failed)

    def message(self, delivery: Delivery) -> None:
        self._lanes[delivery.queue].add(delivery)

    async def revoked(self, queue: str) -> None:
        await self._lanes[queue].finish()
        self._lanes.pop(queue, None)

    async def lost(self, queue: str) -> None:
        if (lane := self._lanes.pop(queue, None)) is not None:
            await lane.stop()

    def _failed(self, queue: str, error: BaseException) -> None:
        log.error("the handler of %s failed; trying again later", queue, exc_info=error)
        reason = str(error) or type(error).__name__
        self.group.give_back(queue, f"its handler failed: {reason}", retry_s=self._retry_s)


class _Lane:
    """One queue's messages on their way through the handler."""

    def __init__(
        self,
        queue: str,
        handle: Callable[[Delivery], Awaitable[None]],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self.queue, self._handle, self._failed = queue, handle, failed
        self._waiting: deque[Delivery] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def add(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._run(), name=f"work on {self.queue}")

    async def finish(self) -> None:
        """Begin nothing new and wait for what is running."""
        self._closed = True
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Cancel what is running, and wait for its end: the next member may begin then."""
        if (task := self.cancel()) is not None:
            await asyncio.wait({task})

    def cancel(self) -> asyncio.Task[None] | None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        try:
            while self._waiting and not self._closed:
                delivery = self._waiting.popleft()
                if delivery.stale:  # somebody else may work on it already
                    break
                await self._handle(delivery)
                delivery.ack()
        except BaseException as error:
            self._closed = True  # what comes after must not overtake it
            if not is_own_failure(error):
                raise
            self._failed(self.queue, error)
        finally:
            self._task = None


def is_own_failure(error: BaseException) -> bool:
    """Whether people's own code failed, rather than that somebody ends its work from outside."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, (KeyboardInterrupt, GeneratorExit))
