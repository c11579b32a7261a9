"""Listening, and the rhythm of the broker: read, settle, write, wait."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from warren.broker.core import BrokerCore
from warren.config import BrokerConfig
from warren.errors import ConnectionForced
from warren.server.listening import listen_error
from warren.server.protocol import AmqpProtocol
from warren.server.tls import HANDSHAKE_TIMEOUT_S, TlsProtocol

T = TypeVar("T")

_BACKLOG = 4096
#: How long clients may take to answer when the broker stops.
_GOODBYE_S = 0.5


class Server:
    """A broker core with sockets."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.protocols: set[AmqpProtocol] = set()
        #: Connections that have something to say once the next batch is safe.
        self.waiting: set[AmqpProtocol] = set()
        self._listeners: list[asyncio.Server] = []
        self._loop: asyncio.AbstractEventLoop
        self._thread = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None
        self._again = False
        self._flushes = False
        #: Who waits for a batch to be safe, in order.
        self._syncs: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._empty = asyncio.Event()
        self._unwatch: Callable[[], None] = lambda: None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        port = await self._listen(lambda: AmqpProtocol(self), host, port)
        self._unwatch = self.core.clock.watch(
            lambda: self._in_loop(self.core.timers.next_deadline_ms),
            lambda: self._in_loop(self._tick),
        )
        self.core.opened = self._opened
        journal = self.core.journal
        if journal is not None:
            journal.call_back = self._call_back
            journal.on_committed = self._committed
            journal.watch_space()
            self.after_event()  # what expired while nobody was there
        return port

    async def start_tls(self, host: str, config: BrokerConfig, context: ssl.SSLContext) -> int:
        """Listen for TLS as well; returns the port."""
        verified = context.verify_mode != ssl.CERT_NONE

        def make() -> TlsProtocol:
            return TlsProtocol(self, verified=verified, login_from=config.tls_login_from)

        return await self._listen(make, host, config.tls_port, context)

    async def _listen(
        self,
        make: Callable[[], AmqpProtocol],
        host: str,
        port: int,
        context: ssl.SSLContext | None = None,
    ) -> int:
        try:
            listener = await self._loop.create_server(
                make,
                host,
                port,
                backlog=_BACKLOG,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if context is not None else None,
            )
        except (OSError, UnicodeError) as error:
            setting = "port" if context is None else "tls_port"
            raise listen_error(error, host, port, setting) from None
        self._listeners.append(listener)
        return int(listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the listener, tell the clients, and end."""
        self._unwatch()
        for listener in self._listeners:
            listener.close()
        for protocol in list(self.protocols):
            protocol.connection.session.close(
                ConnectionForced("broker forced connection closure with reason 'shutdown'")
            )
            protocol.connection.wants_write()
        self.after_event()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                await self._all_gone()
        for protocol in list(self.protocols):
            protocol.abort()
        await self._all_gone()
        await self._all_safe()
        if self._timer is not None:
            self._timer.cancel()
        for listener in self._listeners:
            await listener.wait_closed()
        self._listeners.clear()

    async def _all_gone(self) -> None:
        if self.protocols:
            self._empty.clear()
            await self._empty.wait()

    def gone(self, protocol: AmqpProtocol) -> None:
        """A connection has ended."""
        self.protocols.discard(protocol)
        if not self.protocols:
            self._empty.set()

    # -- the rhythm ------------------------------------------------------------------------------
    def after_event(self) -> None:
        """Something came in: settle, write, and see to the timer."""
        core = self.core
        core.settle()
        if core.journal is not None:
            core.journal.flush_early()
            if not self._flushes:
                # Once a turn of the loop: what all connections sent goes to the disk together.
                self._flushes = True
                self._loop.call_soon(self._flush)
        while core.outgoing:
            outgoing, core.outgoing = core.outgoing, {}
            for connection in outgoing:
                connection.shell.write()
        if (core.pending or core.dead_letters) and not self._again:
            # More to give out than one round may: let others have their turn first.
            self._again = True
            self._loop.call_soon(self._go_on)
        self.arm_timer()

    def _flush(self) -> None:
        self._flushes = False
        journal = self.core.journal
        if journal is None:
            return
        before = journal.committed
        journal.flush()
        if journal.committed > before and (self.waiting or self._syncs):
            # All that was to be written is undone: no batch will end the wait for it.
            self._committed()

    def _call_back(self, act: Callable[[], None]) -> None:
        """From the store's thread."""
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(act)

    def _committed(self) -> None:
        assert self.core.journal is not None
        committed = self.core.journal.committed
        for protocol in list(self.waiting):
            protocol.write_safe(committed)
        while self._syncs and self._syncs[0][0] <= committed:
            future = self._syncs.popleft()[1]
            if not future.done():  # it may have been given up
                future.set_result(None)
        self.after_event()

    async def synced(self) -> None:
        """Wait until everything that has happened by now is on disk."""
        journal = self.core.journal
        if journal is None:
            return
        barrier = journal.barrier
        journal.flush()
        if journal.committed < barrier:
            future = self._loop.create_future()
            self._syncs.append((barrier, future))
            await future

    async def _all_safe(self) -> None:
        """Wait until everything that happened is on disk."""
        journal = self.core.journal
        if journal is not None:
            self.core.stop()
        while journal is not None and not journal.idle and not journal.failed:
            journal.flush()
            await asyncio.sleep(0.001)

    def later(self, act: Callable[[], None]) -> None:
        """Soon, after other connections have had their turn."""
        self._loop.call_soon(act)

    def _go_on(self) -> None:
        self._again = False
        self.after_event()

    def _opened(self, connection: object) -> None:
        connection.shell.opened()  # type: ignore[attr-defined]

    # -- time ------------------------------------------------------------------------------------
    def arm_timer(self) -> None:
        """Keep one real timer for the broker's earliest deadline."""
        deadline = self.core.timers.next_deadline_ms()
        if deadline == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = deadline
        if deadline is not None and self.core.clock.runs:
            delay_ms = max(0, deadline - self.core.clock.monotonic_ms())
            self._timer = self._loop.call_later(delay_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = None
        self.core.tick()
        self.after_event()

    def _in_loop(self, act: Callable[[], T]) -> T:
        """Do something on the broker's own thread, and wait for it."""
        if threading.get_ident() == self._thread:
            return act()
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            try:
                future.set_result(act())
            except Exception as error:  # noqa: BLE001 - the caller's thread raises it
                future.set_exception(error)

        self._loop.call_soon_threadsafe(call)
        return future.result(10)
