"""``connect`` and ``Connection``: a connection to a broker that comes back by itself.

Its life: ``connecting`` (``connect`` was awaited), ``open``, ``down`` (lost; it is being made
again), ``closed``. Each time it is made, ``generation`` grows by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any

from warren.amqp.content import HEADER_START
from warren.amqp.frames import OVERHEAD
from warren.amqp.properties import Properties, encode_properties
from warren.client.address import Address, parse_urls
from warren.client.backoff import COMING_BACK, Backoff
from warren.client.callbacks import call_each
from warren.client.channel import Channel
from warren.client.comeback import Comeback
from warren.client.dialing import Dialed, dial_first
from warren.client.link import Link
from warren.client.topology import Topology
from warren.errors import (
    ConnectionClosed,
    WarrenError,
)

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5.0
PREFETCH = 100
#: As many as there are, where neither side sets a limit.
CHANNEL_NUMBERS = 65_535


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
        self.properties = dict(properties or {})
        if self.addresses[0].name:
            self.properties["connection_name"] = self.addresses[0].name
        self._comeback = Comeback(self, backoff or COMING_BACK)
        self._on_lost: list[Callable[[WarrenError], None]] = []
        self._on_restored: list[Callable[[], None]] = []
        self._on_blocked: list[Callable[[str | None], None]] = []
        self._ready: asyncio.Future[None] | None = None

    # -- life ------------------------------------------------------------------------------------
    async def open(self) -> Connection:
        """Connect; ``async with`` and ``await`` do it."""
        if self.state != "new":
            return self
        self.loop = asyncio.get_running_loop()
        self.state = "connecting"
        try:
            self.attach(await dial_first(self.addresses, self.properties))
        except BaseException:
            self.state = "new"
            raise
        self.state = "open"
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
        await self._comeback.stop()
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
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await every

    async def _goodbye(self) -> None:
        link = self.link
        link.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await link.ended.wait()
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

    @property
    def channel_max(self) -> int:
        """How many channels it may have, as agreed with the broker."""
        return self.link.session.channel_max or CHANNEL_NUMBERS

    def fits(self, properties: Properties, spare: int = 0) -> bool:
        """Whether a message can have these properties, and ``spare`` octets more.

        They go in one frame. A broker closes the connection over one that is larger than agreed.
        """
        limit = self.link.session.frame_max
        size = HEADER_START.size + len(encode_properties(properties)) + OVERHEAD
        return limit == 0 or size + spare <= limit

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
                self._comeback.start()
            call_each(self._on_lost, error)
        self._wake()

    # -- connecting ------------------------------------------------------------------------------
    def attach(self, dialed: Dialed) -> None:
        """Go on with a new TCP connection; for what makes it."""
        sock, session, address = dialed
        self.link = Link(sock, session, self, str(address))
        self.link.start()
        self.generation += 1
        log.info("connected to %s as generation %d", address, self.generation)

    def restored(self) -> None:
        """Everything is there again."""
        self.state = "open"
        self._wake()
        call_each(self._on_restored)

    def __repr__(self) -> str:
        return f"<connection to {self.address}, {self.state}>"
