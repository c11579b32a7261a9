"""What the machine gives the broker: memory, files, disk."""

from __future__ import annotations

import os
import shutil

from warren.broker.core import BrokerCore


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def most_files() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def data_folder(core: BrokerCore) -> str:
    """Where the broker keeps what must survive; empty if it keeps nothing."""
    return str(getattr(core.journal.store, "folder", "")) if core.journal else ""


def free_disk_bytes(core: BrokerCore) -> int:
    try:
        return shutil.disk_usage(data_folder(core) or "/").free
    except OSError:
        return 0
