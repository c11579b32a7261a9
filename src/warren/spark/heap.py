"""How much memory Java gets where driver and tasks share one process.

Spark's own 1 GiB is meant for a driver that only plans. Where it also decodes and writes rows,
Java spends as long collecting garbage as working: with 4 GiB the same rows cost half the
processor time.
"""

from __future__ import annotations

import os
from pathlib import Path

KEY = "spark.driver.memory"
_LEAST, _MOST = 1 << 30, 4 << 30


def heap_for(machine_bytes: int) -> str:
    """A quarter of the machine, 1 to 4 GiB, as Spark writes it."""
    return f"{max(_LEAST, min(_MOST, machine_bytes // 4)) >> 20}m"


def is_said() -> bool:
    """True if the environment or spark-defaults.conf says how much it is."""
    if os.environ.get("SPARK_DRIVER_MEMORY"):
        return True
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else "")
    try:
        lines = Path(folder, "spark-defaults.conf").read_text().splitlines()
    except OSError:
        return False
    return any(line.strip().startswith(KEY) for line in lines)
