"""One TCP connection: carries bytes between the socket and the session."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from warren.broker.connection import BrokerConnection
from warren.broker.timers import Timer

if TYPE_CHECKING:
    from warren.server.server import Server

log = logging.getLogger(__name__)

#: A peer must have opened its connection by then, as in RabbitMQ.
HANDSHAKE_TIMEOUT_MS = 10_000
#: How long a peer may take to answer connection.close, or to read what is left.
CLOSING_TIMEOUT_MS = 30_000
#: A peer that failed to log in waits this long for the end of its connection.
SILENT_CLOSE_MS = 1_000
#: Octets the kernel has not taken yet, above which nothing more is given out.
HIGH_WATER = 1 << 20


class AmqpProtocol(asyncio.Protocol):
    """Decides nothing: the session and the broker do."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport
        self.connection: BrokerConnection
        self._paused_writing = False
        self._reading = True
        self._wrote = False
        self._closing = False
        self._waits_for_close_ok = False
        self._first_beat = True
        self._kept_back: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._timer: Timer | None = None

    # -- from asyncio ----------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        core = self._server.core
        self.connection = core.connect(
            _address(transport.get_extra_info("peername")),
            _address(transport.get_extra_info("sockname")),
        )
        self.connection.shell = self
        self._server.protocols.add(self)
        self._timer = core.timers.after(HANDSHAKE_TIMEOUT_MS, self._handshake_over)
        self._server.arm_timer()

    def data_received(self, data: bytes) -> None:
        connection = self.connection
        try:
            connection.session.receive(data)
        except Exception:
            log.exception("%s: the broker failed over what the client sent", connection.name)
            connection.session.fail()
        connection.core.outgoing[connection] = None
        self._server.after_event()
        if connection.session.holds:
            self._watch_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._closing = True
        self._server.waiting.discard(self)
        self._server.gone(self)
        self.connection.session.lost()
        self._server.after_event()

    def pause_writing(self) -> None:
        # What it sends is still heard (it may be alive), but not worked on: that would make
        # more output.
        self._paused_writing = True
        self.connection.budget = 0
        self.connection.session.hold("unread")
        self._watch_reading()

    def resume_writing(self) -> None:
        self._paused_writing = False
        self.connection.refill()
        self._server.later(self._go_on)
        self._server.after_event()

    # -- from the broker -------------------------------------------------------------------------
    def write(self) -> None:
        """Hand everything the session has to say to the socket."""
        session = self.connection.session
        if session.aside and not self._transport.is_closing():
            self._write_aside()
        if session.out and not self._transport.is_closing():
            self._send(session.data_to_send())
        if self._kept_back:
            return
        if not self._paused_writing:
            self.connection.refill()
            if "unread" in session.holds:
                self._server.later(self._go_on)
        if session.reset:
            self._transport.abort()
        elif session.state in ("closing", "closed") and not self._closing:
            self._close()

    def _send(self, data: bytes) -> None:
        """To the socket, or behind what waits for the disk."""
        if self._waits_for_disk():
            self._kept_back.append((self.connection.barrier, data))
            self._kept_bytes += len(data)
            self._server.waiting.add(self)
            if self._kept_bytes > HIGH_WATER:
                self.connection.session.hold("disk")
                self._watch_reading()
            return
        self._transport.write(data)
        self._wrote = True

    def _waits_for_disk(self) -> bool:
        journal = self._server.core.journal
        return journal is not None and (
            bool(self._kept_back) or self.connection.barrier > journal.committed
        )

    def _write_aside(self) -> None:
        """Heartbeats and connection.blocked must not wait for a disk that hangs."""
        session = self.connection.session
        if session.out and not self._waits_for_disk():
            return
        self._transport.write(b"".join(session.aside))
        session.aside.clear()
        self._wrote = True

    def write_safe(self, committed: int) -> None:
        """Batches up to this number are safe: say what waited for them."""
        while self._kept_back and self._kept_back[0][0] <= committed:
            data = self._kept_back.popleft()[1]
            self._kept_bytes -= len(data)
            if not self._transport.is_closing():
                self._transport.write(data)
                self._wrote = True
        if not self._kept_back:
            self._server.waiting.discard(self)
            self.write()
            if "disk" in self.connection.session.holds:
                self._server.later(self._go_on)

    def reading_changed(self) -> None:
        """The broker has blocked the client, or lets it go on."""
        self._watch_reading()

    def opened(self) -> None:
        """The handshake is done: from now on the heartbeat watches over the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._first_beat = True
        self._beat_later()

    # -- inside ----------------------------------------------------------------------------------
    def _go_on(self) -> None:
        """Work through what came while the client was not listened to."""
        if self._paused_writing or self._kept_back or self._transport.is_closing():
            return
        session = self.connection.session
        session.holds -= {"unread", "disk"}
        heard = session.heard
        self.data_received(b"")
        session.heard = heard  # nothing new came
        self._watch_reading()

    def _watch_reading(self) -> None:
        """Read unless the client is blocked, or has sent enough for the time being."""
        session = self.connection.session
        enough = session.held and session.unread_bytes > HIGH_WATER
        wanted = not enough and not self.connection.blocked
        if wanted == self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _beat_later(self) -> None:
        heartbeat_s = self.connection.session.heartbeat_s
        if heartbeat_s:
            self._timer = self._server.core.timers.after(heartbeat_s * 500, self._beat)

    def _beat(self) -> None:
        if self.connection.blocked:
            self.connection.session.heard = True  # it is us who don't listen
        wrote, self._first_beat = self._wrote and not self._first_beat, False
        if not self.connection.session.beat(wrote):
            self._transport.abort()
            return
        self.write()
        self._wrote = False  # a heartbeat is no reason to leave out the next
        self._beat_later()

    def _handshake_over(self) -> None:
        if self.connection.session.state != "running":
            self._transport.abort()

    def _close(self) -> None:
        session = self.connection.session
        timers = self._server.core.timers
        if session.state == "closed":
            self._closing = True
            if self._timer is not None:
                self._timer.cancel()
            if session.silent_close:
                self._timer = timers.after(SILENT_CLOSE_MS, self._end)
            else:
                self._end()
        elif not self._waits_for_close_ok:
            self._waits_for_close_ok = True
            if not self._reading:
                self._reading = True
                self._transport.resume_reading()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = timers.after(self._patience_ms(), self._transport.abort)

    def _patience_ms(self) -> int:
        """How long a peer may take to answer our close, as RabbitMQ reckons it."""
        heartbeat_s = self.connection.session.heartbeat_s
        return min(heartbeat_s * 1000 or CLOSING_TIMEOUT_MS, CLOSING_TIMEOUT_MS)

    def _end(self) -> None:
        self._transport.close()
        self._timer = self._server.core.timers.after(CLOSING_TIMEOUT_MS, self._transport.abort)

    def abort(self) -> None:
        """Cut the connection at once."""
        self._transport.abort()


def _address(value: Any) -> tuple[str, int]:
    return (str(value[0]), int(value[1])) if value else ("", 0)
