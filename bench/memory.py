"""Resident memory of a process."""

from __future__ import annotations

import time
from pathlib import Path

SETTLE_S = 10.0


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no resident memory")


def settled_bytes(pid: int) -> int:
    """Resident memory once it has kept within 1 % for a second, or after ten seconds."""
    deadline = time.monotonic() + SETTLE_S
    steady, since = resident_bytes(pid), time.monotonic()
    while time.monotonic() < deadline and time.monotonic() < since + 1.0:
        time.sleep(0.1)
        now = resident_bytes(pid)
        if abs(now - steady) > steady / 100:
            steady, since = now, time.monotonic()
    return resident_bytes(pid)
