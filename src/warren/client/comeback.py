"""Make a lost connection again, with all that was on it.

In this order: the connection, to whichever host answers; what was declared through it, all at
once; then each channel with its prefetch and its consumers. What the broker refuses for the time
being (an exclusive queue or consumer whose former connection it still believes in) is tried again
until it is there. Only the channels that consume from such a queue wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from warren.amqp import methods as m
from warren.client.backoff import Backoff
from warren.client.channel import Channel
from warren.client.dialing import dial_first
from warren.client.lane import Answer, Lane, Nobody
from warren.client.topology import changed
from warren.errors import (
    ConnectError,
    ConnectionLost,
    PreconditionFailed,
    Refusal,
    WarrenError,
)

if TYPE_CHECKING:
    from warren.client.connection import Connection

log = logging.getLogger(__name__)

#: A connection that lasted this long was a good one: the delays begin anew.
STEADY_S = 10.0
#: A refusal that time does not heal.
_FINAL = (PreconditionFailed,)


class Comeback:
    """Brings one connection back, as often as it is lost."""

    def __init__(self, connection: Connection, backoff: Backoff) -> None:
        self._connection = connection
        self._backoff = backoff
        self._tasks: set[asyncio.Task[None]] = set()
        self._attempt = 0
        self._up_since = 0.0
        #: What could not be declared again yet, in order.
        self._undeclared: list[m.Method] = []

    def start(self) -> None:
        """The connection is lost: bring it back."""
        self._run(self._come_back_loop(), "reconnect")

    async def stop(self) -> None:
        """Try no more."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self._connection.loop.create_task(work, name=f"warren {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- the connection --------------------------------------------------------------------------
    async def _come_back_loop(self) -> None:
        connection = self._connection
        if connection.loop.time() - self._up_since > STEADY_S:
            self._attempt = 0
        while connection.state == "down":
            await asyncio.sleep(self._backoff.delay_s(self._attempt + 1))
            self._attempt += 1
            if await self._try():
                self._up_since = connection.loop.time()
                connection.restored()
                return

    async def _try(self) -> bool:
        connection = self._connection
        # The next host first: the one that was lost is the least likely to answer.
        connection.addresses.append(connection.addresses.pop(0))
        try:
            dialed = await dial_first(connection.addresses, connection.properties)
        except ConnectError as error:
            log.warning("%s; trying again", error)
            return False
        if connection.state != "down":  # closed meanwhile
            dialed[0].close()
            return False
        connection.attach(dialed)
        try:
            await self._restore()
        except WarrenError as error:
            log.warning("lost again while coming back: %s", error)
            connection.link.abort()
            return False
        return True

    async def _restore(self) -> None:
        connection = self._connection
        self._undeclared = await self._declare_all(connection.topology.objects())
        # Asked for now: a queue may have got a new name.
        self._undeclared += await self._declare_all(connection.topology.bindings())
        if self._undeclared:
            self._run(self._declare_later_loop(), "declare again")
        await asyncio.gather(*(self._channel_again(each) for each in list(connection.channels)))
        if connection.link.session.finished:
            raise ConnectionLost(connection.address, "cut while channels were made again")

    # -- what was declared -----------------------------------------------------------------------
    async def _declare_all(self, methods: Sequence[m.Method]) -> list[m.Method]:
        """Declare these; returns those to be tried again."""
        refused: list[m.Method] = []
        while methods:
            methods = methods[await self._declare(methods, refused) :]
        return refused

    async def _declare_later_loop(self) -> None:
        generation, attempt = self._connection.generation, 0
        while self._undeclared:
            attempt += 1
            await asyncio.sleep(self._backoff.delay_s(attempt))
            if generation != self._connection.generation:
                return
            try:
                left = await self._declare_left()
            except WarrenError:
                return  # lost again: the loop that brings the connection back sees to it
            if generation != self._connection.generation:
                return
            self._undeclared = left

    async def _declare_left(self) -> list[m.Method]:
        # Of what is still wanted: meanwhile it may have been deleted, or declared by its owner.
        topology, before = self._connection.topology, {id(each) for each in self._undeclared}
        objects = [each for each in topology.objects() if id(each) in before]
        left = await self._declare_all(objects)
        # A queue that is there now may have got a new name, and its bindings with it.
        some_are_there = len(left) < len(objects)
        bindings = [each for each in topology.bindings() if some_are_there or id(each) in before]
        return left + await self._declare_all(bindings)

    async def _declare(self, methods: Sequence[m.Method], refused: list[m.Method]) -> int:
        """Declare all at once; returns how many are seen to, with the one that was refused."""
        connection = self._connection
        lane = Lane(connection.link, Nobody(), connection.generation)
        answers = [self._declaring(lane, method) for method in methods]
        lane.opening()
        for number, (method, answer) in enumerate(zip(methods, answers, strict=True)):
            try:
                ok = await answer
            except Refusal as refusal:
                if connection.link.session.finished:
                    raise
                log.warning("could not do %s again: %s", method.name, refusal)
                if not isinstance(refusal, _FINAL):
                    refused.append(method)
                return number + 1
            if isinstance(method, m.QueueDeclare) and isinstance(ok, m.QueueDeclareOk):
                self._renamed(method.queue, ok.queue)
        lane.close()
        return len(methods)

    def _declaring(self, lane: Lane, method: m.Method) -> asyncio.Future[Answer]:
        topology = self._connection.topology
        if isinstance(method, m.QueueDeclare) and topology.is_named_by_broker(method.queue):
            method = changed(method, queue="")
        return lane.call(method, m.METHODS[method.class_id, method.method_id + 1])

    def _renamed(self, old: str, new: str) -> None:
        if old == new:
            return
        self._connection.topology.renamed(old, new)
        for channel in self._connection.channels:
            for consumer in channel.consumers.values():
                if consumer.queue == old:
                    consumer.queue = new

    # -- channels --------------------------------------------------------------------------------
    async def _channel_again(self, channel: Channel, attempt: int = 0) -> None:
        if self._lacks_a_queue(channel):
            self._run(self._channel_later(channel, attempt), "channel again")
            return
        try:
            await channel.open()
        except Refusal as refusal:
            if self._connection.link.session.finished:
                return  # the connection's end, not the channel's
            if isinstance(refusal, _FINAL):
                channel.refused(refusal)
                return
            log.warning("%r can't be made again yet: %s", channel, refusal)
            self._run(self._channel_later(channel, attempt), "channel again")
        except WarrenError:
            return  # lost again: the loop that brings the connection back sees to it

    def _lacks_a_queue(self, channel: Channel) -> bool:
        """A queue that is still to be declared is no queue that somebody has deleted."""
        queues = {each.queue for each in self._undeclared if isinstance(each, m.QueueDeclare)}
        return any(consumer.queue in queues for consumer in channel.consumers.values())

    async def _channel_later(self, channel: Channel, attempt: int) -> None:
        generation = self._connection.generation
        await asyncio.sleep(self._backoff.delay_s(attempt + 1))
        if channel.closed is None and generation == self._connection.generation:
            await self._channel_again(channel, attempt + 1)
