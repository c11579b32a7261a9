"""How much memory Java gets where driver and tasks share one process.

Spark's own 1 GiB is meant for a driver that only plans. Where it also decodes and writes rows,
Java spends as long collecting garbage as working: with 4 GiB the same rows cost half the
processor time.
"""

from __future__ import annotations

_LEAST, _MOST = 1 << 30, 4 << 30


def heap_for(machine_bytes: int) -> str:
    """A quarter of the machine, 1 to 4 GiB, as Spark writes it."""
    return f"{max(_LEAST, min(_MOST, machine_bytes // 4)) >> 20}m"
