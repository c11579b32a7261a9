"""One TCP connection in the event loop: carries bytes between the socket and the session.

The socket is ours, not a transport's, for one reason: heartbeats must go out while the event loop
is blocked, so another thread must be able to write a whole frame, and to know that no other frame
is half written. ``_lock`` guards the socket and what is left to write; it is held for the time of
a system call that does not wait.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
import time
from typing import Protocol

from warren.amqp import methods as m
from warren.amqp.client import ClientSession
from warren.amqp.frames import HEARTBEAT_FRAME
from warren.client.heart import HEART
from warren.errors import ConnectionClosed, ConnectionLost, WarrenError

log = logging.getLogger(__name__)

READ_SIZE = 1 << 18
#: Reads in a row over TLS, which gives out 16 KiB at most at a time.
TLS_READS = 16
#: Octets that are handed to the socket without waiting for the end of the loop's turn.
WRITE_SOON = 1 << 16
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Owner(Protocol):
    """Who is told what happens to the connection as a whole."""

    def link_blocked(self, reason: str | None) -> None: ...

    def link_lost(self, link: Link, error: WarrenError) -> None: ...


class Flushable(Protocol):
    def flush(self) -> None: ...


class Link:
    """A socket with a running session, from the end of the handshake to the end of the socket."""

    def __init__(
        self, sock: socket.socket, session: ClientSession, owner: Owner, address: str
    ) -> None:
        self.session = session
        self.address = address
        self.thread = threading.get_ident()
        self.loop = asyncio.get_running_loop()
        #: Lanes with acks to send, in the order in which they came.
        self.dirty: dict[Flushable, None] = {}
        self.turn_began = 0.0
        self.ended = asyncio.Event()
        self._owner = owner
        self._socket = sock
        self._file = sock.fileno()
        self._reads = TLS_READS if isinstance(sock, ssl.SSLSocket) else 1
        self._lock = threading.Lock()
        self._unsent = bytearray()
        self._out_bytes = 0
        self._scheduled = False
        self.reading = False
        self._open = True
        self._overslept = False
        self._watching_writes = False
        self._timer: asyncio.TimerHandle | None = None
        self._room: asyncio.Future[None] | None = None
        session.handler = self

    def start(self) -> None:
        self._socket.setblocking(False)
        self.session.heard_at = time.monotonic()
        self.loop.add_reader(self._file, self._readable)
        self._judge_later()
        HEART.add(self)

    # -- writing ---------------------------------------------------------------------------------
    def schedule(self) -> None:
        """Write what there is at the end of this turn of the loop."""
        if not self._scheduled and not self.reading:
            self._scheduled = True
            self.loop.call_soon(self.flush)

    def wrote(self, size: int) -> None:
        """So many octets were added to the session's output."""
        self._out_bytes += size
        if self._out_bytes > WRITE_SOON:
            self.flush()
        elif not self._scheduled and not self.reading:
            self._scheduled = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Hand everything there is to say to the socket."""
        self._scheduled = False
        self._out_bytes = 0
        if self.dirty:
            dirty, self.dirty = self.dirty, {}
            for lane in dirty:
                lane.flush()
        if self.session.out and self._open:
            now = time.monotonic()
            if self.overslept(now):
                self._give_up()
                return
            self._write(self.session.data_to_send(now))
        if self.session.finished:
            self._finish()

    def _write(self, data: bytes) -> None:
        try:
            with self._lock:
                if self._unsent:
                    self._unsent += data
                    return
                sent = self._send(data)
                if sent < len(data):
                    self._unsent += memoryview(data)[sent:]
                    self._watch_writing()
        except OSError as error:
            self._broken(error)

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self._socket.send(data)
        except _NOT_NOW:
            return 0

    def _watch_writing(self) -> None:
        if not self._watching_writes and self._open:
            self._watching_writes = True
            self.loop.add_writer(self._file, self._writable)

    def _writable(self) -> None:
        try:
            with self._lock:
                del self._unsent[: self._send(self._unsent)]
                empty = not self._unsent
        except OSError as error:
            self._broken(error)
            return
        if empty:
            self._watching_writes = False
            self.loop.remove_writer(self._file)
            if self._room is not None and not self._room.done():
                self._room.set_result(None)
            if self.session.finished:
                self._finish()

    @property
    def unsent_bytes(self) -> int:
        """What the socket has not taken yet."""
        return len(self._unsent) + self._out_bytes

    async def room(self) -> None:
        """Wait until the socket has taken everything."""
        while self._unsent and self._open:
            if self._room is None or self._room.done():
                self._room = self.loop.create_future()
            await asyncio.shield(self._room)

    # -- heartbeats, called by another thread ----------------------------------------------------
    def next_beat(self) -> float:
        session = self.session
        if not session.heartbeat_s or not self._open:
            return float("inf")
        return session.sent_at + session.heartbeat_s / 2

    def beat(self, now: float) -> None:
        if self.loop.is_closed():
            # Nobody will ever read again: the broker must not believe in us.
            HEART.discard(self)
            self._socket.close()
            return
        if self.overslept(now):
            self.session.sent_at = float("inf")  # no beat any more
            self.loop.call_soon_threadsafe(self._give_up)
            return
        self.session.sent_at = now
        try:
            with self._lock:
                if not self._open:
                    return
                if self._unsent:
                    # The loop may be blocked: bring on what it left half said.
                    del self._unsent[: self._send(self._unsent)]
                    return
                sent = self._send(HEARTBEAT_FRAME)
                if 0 < sent < len(HEARTBEAT_FRAME):
                    self._unsent += HEARTBEAT_FRAME[sent:]
                    self.loop.call_soon_threadsafe(self._watch_writing)
        except OSError:
            return  # the loop finds out by itself
        except RuntimeError:
            log.debug("%s: the event loop is closed", self.address)

    # -- reading ---------------------------------------------------------------------------------
    def _readable(self) -> None:
        self.reading = True
        try:
            for _ in range(self._reads):
                data = self._receive()
                if data is None:
                    break
                self.turn_began = time.monotonic()
                self.session.receive(data, self.turn_began)
                if not self._open:
                    break
        finally:
            self.reading = False
        self.flush()

    def _receive(self) -> bytes | None:
        """What there is to read; None if there is nothing, or never will be."""
        try:
            with self._lock:
                data = self._socket.recv(READ_SIZE)
        except _NOT_NOW:
            return None
        except OSError as error:
            self._broken(error)
            return None
        if not data:
            self._lose("the broker hung up")
            return None
        return data

    def _judge_later(self) -> None:
        heartbeat_s = self.session.heartbeat_s
        if heartbeat_s:
            due = self.session.heard_at + heartbeat_s * 2 - time.monotonic()
            delay = max(due, 0.05)
            self._timer = self.loop.call_later(delay, self._judge, time.monotonic() + delay)

    def _judge(self, expected: float) -> None:
        """Is the broker still there? After a blocked loop, hear what it said meanwhile first."""
        session = self.session
        now = time.monotonic()
        if now >= session.heard_at + session.heartbeat_s * 2:
            self._readable()
            if not self._open:
                return
            if now - expected > session.heartbeat_s / 2:
                session.heard_at = max(session.heard_at, now - session.heartbeat_s)
            if now >= session.heard_at + session.heartbeat_s * 2:
                self._lose(f"no heartbeat within {session.heartbeat_s * 2} s")
                return
        self._judge_later()

    # -- from the session ------------------------------------------------------------------------
    def opened(self) -> None: ...

    def method(self, method: m.Method) -> None: ...

    def blocked(self, reason: str) -> None:
        self._owner.link_blocked(reason)

    def unblocked(self) -> None:
        self._owner.link_blocked(None)

    def closed(self, error: WarrenError | None) -> None:
        self._owner.link_lost(self, error or ConnectionClosed(self.address))
        self.schedule()  # close-ok, then the socket

    # -- the end ---------------------------------------------------------------------------------
    def close(self) -> None:
        """Say goodbye; ``ended`` is set when the broker has said so too."""
        self.session.close()
        self.schedule()

    def overslept(self, now: float) -> bool:
        """Whether we said nothing for so long that the broker may have given us up.

        As after SIGSTOP, or a suspended machine: whatever it gave us may be somebody else's now.
        Once true it stays so: all that we say is said after a look at this.
        """
        if not self._overslept and self.session.heartbeat_s:
            self._overslept = now - self.session.sent_at >= 2 * self.session.heartbeat_s
        return self._overslept

    def _give_up(self) -> None:
        self._lose(f"nothing was sent for {2 * self.session.heartbeat_s} s or more")

    def abort(self) -> None:
        """End at once."""
        self._lose("given up")

    def _broken(self, error: OSError) -> None:
        self._lose(error.strerror or str(error))

    def _lose(self, reason: str) -> None:
        self._cut()
        self.session.lost(ConnectionLost(self.address, reason))

    def _finish(self) -> None:
        if not self._unsent:
            self._cut()

    def _cut(self) -> None:
        if not self._open:
            return
        with self._lock:
            self._open = False
        HEART.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.loop.remove_reader(self._file)
        if self._watching_writes:
            self.loop.remove_writer(self._file)
        self._socket.close()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        self.ended.set()

    def __repr__(self) -> str:
        return f"<link to {self.address}>"
