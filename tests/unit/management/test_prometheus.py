"""Metrics beside those of RabbitMQ 3.10.8 with its Prometheus plugin, whose names were recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from warren.broker.core import BrokerCore
from warren.management.messages import Request
from warren.management.prometheus import answer_metrics
from warren.testing import FakeClock

THEIRS = json.loads(Path(__file__).with_name("rabbitmq_metrics.json").read_text())
#: What tells of Erlang, of Raft and of the files of a message store.
INSIDES = re.compile(
    "rabbitmq_(detailed_)?"
    "(erlang_(gc|net|processes_limit|scheduler)|io_|raft_|msg_store_|queue_index_|schema_db_"
    "|.*_reductions_total|queue_disk_|.*dead_lettered_confirmed)"
)


def families(*kind: str, pairs: tuple[tuple[str, str], ...] = ()) -> dict[str, list[str]]:
    core = BrokerCore(clock=FakeClock())
    request = Request("GET", ("metrics", *kind), pairs=pairs)
    text = b"".join(answer_metrics(core, request).pieces).decode()
    found: dict[str, list[str]] = {}
    for word, name, rest in re.findall(r"^# (TYPE|HELP) (\S+) (.*)$", text, re.MULTILINE):
        assert (word == "HELP") == (name in found), f"{name} is told twice"
        found.setdefault(name, []).append(rest)
    return found


def without_insides(theirs: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: told for name, told in theirs.items() if not INSIDES.match(name)}


def test_metrics_have_rabbitmqs_names_types_and_helps() -> None:
    assert families() == without_insides(THEIRS["metrics"])


def test_metrics_per_object_have_rabbitmqs_names() -> None:
    theirs = {name for name in THEIRS["per-object"] if not INSIDES.match(name)}
    assert set(families("per-object")) == {
        name for name in theirs if "auth_attempts_detailed" not in name
    }


@pytest.mark.parametrize("family", THEIRS["detailed"])
def test_a_family_has_rabbitmqs_names_types_and_helps(family: str) -> None:
    found = families("detailed", pairs=(("family", family),))
    found.pop("rabbitmq_build_info")
    found.pop("rabbitmq_identity_info")
    theirs = without_insides(THEIRS["detailed"][family])
    if family == "auth_attempt_detailed_metrics":
        theirs = {}  # sources of logins are not kept
    assert found == theirs


def test_a_family_that_nobody_knows_is_empty() -> None:
    found = families("detailed", pairs=(("family", "unknown"),))
    assert set(found) == {"rabbitmq_build_info", "rabbitmq_identity_info"}


def test_a_metric_of_two_families_is_told_once() -> None:
    pairs = (("family", "queue_metrics"), ("family", "queue_consumer_count"))
    assert "rabbitmq_detailed_queue_consumers" in families("detailed", pairs=pairs)


def test_other_paths_are_unknown() -> None:
    core = BrokerCore(clock=FakeClock())
    answer = answer_metrics(core, Request("GET", ("metrics", "nonsense")))
    assert (answer.status, b"".join(answer.pieces)) == (404, b"Unknown Registry")
