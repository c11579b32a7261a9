"""A group's rate limit, as far as one member has to keep it: its share of the queues."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection

from warren.errors import WarrenError
from warren.groups.coordination.base import GroupState
from warren.handlers.rate import TokenBucket

log = logging.getLogger(__name__)

#: How often a member asks what queues the group has, and how soon again while it can't know.
SHARE_S, UNKNOWN_S = 2.0, 0.25


class Pace:
    """Lets messages go one by one, in the order they asked. Nothing goes at a share of 0."""

    def __init__(self, rate_per_s: float) -> None:
        self._rate = rate_per_s
        self._share = 0.0
        self._bucket: TokenBucket | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def share_is(self, share: float) -> None:
        """This member may do so much of the whole rate; whoever waits is told."""
        if share == self._share:
            return
        self._share = share
        if self._bucket is not None:
            self._bucket.set_rate(self._rate * share, asyncio.get_running_loop().time())
        self._run()

    async def __call__(self, stopping: asyncio.Event) -> bool:
        """Wait until one more may be handled. False: stopped before it was."""
        if stopping.is_set():
            return False
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._run()
        if turn.done():
            return True
        stopped = asyncio.create_task(stopping.wait(), name="stopped while it waits its turn")
        try:
            await asyncio.wait((turn, stopped), return_when=asyncio.FIRST_COMPLETED)
            return turn.done()
        finally:
            turn.cancel()
            stopped.cancel()

    def _run(self) -> None:
        """Let go who may, and come back when the next may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now, rate = loop.time(), self._rate * self._share
        if rate <= 0:
            return
        bucket = self._bucket = self._bucket or TokenBucket(rate, now)
        while self._waiting:
            if self._waiting[0].done():  # it was stopped
                self._waiting.popleft()
            elif (wait_s := bucket.wait_s(now)) > 0:
                self._timer = loop.call_later(wait_s, self._run)
                return
            else:
                bucket.take(now)
                self._waiting.popleft().set_result(None)


class Share:
    """Keeps a pace at this member's share: the queues it has, of those that the group has.

    What the group has is asked for; what this member has is known at once. So a queue that moves
    is counted nowhere for a moment, and never twice: the group stays below its limit.
    """

    def __init__(
        self,
        pace: Pace,
        held: Callable[[], Collection[str]],
        describe: Callable[[], Awaitable[GroupState | None]],
    ) -> None:
        self._pace, self._held, self._describe = pace, held, describe
        self._all: set[str] = set()
        self._moved = asyncio.Event()

    def moved(self) -> None:
        """A queue has come or gone."""
        if not self._reckon():
            self._moved.set()

    def _reckon(self) -> bool:
        """Set the share; False if the group has to be asked first."""
        held = set(self._held())
        if not held <= self._all:  # the group has changed, and nobody knows how many there are now
            return False
        self._pace.share_is(len(held) / len(self._all) if held else 0.0)
        return True

    async def keep_loop(self) -> None:
        while True:
            known = await self._ask()
            try:
                async with asyncio.timeout(SHARE_S if known else UNKNOWN_S):
                    # Asking costs a connection: while it is no use, not more often than that.
                    await (self._moved.wait() if known else asyncio.Event().wait())
            except TimeoutError:
                pass

    async def _ask(self) -> bool:
        self._moved.clear()
        try:
            state = await self._describe()
        except (WarrenError, OSError) as error:
            log.debug("the share of the rate stays as it is: %s", error)
            return True
        if state is not None:
            self._all = {each.queue for each in state.queues}
        return self._reckon()
