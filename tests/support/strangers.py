"""Servers that are no broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """The port of a server that hears one client out, says this to it, and hangs up."""

    def serve() -> None:
        sock, _ = server.accept()
        with sock:
            sock.recv(8)
            sock.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()
