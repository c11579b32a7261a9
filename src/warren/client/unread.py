"""What waits in a socket to be read."""

from __future__ import annotations

import socket
import ssl
import sys
from math import inf

if sys.platform != "win32":
    import fcntl
    import termios

#: A record has 16 KiB at the most, and a little more.
_TLS_RECORD = 17 << 10


def unread(sock: socket.socket) -> float:
    """How many octets have come that nobody has read, at the most.

    What is read beyond them has come since: its sender was there a moment ago. Of the others
    nobody knows how old they are, and that holds for as long as we may have slept.
    """
    if sys.platform == "win32" or sock.fileno() < 0:
        return inf
    octets = int.from_bytes(fcntl.ioctl(sock, termios.FIONREAD, bytes(4)), sys.byteorder)
    if isinstance(sock, ssl.SSLSocket) and (octets or sock.pending()):
        return octets + sock.pending() + _TLS_RECORD  # of which a part may have been read
    return octets
