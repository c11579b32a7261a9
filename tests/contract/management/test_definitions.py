"""Definitions: exported here, imported there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.management.http import Api, at
from tests.support import brokers
from tests.support.brokers import TestBroker

NOTHING: dict[str, list[Any]] = {
    key: [] for key in ("parameters", "policies", "queues", "exchanges", "bindings")
}
#: As RabbitMQ 3.10.8 wrote them for one virtual host.
TOPOLOGY: dict[str, Any] = {
    "rabbit_version": "3.10.8",
    "parameters": [],
    "policies": [
        {
            "vhost": "somewhere",
            "name": "short",
            "pattern": "^work",
            "apply-to": "queues",
            "definition": {"max-length": 5, "overflow": "reject-publish"},
            "priority": 1,
        }
    ],
    "queues": [
        {"name": "work", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 9}},
        {
            "name": "votes",
            "durable": True,
            "auto_delete": False,
            "arguments": {"x-queue-type": "quorum"},
        },
    ],
    "exchanges": [
        {
            "name": "events",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {"alternate-exchange": "amq.fanout"},
        }
    ],
    "bindings": [
        {
            "source": "events",
            "destination": "work",
            "destination_type": "queue",
            "routing_key": "a.#",
            "arguments": {"x-note": "kept"},
        }
    ],
}


@pytest.fixture
def empty(broker: TestBroker) -> Iterator[str]:
    """A virtual host with nothing in it."""
    name = f"empty-{secrets.token_hex(4)}"
    broker.add_vhost(name)
    yield name
    broker.delete_vhost(name)


def ordered(definitions: dict[str, Any], vhost: str) -> dict[str, Any]:
    """Without the order of lists, and the policies' virtual host in one word."""
    assert definitions["rabbit_version"] == "3.10.8"
    policies = [{**policy, "vhost": vhost} for policy in definitions["policies"]]
    return {
        key: sorted(value, key=repr)
        for key, value in {**definitions, "policies": policies}.items()
        if isinstance(value, list)
    }


def test_an_empty_virtual_host_has_no_definitions(api: Api, empty: str) -> None:
    assert ordered(api.get(at("definitions", empty)), empty) == NOTHING


def test_what_was_imported_is_exported_again(api: Api, empty: str) -> None:
    path = at("definitions", empty)
    assert api.post(path, TOPOLOGY) == (204, None)
    assert ordered(api.get(path), empty) == ordered(TOPOLOGY, empty)


def test_importing_twice_changes_nothing(api: Api, empty: str) -> None:
    path = at("definitions", empty)
    assert api.post(path, TOPOLOGY) == (204, None)
    assert api.post(path, TOPOLOGY) == (204, None)
    assert ordered(api.get(path), empty) == ordered(TOPOLOGY, empty)


@pytest.mark.slow
def test_a_file_from_the_other_broker_is_taken(broker: TestBroker, api: Api, empty: str) -> None:
    """RabbitMQ's export goes to warren, warren's to RabbitMQ."""
    ours = broker.name != "rabbitmq"
    other = brokers.running_rabbitmq if ours else brokers.running_warren
    with other() as source:
        name = f"source-{secrets.token_hex(4)}"
        source.add_vhost(name)
        try:
            there = Api(source.management)
            assert there.post(at("definitions", name), TOPOLOGY) == (204, None)
            exported = there.get(at("definitions", name))
        finally:
            source.delete_vhost(name)
    assert api.post(at("definitions", empty), exported) == (204, None)
    assert ordered(api.get(at("definitions", empty)), empty) == ordered(TOPOLOGY, empty)


def test_a_file_is_taken_from_a_form(api: Api, empty: str) -> None:
    """As ``curl -F file=@shop.json`` sends it."""
    mark = secrets.token_hex(8)
    head = (
        f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="shop.json"\r\n'
        "content-type: application/json\r\n\r\n"
    )
    body = head.encode() + json.dumps(TOPOLOGY).encode() + f"\r\n--{mark}--\r\n".encode()
    kind = f"multipart/form-data; boundary={mark}"
    answer = api.ask("POST", at("definitions", empty), body, content_type=kind)
    assert answer.said == (204, None)
    assert ordered(api.get(at("definitions", empty)), empty) == ordered(TOPOLOGY, empty)


def test_a_file_that_is_no_json_is_refused(api: Api, empty: str) -> None:
    assert api.post(at("definitions", empty), b"{") == (
        400,
        {"error": "bad_request", "reason": "failed_to_parse_json"},
    )


def test_definitions_for_a_virtual_host_that_is_not_there_are_refused(api: Api) -> None:
    assert api.post("definitions/nowhere", TOPOLOGY) == (
        404,
        {"error": "not_found", "reason": "vhost_not_found"},
    )


def test_the_whole_export_has_users_with_their_hashes(api: Api) -> None:
    definitions = api.get("definitions")
    guest = next(user for user in definitions["users"] if user["name"] == "guest")
    assert sorted(guest) == ["hashing_algorithm", "limits", "name", "password_hash", "tags"]
    assert {"name": "/"} in definitions["vhosts"]


def test_a_download_has_a_name(api: Api, empty: str) -> None:
    answer = api.ask("GET", at("definitions", empty) + "?download=mine.json")
    assert answer.headers["content-disposition"] == "attachment; filename=mine.json"
