"""How many tasks the queues are spread over, where nobody says: as many as run at once.

Spark doesn't tell a source how many cores it has. A session of ours on ``local[N]`` does: the
processes that plan are children of its Java.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from warren.config import machine_cores

_VARIABLE = "WARREN_SPARK_CORES"
_LOCAL = re.compile(r"local(?:\[\s*(\d+)\s*(?:,.*)?\])?")


@contextmanager
def cores_told(master: str) -> Iterator[None]:
    """Have a Java that is started in here know how many cores its Spark has."""
    found = _LOCAL.fullmatch(master)
    if found is None:  # local[*]: all that the machine has
        yield
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = found[1] or "1"
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE)
        if before is not None:
            os.environ[_VARIABLE] = before


def default_tasks() -> int:
    """As many as there are cores, as far as the process that plans can tell."""
    told = os.environ.get(_VARIABLE, "")
    return max(1, int(told)) if told.isdecimal() else machine_cores()
