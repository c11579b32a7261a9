"""The program on Spark's start page prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from warren.spark.options import CONNECTION
from warren.spark.writer_options import SINK

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_first_program_prints_what_its_page_says(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (GUIDE / "spark.md").read_text()
    program = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    exec(compile(program, "spark.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out.splitlines()
    assert printed == re.findall(r"^# -> (.*)$", program, re.MULTILINE)


def test_the_sink_s_page_has_every_option() -> None:
    page = (GUIDE / "spark-sink.md").read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert {option.name for option in SINK} <= told
    assert not {option.name for option in CONNECTION} & told  # those are the source's page's
