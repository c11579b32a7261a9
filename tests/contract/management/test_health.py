"""Health checks and liveness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.management.http import Api, at
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually

OK = {"status": "ok"}
ALONE = {"status": "ok", "reason": "single node cluster"}


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("alarms", OK),
        ("local-alarms", OK),
        ("virtual-hosts", OK),
        ("certificate-expiration/1/days", OK),
        ("node-is-mirror-sync-critical", ALONE),
        ("node-is-quorum-critical", ALONE),
        ("protocol-listener/amqp", {"status": "ok", "protocol": "amqp"}),
        ("protocol-listener/amqp091", {"status": "ok", "protocol": "amqp"}),
        ("protocol-listener/http", {"status": "ok", "protocol": "http"}),
    ],
)
def test_a_healthy_broker_says_so(api: Api, check: str, expected: Any) -> None:
    assert api.get(f"health/checks/{check}") == expected


def test_the_port_that_clients_use_is_listened_on(api: Api, broker: TestBroker) -> None:
    path = f"health/checks/port-listener/{broker.port}"
    assert api.get(path) == {"status": "ok", "port": broker.port}


@pytest.mark.parametrize(
    ("check", "missing", "known"),
    [("port-listener/9", 9, "ports"), ("protocol-listener/mqtt", "mqtt", "protocols")],
)
def test_what_is_not_listened_on_is_named(api: Api, check: str, missing: Any, known: str) -> None:
    status, body = api.ask("GET", f"health/checks/{check}").said
    assert body.pop(known)
    assert (status, body) == (
        503,
        {"status": "failed", "reason": "No active listener", "missing": missing},
    )


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ("port-listener/x", "Invalid port"),
        ("certificate-expiration/x/days", "Invalid expiration value."),
        (
            "certificate-expiration/1/zz",
            "Time unit not recognised. Supported units: days, weeks, months, years.",
        ),
    ],
)
def test_a_check_that_can_not_be_is_refused(api: Api, check: str, reason: str) -> None:
    assert api.ask("GET", f"health/checks/{check}").said == (
        400,
        {"error": "bad_request", "reason": reason},
    )


@pytest.fixture
def alarm(broker: TestBroker) -> Iterator[None]:
    broker.memory_alarm(True)
    yield
    broker.memory_alarm(False)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ("alarms", "There are alarms in effect in the cluster"),
        ("local-alarms", "There are alarms in effect on the node"),
    ],
)
def test_an_alarm_fails_the_check(api: Api, check: str, reason: str) -> None:
    path = f"health/checks/{check}"
    eventually(lambda: api.ask("GET", path).status == 503)
    body = api.ask("GET", path).json
    assert (body["status"], body["reason"]) == ("failed", reason)
    assert [alarm["resource"] for alarm in body["alarms"]] == ["memory"]


def test_a_virtual_host_is_alive(api: Api, vhost: str) -> None:
    assert api.get(at("aliveness-test", vhost)) == OK
