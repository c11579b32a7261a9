"""What the driver's Python says when Java is gone: nothing, unless it is something else."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: As ``pyspark.sql.streaming.python_streaming_source_runner`` ends when it reads no more.
RUNNER = """
from pyspark.sql.types import StructType
from warren.spark.source import QueueStreamReader

schema = StructType().add("queue", "string")
reader = QueueStreamReader({{"queues": "orders", "ledger": "nowhere"}}, schema)
try:
    try:
        raise {first}
    finally:
        reader.stop()
except BaseException:
    raise {then}
"""


@pytest.mark.parametrize(
    ("first", "then", "is_told"),
    [
        ("EOFError", "BrokenPipeError", False),
        ("EOFError", "ConnectionResetError", False),
        ("EOFError", "ValueError", True),
        ("OSError", "BrokenPipeError", True),
    ],
)
def test_only_that_java_is_gone_is_not_told(first: str, then: str, is_told: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", RUNNER.format(first=first, then=then)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert (then in ended.stderr) == is_told, ended.stderr
    assert is_told or not ended.stderr
