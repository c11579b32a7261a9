"""Everything that was declared, over several virtual hosts and with its users: both ways.

The file is exported by the other broker and imported into this one; users log in afterwards.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.contract.management.http import Api, at
from tests.support import brokers
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Closed, Connection

pytestmark = pytest.mark.slow  # it starts the other broker

HASHINGS = {"sha256": hashlib.sha256, "sha512": hashlib.sha512, "md5": hashlib.md5}

Definitions = dict[str, Any]


def hashed(password: str, kind: str) -> dict[str, str]:
    """A password as RabbitMQ keeps it: four octets of salt, and the digest of salt and password."""
    salt = secrets.token_bytes(4)
    digest = HASHINGS[kind](salt + password.encode()).digest()
    return {
        "password_hash": base64.b64encode(salt + digest).decode(),
        "hashing_algorithm": f"rabbit_password_hashing_{kind}",
    }


def made_up(prefix: str) -> Definitions:
    """A bit of everything; all names begin with the prefix."""
    first, second, empty = (f"{prefix}-{name}" for name in ("first", "second/päth", "empty"))
    users = [
        {
            "name": f"{prefix}-{kind}",
            "tags": ["monitoring", "policymaker"] if kind == "sha256" else [],
            "limits": {"max-connections": 10} if kind == "md5" else {},
            **hashed(f"secret of {kind}", kind),
        }
        for kind in HASHINGS
    ]
    nobody = {"password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256"}
    users.append({"name": f"{prefix}-nobody", "tags": ["management"], "limits": {}, **nobody})
    names = [user["name"] for user in users]
    return {
        "users": users,
        "vhosts": [{"name": vhost} for vhost in (first, second, empty)],
        "permissions": [
            {"user": names[0], "vhost": first, "configure": ".*", "write": ".*", "read": ".*"},
            {"user": names[1], "vhost": second, "configure": "", "write": "^a", "read": "^b|c$"},
            {"user": names[2], "vhost": first, "configure": "", "write": "", "read": ".*"},
            *(
                {"user": "guest", "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
                for vhost in (first, second, empty)
            ),
        ],
        "topic_permissions": [
            {"user": names[0], "vhost": first, "exchange": "amq.topic", "write": "^a", "read": "b"}
        ],
        "parameters": [
            {
                "vhost": second,
                "component": "vhost-limits",
                "name": "limits",
                "value": {"max-queues": 50, "max-connections": 20},
            },
            {
                "vhost": first,
                "component": "operator_policy",
                "name": "bounds",
                "value": {
                    "pattern": ".*",
                    "definition": {"max-length": 1000},
                    "priority": 2,
                    "apply-to": "queues",
                },
            },
        ],
        "global_parameters": [{"name": f"{prefix}-note", "value": {"a": [1, "two", True]}}],
        "policies": [
            {
                "vhost": vhost,
                "name": "ttl",
                "pattern": "^work",
                "apply-to": "queues",
                "definition": {"message-ttl": 60000, "dead-letter-exchange": "dead"},
                "priority": 3,
            }
            for vhost in (first, second)
        ],
        "queues": [
            _queue(first, "work", {"x-max-length": 9, "x-dead-letter-exchange": "dead"}),
            _queue(first, "votes", {"x-queue-type": "quorum", "x-delivery-limit": 3}),
            _queue(first, "log", {"x-queue-type": "stream", "x-max-age": "1D"}),
            _queue(second, "work", {"x-single-active-consumer": True}),
            _queue(second, "brief", {}, durable=False, auto_delete=True),
        ],
        "exchanges": [
            _exchange(first, "events", "topic", {"alternate-exchange": "dead"}),
            _exchange(first, "dead", "fanout", {}),
            _exchange(second, "inner", "headers", {}, internal=True),
            _exchange(second, "ring", "x-consistent-hash", {"hash-header": "customer"}),
            _exchange(second, "brief", "direct", {}, durable=False, auto_delete=True),
        ],
        "bindings": [
            _binding(first, "events", "work", "queue", "a.#", {}),
            _binding(first, "events", "dead", "exchange", "*.b", {"x-note": "kept"}),
            _binding(second, "inner", "work", "queue", "", {"x-match": "any", "n": 5, "ok": True}),
            _binding(second, "ring", "work", "queue", "10", {}),
            _binding(second, "amq.direct", "work", "queue", "kéy", {}),
        ],
    }


def _queue(vhost: str, name: str, arguments: Definitions, **more: bool) -> Definitions:
    usual = {"durable": True, "auto_delete": False}
    return {"vhost": vhost, "name": name, "arguments": arguments, **usual, **more}


def _exchange(
    vhost: str, name: str, type: str, arguments: Definitions, **more: bool
) -> Definitions:
    usual = {"durable": True, "auto_delete": False, "internal": False}
    return {"vhost": vhost, "name": name, "type": type, "arguments": arguments, **usual, **more}


def _binding(
    vhost: str, source: str, destination: str, kind: str, key: str, arguments: Definitions
) -> Definitions:
    return {
        "vhost": vhost,
        "source": source,
        "destination": destination,
        "destination_type": kind,
        "routing_key": key,
        "arguments": arguments,
    }


def only(definitions: Definitions, prefix: str) -> Definitions:
    """Those that are ours: others may use the broker at the same time."""
    return {
        section: [
            item
            for item in items
            if any(str(item.get(key, "")).startswith(prefix) for key in ("vhost", "user", "name"))
        ]
        for section, items in definitions.items()
        if isinstance(items, list)
    }


def unordered(definitions: Definitions) -> Definitions:
    """Without the order of lists and of keys."""
    return {
        section: sorted((dict(sorted(item.items())) for item in items), key=repr)
        for section, items in definitions.items()
        if isinstance(items, list)
    }


def remove(api: Api, definitions: Definitions) -> None:
    for section, place in (("vhosts", "vhosts"), ("users", "users")):
        for item in definitions[section]:
            api.delete(at(place, item["name"]))
    for item in definitions["global_parameters"]:
        api.delete(at("global-parameters", item["name"]))


@pytest.fixture(scope="module")
def wanted() -> Definitions:
    return made_up(f"whole-{secrets.token_hex(4)}")


@pytest.fixture(scope="module")
def prefix(wanted: Definitions) -> str:
    return str(wanted["vhosts"][0]["name"]).removesuffix("-first")


@pytest.fixture(scope="module")
def exported(broker: TestBroker, wanted: Definitions, prefix: str) -> Definitions:
    """The file as the other broker writes it."""
    ours = broker.name != "rabbitmq"
    other = brokers.running_rabbitmq if ours else brokers.running_warren
    with other() as source:
        there = Api(source.management)
        try:
            assert there.post("definitions", wanted) == (204, None)
            found = there.get("definitions")
        finally:
            remove(there, wanted)
    facts = {key: value for key, value in found.items() if not isinstance(value, list)}
    return {**facts, **only(found, prefix)}


@pytest.fixture(scope="module")
def imported(
    broker: TestBroker, api: Api, exported: Definitions, wanted: Definitions
) -> Iterator[Definitions]:
    """The same file, taken in here."""
    try:
        assert api.post("definitions", exported) == (204, None)
        yield exported
    finally:
        remove(api, wanted)


def test_the_other_broker_writes_what_it_was_given(
    exported: Definitions, wanted: Definitions
) -> None:
    assert unordered(exported) == unordered(wanted)
    assert exported["rabbitmq_version"] == exported["product_version"] == "3.10.8"


def test_this_broker_has_all_of_it(
    api: Api, imported: Definitions, wanted: Definitions, prefix: str
) -> None:
    assert unordered(only(api.get("definitions"), prefix)) == unordered(wanted)


@pytest.mark.parametrize("kind", HASHINGS)
def test_a_user_logs_in_with_the_password_from_there(
    broker: TestBroker, imported: Definitions, prefix: str, kind: str
) -> None:
    vhost = f"{prefix}-second/päth" if kind == "sha512" else f"{prefix}-first"
    login = {"user": f"{prefix}-{kind}", "password": f"secret of {kind}"}
    Connection.open(broker.url, vhost=vhost, **login).close()
    with pytest.raises(Closed) as refused:
        Connection.open(broker.url, vhost=vhost, **{**login, "password": "another"}).close()
    assert refused.value.code == 403


def test_a_user_without_a_hash_does_not_log_in(
    broker: TestBroker, imported: Definitions, prefix: str
) -> None:
    assert Api(broker.management, f"{prefix}-nobody", "x").ask("GET", "whoami").status == 401


def test_tags_hold_over_there(broker: TestBroker, imported: Definitions, prefix: str) -> None:
    mine = Api(broker.management, f"{prefix}-sha256", "secret of sha256")
    assert sorted(mine.get("whoami")["tags"]) == ["monitoring", "policymaker"]


def test_policies_hold_over_there(api: Api, imported: Definitions, prefix: str) -> None:
    def holds() -> bool:
        row = api.get(at("queues", f"{prefix}-first", "work"))
        return (row.get("policy"), row.get("operator_policy")) == ("ttl", "bounds")

    eventually(holds, within_s=30)


def test_importing_it_again_changes_nothing(
    api: Api, imported: Definitions, wanted: Definitions, prefix: str
) -> None:
    assert api.post("definitions", imported) == (204, None)
    assert unordered(only(api.get("definitions"), prefix)) == unordered(wanted)


@pytest.mark.parametrize(
    ("version", "kind"), [("3.5.7", "md5"), ("3.6.0", "sha256"), ("3.10.8", "sha256")]
)
def test_a_hash_of_an_old_file_is_read_as_that_version_made_it(
    broker: TestBroker, api: Api, version: str, kind: str
) -> None:
    name = f"old-{secrets.token_hex(4)}"
    hash_alone = hashed("sesame", kind)["password_hash"]
    user = {"name": name, "password_hash": hash_alone, "tags": "management"}
    try:
        assert api.post("definitions", {"rabbit_version": version, "users": [user]})[0] == 204
        assert Api(broker.management, name, "sesame").get("whoami")["name"] == name
    finally:
        with suppress(AssertionError):
            api.delete(at("users", name))
