"""How members that meet in etcd hear of deaths at once: through the broker they all work with.

A lease takes seconds to run out. So a member also leaves a will with the broker, as with the amqp
coordinator: the dispatcher stands second at everybody's will, and all others at the dispatcher's.
Who gets one ends the dead one's lease, and etcd tells the rest.

A member *holds* its will on the connection that its queues are consumed on, so that the two share
their fate. It *writes* it over another one, made for that and closed again: a broker that runs out
of memory stops reading from publishers, and acknowledgements must not be caught behind a will.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from warren.client.channel import Channel
from warren.client.connection import Connection
from warren.client.delivery import Delivery
from warren.errors import WarrenError
from warren.groups.coordination import amqp_words as words
from warren.groups.coordination.amqp_wills import Deposit, Wills
from warren.groups.coordination.amqp_words import Names

log = logging.getLogger(__name__)

#: RabbitMQ closes a channel that holds a message for half an hour: the will is renewed.
RENEW_S = 600.0


class Deaths:
    """One member's will, and the wills that it stands at."""

    def __init__(
        self, connection: Connection, group: str, died: Callable[[str, str], None]
    ) -> None:
        #: Of this member's will: another process of the same name has another.
        self.life = secrets.token_hex(4)
        self._connection, self._names, self._died = connection, Names(group), died
        self._channel: Channel | None = None
        self._held: Delivery | None = None
        self._wills: Wills | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        """False when our own will has been handed on."""
        return self._connection.state == "open"

    async def deposit(self, member: str) -> None:
        """Hold a message that others get when this connection ends."""
        deposit = Deposit(self._connection)

        def got(delivery: Delivery) -> None:
            self._held = delivery
            deposit.came()

        options = words.queue_options(self._connection.server_properties)
        queue = self._names.will(member, self.life)
        self._channel = channel = await self._connection.channel(prefetch=1, confirms=False)
        await channel.declare_queue(queue, **options)
        await channel.consume(queue, got, on_cancel=self._broken)
        async with self._mouth() as mouth:
            mouth.publish(b"{}", routing_key=queue, properties=words.properties("will"))
            await deposit.held()
        self._wills = Wills(self._connection, self._names, self._died)
        self._renewing = asyncio.create_task(self._renew_loop(), name=f"will of {member}")

    def _broken(self, error: WarrenError) -> None:
        """Without a will others take us for dead. Better a new life than half of one."""
        if not self._closed and self._connection.state == "open":
            log.warning("%s begins anew: %s", self._connection, error)
            self._connection.link.abort()

    async def _renew_loop(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            held = self._held
            if held is None or held.stale:
                continue
            try:
                await self._write_anew(held.queue)
            except WarrenError as error:  # there is time for two more tries
                log.warning("%s can't renew its will yet: %s", self._connection, error)
            else:
                held.ack()

    async def _write_anew(self, queue: str) -> None:
        """Return when the broker has the next will: until then the old one must be held."""
        async with self._mouth() as mouth:
            await mouth.publish(b"{}", routing_key=queue, properties=words.properties("renewed"))

    @contextlib.asynccontextmanager
    async def _mouth(self) -> AsyncIterator[Channel]:
        """A channel to publish on, on a connection of its own."""
        addresses = [
            replace(each, name=f"{each.name} will".lstrip()) for each in self._connection.addresses
        ]
        voice = await Connection(addresses, reconnect=False).open()
        try:
            yield await voice.channel()
        finally:
            if voice.blocked is not None:  # it would not read our goodbye either
                voice.link.abort()
            await voice.close(wait=False)

    def watch(self, member: str, life: str) -> None:
        """Stand at a member's will, unless it is our own, or it left none."""
        if self._wills is not None and life and life != self.life:
            self._wills.watch(member, life)

    def forget(self, member: str) -> None:
        if self._wills is not None:
            self._wills.forget(member)

    async def close(self) -> None:
        self._closed = True
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        with contextlib.suppress(WarrenError):
            if self._wills is not None:
                await self._wills.close()
            if self._channel is not None:
                await self._channel.close()
