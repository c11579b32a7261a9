"""How members that meet in etcd hear of deaths at once: through the broker they all work with.

A lease takes seconds to run out. So a member also leaves a will with the broker, as with the amqp
coordinator: the dispatcher stands second at everybody's will, and all others at the dispatcher's.
Who gets one ends the dead one's lease, and etcd tells the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable

from warren.client.channel import Channel
from warren.client.connection import Connection
from warren.client.delivery import Delivery
from warren.errors import WarrenError
from warren.groups.coordination import amqp_words as words
from warren.groups.coordination.amqp_wills import Deposit, Wills
from warren.groups.coordination.amqp_words import Names

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
        await channel.consume(queue, got)
        channel.publish(b"{}", routing_key=queue, properties=words.properties("will"))
        await deposit.held()
        self._wills = Wills(self._connection, self._names, self._died)
        self._renewing = asyncio.create_task(self._renew_loop(), name=f"will of {member}")

    async def _renew_loop(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            if self._channel is not None and self._held is not None and not self._held.stale:
                properties = words.properties("renewed")
                self._channel.publish(b"{}", routing_key=self._held.queue, properties=properties)
                self._held.ack()

    def watch(self, member: str, life: str) -> None:
        """Stand at a member's will, unless it is our own, or it left none."""
        if self._wills is not None and life and life != self.life:
            self._wills.watch(member, life)

    def forget(self, member: str) -> None:
        if self._wills is not None:
            self._wills.forget(member)

    async def close(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        with contextlib.suppress(WarrenError):
            if self._wills is not None:
                await self._wills.close()
            if self._channel is not None:
                await self._channel.close()
