"""Everything that can be killed is killed once while messages flow; the long form, and the one on
RabbitMQ and a cluster of it, is ``python -m tests.spark.exactly_once`` (``make soak``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.exactly_once import Harness
from tests.support import spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_each_number_is_in_the_table_once_whatever_was_killed(tmp_path: Path) -> None:
    with Harness(tmp_path, seed=1, master=spark_cluster.cluster().url) as harness:
        for what in ("task", "connection", "executor", "broker", "disk", "driver"):
            harness.await_progress()
            harness.disturb(what)
        harness.await_progress()
        verdict = harness.finish()

    assert verdict.good, verdict
    assert verdict.published > 0
