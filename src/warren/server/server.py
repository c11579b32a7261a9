"""Listening, and the rhythm of the broker: read, settle, write, wait."""

from __future__ import annotations

import asyncio
import errno
import threading

from warren.broker.core import BrokerCore
from warren.errors import ConnectionForced, ListenError
from warren.server.protocol import AmqpProtocol

_BACKLOG = 4096


class Server:
    """A broker core with sockets."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.protocols: set[AmqpProtocol] = set()
        self._listener: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop
        self._thread = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None
        self._again = False

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        try:
            self._listener = await self._loop.create_server(
                lambda: AmqpProtocol(self), host, port, backlog=_BACKLOG
            )
        except OSError as error:
            raise ListenError(host, port, _explain(error)) from None
        self.core.clock.on_jump(self._time_moved)
        self.core.opened = self._opened
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the listener, tell the clients, and end."""
        if self._listener is not None:
            self._listener.close()
        for protocol in list(self.protocols):
            protocol.connection.session.close(
                ConnectionForced("broker forced connection closure with reason 'shutdown'")
            )
            protocol.connection.wants_write()
        self.after_event()
        deadline = self._loop.time() + 0.5
        while self.protocols and self._loop.time() < deadline:
            await asyncio.sleep(0.005)
        for protocol in list(self.protocols):
            protocol.abort()
        if self._timer is not None:
            self._timer.cancel()
        while self.protocols:
            await asyncio.sleep(0)
        if self._timer is not None:
            self._timer.cancel()
        if self._listener is not None:
            await self._listener.wait_closed()

    # -- the rhythm ------------------------------------------------------------------------------
    def after_event(self) -> None:
        """Something came in: settle, write, and see to the timer."""
        core = self.core
        core.settle()
        while core.outgoing:
            outgoing, core.outgoing = core.outgoing, {}
            for connection in outgoing:
                connection.shell.write()
        if core.pending and not self._again:
            # More to give out than one round may: let others have their turn first.
            self._again = True
            self._loop.call_soon(self._go_on)
        self.arm_timer()

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

    def _time_moved(self) -> None:
        """Run what a jump of the clock made due; returns when it is done."""
        if threading.get_ident() == self._thread:
            self._tick()
            return
        done = threading.Event()

        def tick() -> None:
            try:
                self._tick()
            finally:
                done.set()

        self._loop.call_soon_threadsafe(tick)
        done.wait(10)


def _explain(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is taken (another broker? choose one with --port, or 0 for any)"
    if error.errno == errno.EACCES:
        return "not allowed (ports below 1024 need root)"
    return error.strerror or str(error)
