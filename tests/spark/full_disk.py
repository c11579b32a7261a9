"""An attempt at a queue by a process whose files can't grow beyond so many octets.

``python -m tests.spark.full_disk URL LEDGER QUEUE OCTETS``
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from tests.spark.drains import Task
from warren.errors import LedgerError


def main(url: str, ledger: Path, queue: str, octets: int) -> None:
    task = Task(url, ledger)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, hard))
    try:
        print(task.run(queue, 0, 100))
    except LedgerError as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
