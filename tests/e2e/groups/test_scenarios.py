"""The short form of the soak: groups of real processes, disturbed under load, judged by their own
lines. Every broker meets every coordinator, and every kind of disturbance comes at least once;
``make soak`` has them all on each, again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.groups.scenarios import (
    Scenario,
    cut_the_network,
    freeze_the_network,
    kill_a_member,
    kill_a_node,
    kill_etcd,
    kill_one_of_four_with_many_queues,
    kill_the_dispatcher,
    queues_come_and_go,
    restart_the_broker,
    rolling_restart,
    slow_the_network,
    stop_a_member,
    stop_an_app_that_is_behind,
    stop_the_dispatcher,
)
from tests.e2e.groups.soak import run_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STAGES: list[tuple[str, str, list[Scenario]]] = [
    ("warren", "amqp", [rolling_restart, restart_the_broker]),
    ("rabbitmq", "amqp", [kill_the_dispatcher, cut_the_network, slow_the_network, rolling_restart]),
    ("warren", "etcd", [kill_etcd, freeze_the_network, queues_come_and_go]),
]
#: SIGSTOP until the others have its queues, which takes two heartbeats, then SIGCONT.
HUNG: list[tuple[str, str, list[Scenario]]] = [
    ("warren", "amqp", [kill_one_of_four_with_many_queues, stop_the_dispatcher]),
    ("rabbitmq", "etcd", [kill_a_member, stop_a_member]),
]


@pytest.mark.parametrize(
    ("broker", "coordinator", "scenarios"), STAGES, ids=[f"{b}-{c}" for b, c, _ in STAGES]
)
def test_rule_1_nothing_is_lost_or_out_of_order_whatever_happens(
    tmp_path: Path, broker: str, coordinator: str, scenarios: list[Scenario]
) -> None:
    verdict = run_all(tmp_path, scenarios, broker, coordinator, seed=1)
    assert verdict.handled >= verdict.messages > 500


@pytest.mark.cluster
def test_rule_1_nothing_is_lost_when_one_of_three_nodes_is_killed(tmp_path: Path) -> None:
    verdict = run_all(tmp_path, [kill_a_node], "cluster", "amqp", seed=1)
    assert verdict.handled >= verdict.messages > 300


@pytest.mark.parametrize(
    ("broker", "coordinator", "scenarios"), HUNG, ids=[f"{b}-{c}" for b, c, _ in HUNG]
)
def test_rule_5_others_go_on_with_the_queues_of_a_killed_and_of_a_hung_process(
    tmp_path: Path, broker: str, coordinator: str, scenarios: list[Scenario]
) -> None:
    """And when it wakes it does not go on as before: nothing out of order, nobody beside it."""
    verdict = run_all(tmp_path, scenarios, broker, coordinator, seed=1)
    assert verdict.handled >= verdict.messages > 300


def test_rule_1_an_app_that_was_hung_begins_nothing_that_others_have_done(tmp_path: Path) -> None:
    verdict = run_all(tmp_path, [stop_an_app_that_is_behind], "warren", "amqp", seed=1)
    assert verdict.handled >= verdict.messages > 300
