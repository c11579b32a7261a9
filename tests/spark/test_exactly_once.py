"""Everything that can be killed is killed once while messages flow; the long form is
``python -m tests.spark.exactly_once`` (``make soak``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.exactly_once import Harness, Verdict
from tests.spark.exactly_once_brokers import RabbitMQCluster
from tests.support import spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def verdict(harness: Harness, *kills: tuple[str, str]) -> Verdict:
    with harness:
        for what, at in kills:
            harness.stage.await_progress()
            harness.faults.disturb(what, at)
        harness.stage.await_progress()
        return harness.finish()


def test_each_number_is_in_the_table_once_whatever_was_killed(tmp_path: Path) -> None:
    harness = Harness(tmp_path, seed=1, queues=5, master=spark_cluster.cluster().url)

    found = verdict(
        harness,
        ("task", "after segment"),
        ("connection", "before ack"),
        ("executor", ""),
        ("broker", "before settled"),
        ("disk", "mark"),
        ("zombie", "before segment"),
        ("driver", "after ack"),
        ("power", "after the last row"),
    )

    assert found.good, found
    assert found.published > 0
    assert found.used["dropped, in doubt"] > 0
    assert found.used["compared with settled segments"] > 0
    assert found.used["written by another attempt first"] > 0


@pytest.mark.cluster
def test_so_is_each_of_quorum_queues_of_which_a_node_was_killed(tmp_path: Path) -> None:
    harness = Harness(tmp_path, seed=2, target=RabbitMQCluster(tmp_path))

    found = verdict(harness, ("node", ""), ("task", "after segment"))

    assert found.good, found
    assert found.published > 0
    assert found.used["dropped, in doubt"] > 0
