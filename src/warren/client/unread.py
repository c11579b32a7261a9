"""What waits in a socket to be read."""

from __future__ import annotations

import fcntl
import socket
import ssl
import sys
import termios
from math import inf


def unread(sock: socket.socket) -> float:
    """How many octets have come that nobody has read; of what is encrypted, none or countless.

    What is read beyond them has come since: its sender was there a moment ago. Of the others
    nobody knows how old they are, and that holds for as long as we may have slept.
    """
    octets = int.from_bytes(fcntl.ioctl(sock, termios.FIONREAD, bytes(4)), sys.byteorder)
    if isinstance(sock, ssl.SSLSocket):
        return inf if octets or sock.pending() else 0
    return octets
