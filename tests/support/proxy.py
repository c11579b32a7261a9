"""A TCP proxy between a client and its broker that can cut, stall, slow down and refuse.

::

    with Proxy(broker.host, broker.port) as proxy:
        connection = await warren.connect(proxy.url)
        proxy.cut()       # both sides see a reset
        proxy.stall()     # half open: nothing passes any more, and nobody is told
        proxy.resume()    # what was stalled passes now
        proxy.freeze()    # half open for good, those that are there now; new ones pass
        proxy.delay(0.2)  # every piece takes this long, each way
        proxy.refuse()    # nobody can connect; accept() ends it
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from types import TracebackType

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset
_PIECE = 65536
Pair = tuple[socket.socket, socket.socket]


class Proxy:
    """Listens on a port of its own for as long as the ``with`` block lasts."""

    def __init__(self, host: str, port: int, *, user: str = "guest:guest") -> None:
        self._target = (host, port)
        self._user = user
        self._delay_s = 0.0
        self._passing = threading.Event()
        self._passing.set()
        self._stopping = threading.Event()
        self._pairs: dict[Pair, threading.Event] = {}  # with the gate that freezes it
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._listener = self._listen(0)
        self.port = int(self._listener.getsockname()[1])
        #: How many connections were let through so far.
        self.accepted = 0

    @property
    def url(self) -> str:
        return f"amqp://{self._user}@127.0.0.1:{self.port}/"

    @property
    def connections(self) -> int:
        """How many there are now."""
        with self._lock:
            return len(self._pairs)

    # -- faults ----------------------------------------------------------------------------------
    def cut(self) -> int:
        """Reset every connection; returns how many there were."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._end(pair)
        return len(pairs)

    def stall(self) -> None:
        self._passing.clear()

    def resume(self) -> None:
        self._passing.set()

    def freeze(self) -> None:
        """Let nothing of the present connections pass any more, not even their end."""
        with self._lock:
            for gate in self._pairs.values():
                gate.clear()

    def delay(self, seconds: float) -> None:
        self._delay_s = seconds

    def refuse(self) -> None:
        """Stop listening: new connections are refused, those that are there stay."""
        _close_listener(self._listener)

    def accept(self) -> None:
        """Listen again, on the same port."""
        self._listener = self._listen(self.port)
        self._start(self._accept_loop, self._listener)

    # -- life ------------------------------------------------------------------------------------
    def __enter__(self) -> Proxy:
        self._start(self._accept_loop, self._listener)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._passing.set()
        _close_listener(self._listener)
        self.cut()
        for thread in self._threads:
            thread.join(10)

    @staticmethod
    def _listen(port: int) -> socket.socket:
        return socket.create_server(("127.0.0.1", port), backlog=128)

    def _start(self, target: object, *arguments: object) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=target, args=arguments, name="proxy", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept_loop(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self._target, 10)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            for sock in (client, broker):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            gate = threading.Event()
            gate.set()
            with self._lock:
                self._pairs[client, broker] = gate
                self.accepted += 1
            for source, sink in ((client, broker), (broker, client)):
                self._start(self._pump_loop, (client, broker), source, sink, gate)

    def _pump_loop(
        self, pair: Pair, source: socket.socket, sink: socket.socket, gate: threading.Event
    ) -> None:
        try:
            while piece := source.recv(_PIECE):
                if self._delay_s:
                    self._stopping.wait(self._delay_s)
                self._passing.wait()
                gate.wait()
                sink.sendall(piece)
            self._passing.wait()  # a half open connection hides its end as well
            gate.wait()
        except OSError:
            pass
        self._end(pair)

    def _end(self, pair: Pair) -> None:
        with self._lock:
            gate = self._pairs.pop(pair, None)
        if gate is None:
            return
        for sock in pair:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # Wakes the pump that reads from it; close alone would not.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RD)
            sock.close()
        gate.set()


def _close_listener(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
