"""One queue that a member claims: its channel, its consumer, and the way of its messages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from warren.errors import WarrenError
from warren.groups.listener import is_own_failure

if TYPE_CHECKING:
    from warren.client import Channel, Delivery
    from warren.groups.listener import Listener

log = logging.getLogger(__name__)


class Holding:
    """A claim at the broker. One object a claim: a queue that comes back gets another.

    A channel a queue: what the broker refuses costs this queue alone, and closing the channel
    gives back in order what was prefetched. (A cancelled consumer would leave that with us while
    the next one starts behind it.)
    """

    def __init__(
        self,
        queue: str,
        listener: Listener,
        *,
        lost: Callable[[Holding, str], None],
        failed: Callable[[Holding, str], None],
    ) -> None:
        self.queue, self._listener = queue, listener
        self._lost, self._failed = lost, failed
        self.received = 0
        self._channel: Channel | None = None
        #: Messages that came before the listener was ready for them.
        self._early: list[Delivery] | None = []
        self._ended = False
        self._taken: WarrenError | None = None
        self._working = False  # the listener believes that the queue is its own

    async def claim(self, channel: Channel, *, exclusive: bool) -> None:
        """Ask the broker for the queue, on a channel that is the queue's own from now on.

        Raises:
            WarrenError: somebody else has it, it is not there, or it was taken away at once;
                nothing is left behind.
        """
        self._channel = channel
        try:
            # The tag is the client's own and new each time: none is ever used twice.
            await channel.consume(
                self.queue, self._arrived, exclusive=exclusive, on_cancel=self._cancelled
            )
            if self._taken is not None:  # again, before anybody knew that we had it
                raise self._taken
        except BaseException:
            self._ended = True
            await self._close()
            raise

    async def begin(self) -> None:
        """Tell the listener and hand it the messages."""
        self._working = True
        await self._listener.assigned(self.queue)
        early, self._early = self._early or [], None
        for delivery in early:
            if not self._ended:
                self._hand_out(delivery)

    async def drain(self) -> None:
        """Hand out no more, and let the listener finish."""
        self._ended = True
        await self._listener.revoked(self.queue)
        self._working = False

    async def release(self) -> None:
        """Give the queue back to the broker; returns when it has it.

        A listener that has not finished in its drain time is told that the queue is lost.
        """
        await self.forget()

    async def forget(self) -> None:
        """The queue is gone, whatever the reason."""
        self._ended = True
        try:
            await self._tell_lost()
        finally:
            await self._close()

    async def _tell_lost(self) -> None:
        if not self._working:
            return
        self._working = False
        try:
            await self._listener.lost(self.queue)
        except BaseException as error:
            if not is_own_failure(error):
                raise
            # The queue is gone all the same.
            log.exception("the listener failed over %s, which is lost", self.queue)

    async def _close(self) -> None:
        try:
            if self._channel is not None:
                await self._channel.close()
        except WarrenError as error:
            log.debug("closing the channel of %s: %s", self.queue, error)

    def _arrived(self, delivery: Delivery) -> None:
        if self._ended:
            return  # goes back to the queue with the channel
        self.received += 1
        if self._early is None:
            self._hand_out(delivery)
        else:
            self._early.append(delivery)

    def _hand_out(self, delivery: Delivery) -> None:
        try:
            self._listener.message(delivery)
        except Exception as error:  # people's own code
            log.exception("the listener failed over %r; trying again later", delivery)
            self._ended = True  # what comes after must not overtake it
            self._failed(self, f"its listener failed: {error}")

    def _cancelled(self, error: WarrenError) -> None:
        self._ended, self._taken = True, error
        self._lost(self, str(error))
