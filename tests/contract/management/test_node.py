"""What the API tells of the node: its memory, who logged in, what it can do."""

from __future__ import annotations

import secrets

import pika
import pytest

from tests.contract.management.http import Api, at, shape
from tests.support.brokers import TestBroker


@pytest.fixture(scope="module")
def node(api: Api) -> str:
    return str(api.get("nodes")[0]["name"])


MEMORY = (
    *("allocated_unused", "atom", "binary", "code", "connection_channels", "connection_other"),
    *("connection_readers", "connection_writers", "metrics", "mgmt_db", "mnesia", "msg_index"),
    *("other_ets", "other_proc", "other_system", "plugins", "queue_procs", "queue_slave_procs"),
    *("quorum_ets", "quorum_queue_dlx_procs", "quorum_queue_procs", "reserved_unallocated"),
    *("stream_queue_coordinator_procs", "stream_queue_procs"),
    "stream_queue_replica_reader_procs",
)


def test_the_node_tells_where_its_memory_is(api: Api, node: str) -> None:
    memory = api.get(at("nodes", node, "memory"))["memory"]
    numbers = dict.fromkeys(MEMORY, "number")
    sums = {"allocated": "number", "erlang": "number", "rss": "number"}
    assert shape(memory) == {**numbers, "strategy": "text", "total": sums}
    assert memory["total"]["rss"] > 0


def test_the_node_tells_it_in_percent(api: Api, node: str) -> None:
    memory = api.get(at("nodes", node, "memory", "relative"))["memory"]
    assert shape(memory) == {**dict.fromkeys(MEMORY, "number"), "total": "number"}
    assert memory["total"] == 100
    assert all(0 <= value <= 100 for value in memory.values())


def test_tables_that_are_not_there_take_no_memory(api: Api, node: str) -> None:
    found = api.get(at("nodes", node, "memory", "ets", "none-of-this-name"))
    assert found == {"ets_tables_memory": "no_tables"}


@pytest.mark.parametrize("path", ["nodes/{}/memory", "healthchecks/node/{}", "auth/attempts/{}"])
def test_another_node_is_not_found(api: Api, node: str, path: str) -> None:
    assert api.ask("GET", path.format(at(node))).status == 200
    assert api.ask("GET", path.format("nobody@nowhere")).said == (
        404,
        {"error": "Object Not Found", "reason": "Not Found"},
    )


def test_the_statistics_of_a_node_are_reset(api: Api, node: str) -> None:
    assert api.delete(at("reset", node)) == (204, None)
    assert api.ask("DELETE", "reset/nobody@nowhere").status == 404


# -- logins ----------------------------------------------------------------------------------------
def attempts(api: Api, node: str, protocol: str) -> tuple[int, int]:
    rows = {row["protocol"]: row for row in api.get(at("auth", "attempts", node))}
    row = rows.get(protocol, {"auth_attempts_succeeded": 0, "auth_attempts_failed": 0})
    return row["auth_attempts_succeeded"], row["auth_attempts_failed"]


def test_logins_over_http_are_counted(broker: TestBroker, api: Api, node: str) -> None:
    succeeded, failed = attempts(api, node, "http")
    assert Api(broker.management, "guest", "wrong").ask("GET", "whoami").status == 401
    now = attempts(api, node, "http")
    # Others may use the node at the same time.
    assert now[0] > succeeded
    assert now[1] > failed


def test_logins_over_amqp_are_counted(broker: TestBroker, api: Api, node: str) -> None:
    before = attempts(api, node, "amqp091")
    pika.BlockingConnection(pika.URLParameters(broker.url)).close()
    wrong = pika.URLParameters(broker.url.replace(":guest@", ":wrong@"))
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(wrong)
    now = attempts(api, node, "amqp091")
    assert now[0] > before[0]
    assert now[1] > before[1]


def test_a_count_of_logins_has_rabbitmqs_names(api: Api, node: str) -> None:
    rows = api.get(at("auth", "attempts", node))
    number = ("auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded")
    assert shape(rows) == [{**dict.fromkeys(number, "number"), "protocol": "text"}]
    for row in rows:
        assert row["auth_attempts"] == sum(row[name] for name in number[1:])


def test_sources_of_logins_are_not_kept(api: Api, node: str) -> None:
    assert api.get(at("auth", "attempts", node, "source")) == []


def test_who_does_not_monitor_sees_no_logins(broker: TestBroker, api: Api, node: str) -> None:
    user = f"user-{secrets.token_hex(4)}"
    broker.add_user(user, "secret", "management")
    try:
        told = Api(broker.management, user, "secret").ask("GET", at("auth", "attempts", node))
        assert told.said == (401, {"error": "not_authorised", "reason": "Not monitor user"})
    finally:
        broker.delete_user(user)


# -- logging in by form ----------------------------------------------------------------------------
FORM = {"content_type": "application/x-www-form-urlencoded"}


def test_a_form_logs_in(broker: TestBroker) -> None:
    nobody = Api(broker.management, "")
    answer = nobody.ask("POST", "login", b"username=guest&password=guest", **FORM)
    assert answer.said == (200, "ok")


def test_a_form_with_a_wrong_password_does_not(broker: TestBroker) -> None:
    nobody = Api(broker.management, "")
    answer = nobody.ask("POST", "login", b"username=guest&password=wrong", **FORM)
    assert answer.said == (401, {"error": "not_authorized", "reason": "Login failed"})


# -- feature flags ---------------------------------------------------------------------------------
def test_features_are_enabled(api: Api) -> None:
    flags = {row["name"]: row["state"] for row in api.get("feature-flags")}
    assert flags["quorum_queue"] == flags["stream_queue"] == flags["user_limits"] == "enabled"
    assert api.put("feature-flags/quorum_queue/enable", {"name": "quorum_queue"}) == (204, None)


def test_a_feature_that_nobody_knows_is_refused(api: Api) -> None:
    told = api.put("feature-flags/warren_of_rabbits/enable", {"name": "warren_of_rabbits"})
    assert told == (400, {"error": "bad_request", "reason": "unsupported"})


# -- what is not there -----------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["shovels", "federation-links", "nowhere"])
def test_what_belongs_to_plugins_is_not_found(api: Api, path: str) -> None:
    assert api.ask("GET", path).said == (
        404,
        {"error": "Object Not Found", "reason": "Not Found"},
    )
