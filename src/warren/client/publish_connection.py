"""A blocking connection that reads while it writes.

A broker that hands messages back (basic.return) stops reading while we don't read, and one in an
alarm does not read at all: a plain ``sendall`` would hang in both.
"""

from __future__ import annotations

import select
import ssl
import time
from collections.abc import Callable

from warren.client.blocking import RECEIVE_BYTES, BlockingConnection

_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class PublishConnection(BlockingConnection):
    """A connection that reads while it writes."""

    def push(self, data: bytes, stuck: Callable[[], None]) -> None:
        """Write all of ``data`` and read what is there; ``stuck`` is called every now and then
        while the broker takes nothing, and raises when that has lasted too long.
        """
        self.flush()
        view = memoryview(data)
        self._socket.settimeout(0)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except _WOULD_BLOCK:
                if not self._take():
                    self._poll(select.POLLIN | select.POLLOUT)
                    stuck()
            except OSError as error:
                raise self._gone(str(error)) from None
        self.session.sent_at = time.monotonic()
        while self._take():
            continue

    def catch_up(self) -> None:
        """Read what is there and send a heartbeat if one is due; waits for nothing."""
        self._socket.settimeout(0)
        while self._take():
            continue
        self._tick()
        # Where nothing can be written, the broker has more than a heartbeat of ours to read.
        if self._poll(select.POLLOUT, 0):
            self.flush()

    def _poll(self, events: int, wait_ms: int = 100) -> bool:
        poll = select.poll()
        poll.register(self._socket, events)
        return bool(poll.poll(wait_ms))

    def _take(self) -> bool:
        """Work through one read, if there is something to read."""
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except _WOULD_BLOCK:
            return False
        except OSError as error:
            raise self._gone(str(error)) from None
        if not data:
            raise self._gone("the broker closed the connection")
        self.session.receive(data, time.monotonic())
        if self.session.state == "closed" and self.session.failure is not None:
            self.flush_quietly()
            raise self.session.failure
        return True
