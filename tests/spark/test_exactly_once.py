"""Everything that can be killed is killed once while messages flow; the long form is
``python -m tests.spark.exactly_once`` (``make soak``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.exactly_once import Harness, Verdict
from tests.spark.exactly_once_brokers import RabbitMQCluster
from tests.support import spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def verdict(harness: Harness, *kills: str) -> Verdict:
    with harness:
        for what in kills:
            harness.await_progress()
            harness.disturb(what)
        harness.await_progress()
        return harness.finish()


def test_each_number_is_in_the_table_once_whatever_was_killed(tmp_path: Path) -> None:
    harness = Harness(tmp_path, seed=1, master=spark_cluster.cluster().url)

    found = verdict(harness, "task", "connection", "executor", "broker", "disk", "driver")

    assert found.good, found
    assert found.published > 0


@pytest.mark.cluster
def test_so_is_each_of_quorum_queues_of_which_a_node_was_killed(tmp_path: Path) -> None:
    found = verdict(Harness(tmp_path, seed=2, target=RabbitMQCluster(tmp_path)), "node", "task")

    assert found.good, found
    assert found.published > 0
