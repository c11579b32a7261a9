"""What a pipeline asks of its session, without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from warren.pipeline import run as module
from warren.pipeline.run import Run
from warren.spark import checkpoints

_FILE = """\
broker: amqp://localhost
queues: [q]
checkpoint: {checkpoint}
tables:
  all: {{schema: "id INT"}}
"""


@pytest.mark.parametrize(
    ("checkpoint", "is_left_to_spark"),
    [("data/checkpoint", False), ("file:///data", False), ("hdfs://name/data", True)],
)
def test_a_checkpoint_elsewhere_is_written_as_spark_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: str, is_left_to_spark: bool
) -> None:
    given: dict[str, Any] = {}

    def session(name: str, *, master: str | None, **conf: Any) -> SimpleNamespace:
        given.update(conf)
        return SimpleNamespace()

    monkeypatch.setattr(module, "session", session)
    file = tmp_path / "pipeline.yaml"
    file.write_text(_FILE.format(checkpoint=checkpoint))

    Run.from_file(str(file))._session()

    assert (given.get(checkpoints.SETTING, "not said") is None) == is_left_to_spark
