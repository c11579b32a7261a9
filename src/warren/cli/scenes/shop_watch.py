"""Looks into /proc: which processes there are below a process, and which of them talk to a port."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_ESTABLISHED = "01"


def descendants(root: int) -> list[int]:
    """Pids of all processes that ``root`` started, and that those started."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The name of a program, in brackets, may hold anything.
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        mine = children.get(todo.pop(), [])
        found += mine
        todo += mine
    return found


#: How the daemon of tasks is called; those of planning have other modules behind it.
_TASKS = b"pyspark.daemon\0pyspark.worker\0"


def workers(root: int) -> list[int]:
    """Spark's Python workers below ``root`` that do tasks: what their daemon has started.

    A task is tried again elsewhere; what plans one is not.
    """
    daemons = [pid for pid in descendants(root) if _TASKS in _read(pid, "cmdline")]
    return [pid for daemon in daemons for pid in descendants(daemon)]


def busy_workers(root: int, port: int) -> list[int]:
    """Those of them that have a connection to ``port``."""
    return connected(workers(root), port)


def connected(pids: Iterable[int], port: int) -> list[int]:
    """Those processes that have a connection to ``port``."""
    sockets = set(_sockets_to(port))
    return [pid for pid in pids if sockets & set(_sockets_of(pid))] if sockets else []


def kill_all(root: int) -> None:
    """kill -9 a process and all below it."""
    for pid in [*descendants(root), root]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _sockets_to(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        for line in _read(os.getpid(), f"net/{table}").decode().splitlines()[1:]:
            _, _, remote, state, *rest = line.split()
            if state == _ESTABLISHED and int(remote.rpartition(":")[2], 16) == port:
                yield f"socket:[{rest[5]}]"


def _sockets_of(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield os.readlink(entry)
