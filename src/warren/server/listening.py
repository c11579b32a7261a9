"""Why a broker can't listen where it was told to, in words that name the setting to change."""

from __future__ import annotations

import errno
import socket

from warren.errors import ListenError

_NOWHERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listen_error(error: OSError | UnicodeError, host: str, port: int, setting: str) -> ListenError:
    """What to raise; ``setting`` names the port."""
    host_setting = "management_host or host" if setting.startswith("management") else "host"
    if isinstance(error, socket.gaierror | UnicodeError):
        reason, setting = "nothing is known by that name", host_setting
        remedy = "choose an address of this machine with {}: 127.0.0.1, or 0.0.0.0 for all"
    elif error.errno in _NOWHERE:
        reason, setting = "that is no address of this machine", host_setting
        remedy = "choose one with {}: 127.0.0.1, or 0.0.0.0 for all"
    elif error.errno == errno.EADDRINUSE:
        reason, remedy = "the port is taken", "another broker? choose one with {}, or 0 for any"
        if setting.startswith("management"):
            remedy += ", -1 for none"
    elif error.errno == errno.EACCES:
        reason, remedy = "not allowed", "ports below 1024 need root: choose another with {}"
    else:
        reason, remedy = error.strerror or str(error), "see {}"
    return ListenError(host, port, reason, setting, remedy)
