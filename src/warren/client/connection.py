"""``connect`` and ``Connection``: a connection to a broker that comes back by itself.

Its life: ``connecting`` (``connect`` was awaited), ``open``, ``down`` (lost; it is being made
again), ``closed``. Each time it is made, ``generation`` grows by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any

from warren.amqp import methods as m
from warren.amqp.client import ClientSession
from warren.client.address import Address, parse_urls
from warren.client.backoff import Backoff
from warren.client.callbacks import call_each
from warren.client.channel import Channel
from warren.client.dial import Dialer
from warren.client.lane import Answer, Lane, Nobody
from warren.client.link import Link
from warren.client.topology import Topology, changed
from warren.errors import (
    ConnectError,
    ConnectionClosed,
    ConnectionLost,
    HostUnreachable,
    PreconditionFailed,
    Refusal,
    WarrenError,
)

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5.0
DIAL_GRACE_S = 2.0
#: A connection that lasted this long was a good one: the delays begin anew.
STEADY_S = 10.0
PREFETCH = 100
#: A refusal that time does not heal.
_FINAL = (PreconditionFailed,)

Dialed = tuple[socket.socket, ClientSession, Address]


def connect(
    url: str | Sequence[str] = "amqp://localhost",
    *,
    name: str | None = None,
    heartbeat_s: int | None = None,
    tls: ssl.SSLContext | None = None,
    connect_timeout_s: float | None = None,
    reconnect: bool = True,
    backoff: Backoff | None = None,
    properties: Mapping[str, Any] | None = None,
) -> Connection:
    """A connection to a broker, RabbitMQ or our own: await it, or use it in ``async with``.

    ``url`` may name several hosts (``amqp://user:password@one,two:5673/vhost``), or be a list of
    URLs: they are tried in turn. With ``reconnect`` the connection is made again when it is lost,
    with its channels, what was declared through it, and its consumers.

    Raises:
        ConfigError: the URL can't be used.
        ConnectError: no broker could be connected to (when awaited).
    """
    addresses = parse_urls(
        url, tls=tls, heartbeat_s=heartbeat_s, connect_timeout_s=connect_timeout_s, name=name
    )
    return Connection(addresses, reconnect=reconnect, backoff=backoff, properties=properties)


class Connection:
    """Made by ``connect``."""

    loop: asyncio.AbstractEventLoop
    #: The TCP connection there is.
    link: Link

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        reconnect: bool = True,
        backoff: Backoff | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.addresses = list(addresses)
        self.reconnects = reconnect
        self.state = "new"
        self.generation = 0
        #: Why the broker takes no publishes, None while it does.
        self.blocked: str | None = None
        self.topology = Topology()
        self.channels: dict[Channel, None] = {}
        self._backoff = backoff or Backoff()
        self._properties = dict(properties or {})
        if self.addresses[0].name:
            self._properties["connection_name"] = self.addresses[0].name
        self._on_lost: list[Callable[[WarrenError], None]] = []
        self._on_restored: list[Callable[[], None]] = []
        self._on_blocked: list[Callable[[str | None], None]] = []
        self._coming_back: asyncio.Task[None] | None = None
        self._restoring: set[asyncio.Task[None]] = set()
        self._attempt = 0
        self._up_since = 0.0
        #: Something could not be declared again, yet.
        self._undeclared = False
        self._ready: asyncio.Future[None] | None = None

    # -- life ------------------------------------------------------------------------------------
    async def open(self) -> Connection:
        """Connect; ``async with`` and ``await`` do it."""
        if self.state != "new":
            return self
        self.loop = asyncio.get_running_loop()
        self.state = "connecting"
        try:
            self._start(await self._dial())
        except BaseException:
            self.state = "new"
            raise
        return self

    def __await__(self) -> Generator[Any, None, Connection]:
        return self.open().__await__()

    async def __aenter__(self) -> Connection:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(wait=kind is None)

    async def close(self, *, wait: bool = True) -> None:
        """Close it, after the answers to what was published (``wait``) and the broker's goodbye."""
        if self.state in ("closed", "new"):
            self.state = "closed"
            return
        if wait and self.state == "open" and self.blocked is None:
            await self._last_confirms()
        self.state, self.reconnects = "closed", False
        for task in [self._coming_back, *self._restoring]:
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        for channel in list(self.channels):
            channel.leave()
        if not self.link.session.finished:
            await self._goodbye()
        self._wake()

    async def _last_confirms(self) -> None:
        waiting = [channel for channel in self.channels if channel.unconfirmed]
        if waiting:
            every = asyncio.gather(*(each.confirmed() for each in waiting), return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(every, CLOSE_TIMEOUT_S)

    async def _goodbye(self) -> None:
        link = self.link
        link.close()
        try:
            await asyncio.wait_for(link.ended.wait(), CLOSE_TIMEOUT_S)
        except TimeoutError:
            log.warning("%s: no answer to connection.close", link.address)
        finally:
            link.abort()

    @property
    def address(self) -> str:
        """Host and port of the broker it is, or was, connected to."""
        return self.link.address if self.generation else str(self.addresses[0])

    @property
    def server_properties(self) -> Mapping[str, Any]:
        """What the broker said about itself."""
        return self.link.session.server_properties

    # -- channels --------------------------------------------------------------------------------
    async def channel(
        self, *, prefetch: int = PREFETCH, confirms: bool = True, republish: bool = False
    ) -> Channel:
        """Open a channel.

        ``prefetch`` is how many unsettled messages each of its consumers may have (0: no limit),
        ``confirms`` whether the broker answers publishes, ``republish`` whether publishes that
        had no answer when the connection was lost are sent again.
        """
        while True:
            await self.ready()
            channel = Channel(self, prefetch=prefetch, confirms=confirms, republish=republish)
            self.channels[channel] = None
            try:
                await channel.open()
            except BaseException as error:
                self.forget(channel)
                if isinstance(error, WarrenError) and self.state == "down":
                    continue  # it was the connection's end, not the channel's
                raise
            return channel

    async def ready(self) -> None:
        """Wait until it is open.

        Raises:
            ConnectionClosed: it was closed.
        """
        while self.state != "open":
            if self.state in ("closed", "new"):
                raise ConnectionClosed(self.address)
            if self._ready is None or self._ready.done():
                self._ready = self.loop.create_future()
            await asyncio.shield(self._ready)

    def _wake(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def forget(self, channel: Channel) -> None:
        self.channels.pop(channel, None)

    # -- telling ---------------------------------------------------------------------------------
    def on_lost(self, callback: Callable[[WarrenError], None]) -> None:
        """Have ``callback`` called with the reason when the connection is lost."""
        self._on_lost.append(callback)

    def on_restored(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called when the connection is there again, channels and all."""
        self._on_restored.append(callback)

    def on_blocked(self, callback: Callable[[str | None], None]) -> None:
        """Have ``callback`` called with the reason when the broker blocks publishers, or None."""
        self._on_blocked.append(callback)

    def link_blocked(self, reason: str | None) -> None:
        log.log(
            logging.WARNING if reason else logging.INFO,
            "%s: publishing is %s",
            self.address,
            f"blocked: {reason}" if reason else "possible again",
        )
        self.blocked = reason
        if reason is None:
            for channel in list(self.channels):
                channel.resume()
        call_each(self._on_blocked, reason)

    def link_lost(self, link: Link, error: WarrenError) -> None:
        if link is not self.link or self.state == "closed":
            return
        if self.blocked is not None:
            self.blocked = None
        if self.state == "open":
            log.warning("%s", error)
            self.state = "down" if self.reconnects else "closed"
            if self.reconnects:
                self._coming_back = self.loop.create_task(
                    self._come_back_loop(), name=f"warren reconnect {link.address}"
                )
            call_each(self._on_lost, error)
        self._wake()

    # -- connecting ------------------------------------------------------------------------------
    def _start(self, dialed: Dialed) -> None:
        sock, session, address = dialed
        self.link = Link(sock, session, self, str(address))
        self.link.start()
        self.generation += 1
        self.state = "open"
        log.info("connected to %s as generation %d", address, self.generation)

    async def _dial(self) -> Dialed:
        """Try each address once."""
        errors: list[ConnectError] = []
        for address in self.addresses:
            try:
                return await self._dial_one(address)
            except ConnectError as error:
                errors.append(error)
                log.debug("%s", error)
        if len(errors) == 1:
            raise errors[0]
        # The most telling one: a login that is refused says more than a host that is down.
        telling = [error for error in errors if not isinstance(error, HostUnreachable)]
        raise (
            telling[0]
            if telling
            else HostUnreachable(
                ", ".join(str(address) for address in self.addresses),
                "; ".join(dict.fromkeys(error.args[1] for error in errors)),
            )
        )

    async def _dial_one(self, address: Address) -> Dialed:
        dialer = Dialer(address, self._properties)
        loop = self.loop
        future: asyncio.Future[Dialed] = loop.create_future()

        def done(dialed: Dialed | None, error: Exception | None) -> None:
            if future.done():
                if dialed is not None:
                    dialed[0].close()
            elif error is not None:
                future.set_exception(error)
            elif dialed is not None:
                future.set_result(dialed)

        def dial() -> None:
            dialed, failure = None, None
            try:
                dialed = (*dialer.dial(), address)
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                failure = error
            try:
                loop.call_soon_threadsafe(done, dialed, failure)
            except RuntimeError:  # the loop is closed
                if dialed is not None:
                    dialed[0].close()

        threading.Thread(target=dial, name=f"warren dial {address}", daemon=True).start()
        try:
            # The dialer keeps its own time, but for the lookup of a name.
            return await asyncio.wait_for(future, address.connect_timeout_s + DIAL_GRACE_S)
        except TimeoutError:
            dialer.abort()
            reason = f"no answer within {address.connect_timeout_s:g} s"
            raise HostUnreachable(str(address), reason) from None
        except asyncio.CancelledError:
            dialer.abort()
            raise

    # -- coming back -----------------------------------------------------------------------------
    async def _come_back_loop(self) -> None:
        if self.loop.time() - self._up_since > STEADY_S:
            self._attempt = 0
        while self.state == "down":
            await asyncio.sleep(self._backoff.delay_s(self._attempt))
            self._attempt += 1
            # The next host first: the one that was lost is the least likely to answer.
            self.addresses.append(self.addresses.pop(0))
            try:
                dialed = await self._dial()
            except ConnectError as error:
                log.warning("%s; trying again", error)
                continue
            self._start(dialed)
            self.state = "down"  # until everything is there again
            try:
                await self._restore()
            except WarrenError as error:
                log.warning("lost again while coming back: %s", error)
                self.link.abort()
                continue
            self.state, self._up_since = "open", self.loop.time()
            self._wake()
            call_each(self._on_restored)
            return

    async def _restore(self) -> None:
        await self._declare_again()
        await asyncio.gather(*(self._channel_again(channel) for channel in list(self.channels)))
        if self.link.session.finished:
            raise ConnectionLost(self.address, "cut while channels were made again")

    async def _declare_again(self) -> None:
        self._undeclared = False
        for declarations in (self.topology.objects, self.topology.bindings):
            left = declarations()
            while left:
                left = left[await self._declare(left) :]

    async def _declare(self, methods: Sequence[m.Method]) -> int:
        """Declare all at once; returns how many are seen to, with the one that was refused."""
        lane = Lane(self.link, Nobody(), self.generation)
        answers = [self._declaring(lane, method) for method in methods]
        lane.opening()
        for number, (method, answer) in enumerate(zip(methods, answers, strict=True)):
            try:
                ok = await answer
            except Refusal as refusal:
                if self.link.session.finished:
                    raise
                log.warning("could not do %s again: %s", method.name, refusal)
                self._undeclared = self._undeclared or not isinstance(refusal, _FINAL)
                return number + 1
            if isinstance(method, m.QueueDeclare) and isinstance(ok, m.QueueDeclareOk):
                self._renamed(method.queue, ok.queue)
        lane.close()
        return len(methods)

    def _declaring(self, lane: Lane, method: m.Method) -> asyncio.Future[Answer]:
        if isinstance(method, m.QueueDeclare) and self.topology.is_named_by_broker(method.queue):
            method = changed(method, queue="")
        return lane.call(method, m.METHODS[method.class_id, method.method_id + 1])

    def _renamed(self, old: str, new: str) -> None:
        if old == new:
            return
        self.topology.renamed(old, new)
        for channel in self.channels:
            for consumer in channel.consumers.values():
                if consumer.queue == old:
                    consumer.queue = new

    async def _channel_again(self, channel: Channel, attempt: int = 0) -> None:
        try:
            await channel.open()
        except Refusal as refusal:
            if self.link.session.finished:
                return  # the connection's end, not the channel's
            if isinstance(refusal, _FINAL):
                channel.refused(refusal)
                return
            # Such as an exclusive consumer whose former connection the broker still believes in.
            log.warning("%r can't be made again yet: %s", channel, refusal)
            task = self.loop.create_task(
                self._channel_later(channel, attempt), name="warren channel again"
            )
            self._restoring.add(task)
            task.add_done_callback(self._restoring.discard)
        except WarrenError:
            return  # lost again: the loop that brings the connection back sees to it

    async def _channel_later(self, channel: Channel, attempt: int) -> None:
        generation = self.generation
        await asyncio.sleep(self._backoff.delay_s(attempt))
        if channel.closed is not None or generation != self.generation:
            return
        try:
            if self._undeclared:  # an exclusive queue is there only once it is declared again
                await self._declare_again()
        except WarrenError:
            return
        if generation == self.generation:
            await self._channel_again(channel, attempt + 1)

    def __repr__(self) -> str:
        return f"<connection to {self.address}, {self.state}>"
