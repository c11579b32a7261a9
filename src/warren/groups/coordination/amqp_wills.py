"""How a dispatcher hears of deaths: it stands second at every member's will."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from warren.client.channel import Channel
from warren.client.connection import Connection
from warren.client.consumer import Consumer
from warren.errors import GroupError, NotFound, WarrenError
from warren.groups.coordination.amqp_words import Names

log = logging.getLogger(__name__)

#: The broker gives a will back to who wrote it at once.
DEPOSIT_S = 30.0


@dataclass(eq=False)
class _Watched:
    life: str
    consumer: Consumer | None = None


class Deposit:
    """A member's own will, on its way to the broker and back into the member's hands."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._over = asyncio.Event()
        self._error: WarrenError | None = None
        connection.on_lost(self._lost)

    def came(self) -> None:
        self._over.set()

    def _lost(self, error: WarrenError) -> None:
        if not self._over.is_set():
            self._error = error
            self._over.set()

    async def held(self) -> None:
        """Return when it is held: from then on the broker tells others of our end.

        Raises:
            WarrenError: the connection has gone meanwhile, or the will does not come.
        """
        try:
            async with asyncio.timeout(DEPOSIT_S):
                await self._over.wait()
        except TimeoutError:
            raise GroupError(f"the broker gave no will back within {DEPOSIT_S:g} s") from None
        if self._error is not None:
            raise self._error


class Wills:
    """The dispatcher's consumers on the will queues of the others.

    A member is the first consumer of its will queue and holds the one message in it. When its
    connection goes, the broker gives the message to the next consumer: to us. A queue that is
    not there any more has no consumer: its member is dead, too.
    """

    def __init__(
        self, connection: Connection, names: Names, gone: Callable[[str, str], None]
    ) -> None:
        self._connection, self._names, self._gone = connection, names, gone
        self._watched: dict[str, _Watched] = {}
        self._asked: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._channel: Channel | None = None
        self._cancelling: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._subscribe_loop(), name=f"wills of {names.group}")

    def watch(self, member: str, life: str) -> None:
        """Stand at a member's will, unless we do already."""
        watched = self._watched.get(member)
        if watched is None or watched.life != life:
            self._watched[member] = _Watched(life)
            self._asked.put_nowait((member, life))

    def life_of(self, member: str) -> str | None:
        return self._watched[member].life if member in self._watched else None

    def forget(self, member: str) -> None:
        """It said goodbye, or we heard of its death: its will may go."""
        watched = self._watched.pop(member, None)
        if watched is not None and watched.consumer is not None and watched.consumer.active:
            task = asyncio.create_task(self._cancel(watched.consumer), name=f"will of {member}")
            self._cancelling.add(task)
            task.add_done_callback(self._cancelling.discard)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, *self._cancelling, return_exceptions=True)
        self._watched.clear()
        if self._channel is not None:
            await self._channel.close()

    async def _cancel(self, consumer: Consumer) -> None:
        try:
            await consumer.cancel()
        except WarrenError as error:
            log.debug("cancelling %r: %s", consumer, error)

    async def _subscribe_loop(self) -> None:
        while True:
            member, life = await self._asked.get()
            try:
                await self._subscribe(member, life)
            except NotFound:
                self._heard(member, life)
            except WarrenError as error:
                if self._connection.state != "open":
                    return
                log.warning("can't watch the will of %s, trying again: %s", member, error)
                await asyncio.sleep(0.1)
                self._asked.put_nowait((member, life))

    async def _subscribe(self, member: str, life: str) -> None:
        queue = self._names.will(member, life)
        # Looked at on a channel of its own: a queue that is not there costs the channel, and
        # with it all consumers on it.
        async with await self._connection.channel(prefetch=0, confirms=False) as probe:
            await probe.declare_queue(queue, passive=True)
        if self._channel is None or self._channel.closed is not None:
            self._channel = await self._connection.channel(prefetch=0, confirms=False)
            self._channel.on_closed(self._channel_closed)
        watched = self._watched.get(member)
        if watched is not None and watched.life == life:
            watched.consumer = await self._channel.consume(
                queue,
                lambda _: self._heard(member, life),
                on_cancel=lambda _: self._cancelled(member, life),
            )

    def _cancelled(self, member: str, life: str) -> None:
        if self._connection.state == "open" and self._channel and self._channel.closed is None:
            self._heard(member, life)

    def _channel_closed(self, error: WarrenError) -> None:
        """A will went between the look and the consume: stand at the others again."""
        if self._connection.state == "open":
            for member, watched in self._watched.items():
                self._asked.put_nowait((member, watched.life))

    def _heard(self, member: str, life: str) -> None:
        watched = self._watched.get(member)
        if watched is not None and watched.life == life:
            self.forget(member)
            self._gone(member, life)
