"""Channels that are open before they are needed.

To open a channel costs RabbitMQ four times what a consume costs it. When a member dies, the others
claim its queues on channels that wait for that; new ones are opened later, when there is time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from warren.errors import WarrenError

if TYPE_CHECKING:
    from warren.client import Channel, Connection

log = logging.getLogger(__name__)

#: A third of what is held: what a group of four has to take over when one of them dies.
SHARE, LEAST, MOST = 3, 4, 64
#: How long after the last claim to open more.
QUIET_S = 0.5


class Spares:
    """A few open channels on a member's connections."""

    def __init__(self, room: Callable[[], Awaitable[Connection]]) -> None:
        self._room = room
        self._open: deque[Channel] = deque()
        self._prefetch = 0
        self._wanted = 0
        self._task: asyncio.Task[None] | None = None

    async def take(self, prefetch: int) -> Channel:
        """A channel with this prefetch: one that waits, or a new one."""
        self._prefetch = prefetch
        while self._open:
            channel = self._open.popleft()
            if channel.is_open:
                if channel.prefetch != prefetch:
                    await channel.set_prefetch(prefetch)
                return channel
        return await (await self._room()).channel(prefetch=prefetch, confirms=False)

    def held(self, count: int) -> None:
        """So many queues are held now: see to it that there are enough spares, later."""
        self._wanted = min(max(count // SHARE, LEAST), MOST) if count else 0
        if len(self._open) < self._wanted and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._refill(), name="open spare channels")

    async def close(self) -> None:
        """Stop opening; the channels end with their connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._open.clear()

    async def _refill(self) -> None:
        await asyncio.sleep(QUIET_S)
        try:
            while len(self._open) < self._wanted:
                connection = await self._room()
                channel = await connection.channel(prefetch=self._prefetch, confirms=False)
                self._open.append(channel)
        except WarrenError as error:
            log.debug("no spare channels: %s", error)
