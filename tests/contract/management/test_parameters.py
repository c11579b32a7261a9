"""Parameters of virtual hosts and of the broker as a whole; its name."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.contract.management.http import Api, at
from tests.support.brokers import TestBroker

LIMITS = {"max-queues": 5, "max-connections": 7}
OPERATOR = {"pattern": "^x", "definition": {"max-length": 5}, "priority": 1, "apply-to": "queues"}


@pytest.fixture
def vhost(broker: TestBroker) -> Iterator[str]:
    name = f"parameters-{secrets.token_hex(4)}"
    broker.add_vhost(name)
    yield name
    broker.delete_vhost(name)


@pytest.fixture
def parameter(api: Api) -> Iterator[str]:
    """The name of a global parameter, not set yet."""
    name = f"parameter-{secrets.token_hex(4)}"
    yield name
    api.delete(at("global-parameters", name))


# -- of a virtual host -----------------------------------------------------------------------------
def test_limits_of_a_virtual_host_are_a_parameter(api: Api, vhost: str) -> None:
    place = at("parameters", "vhost-limits", vhost, "limits")
    for limit, value in LIMITS.items():
        api.put(at("vhost-limits", vhost, limit), {"value": value})
    row = {"vhost": vhost, "component": "vhost-limits", "name": "limits", "value": LIMITS}
    assert api.get(place) == row
    assert api.get(at("parameters", "vhost-limits", vhost)) == [row]
    assert row in api.get("parameters/vhost-limits")
    assert row in api.get("parameters")


def test_a_parameter_sets_the_limits_of_a_virtual_host(api: Api, vhost: str) -> None:
    place = at("parameters", "vhost-limits", vhost, "limits")
    api.put(at("vhost-limits", vhost, "max-connections"), {"value": 7})
    assert api.put(place, {"value": {"max-queues": 5}}) == (204, None)
    # These, and no others.
    assert api.get(at("vhost-limits", vhost)) == [{"vhost": vhost, "value": {"max-queues": 5}}]
    assert api.delete(place) == (204, None)
    assert api.ask("GET", place).status == 404
    assert api.get(at("vhost-limits", vhost)) == []


def test_operator_policies_are_parameters(api: Api, vhost: str) -> None:
    place = at("parameters", "operator_policy", vhost, "op")
    assert api.put(place, {"value": OPERATOR}) == (201, None)
    assert api.get(at("operator-policies", vhost, "op"))["definition"] == {"max-length": 5}
    row = {"vhost": vhost, "component": "operator_policy", "name": "op", "value": OPERATOR}
    assert api.get(at("parameters", "operator_policy", vhost)) == [row]
    assert api.delete(place) == (204, None)
    assert api.get(at("operator-policies", vhost)) == []


@pytest.mark.parametrize(
    ("component", "name", "value", "reason"),
    [
        ("shovel-of-ours", "x", 5, "Validation failed\n\ncomponent shovel-of-ours not found\n"),
        ("policy", "x", {"pattern": "x"}, "policies may not be set using this method"),
        ("vhost-limits", "limits", 5, "Validation failed\n\nlimits not a list 5\n"),
        (
            "vhost-limits",
            "limits",
            {"max-x": 7},
            'Validation failed\n\nUnrecognised terms [{&lt;&lt;"max-x"&gt;&gt;,7}] in limits\n',
        ),
        (
            "operator_policy",
            "op",
            {"pattern": "x", "definition": {"max-length": 3}},
            'Validation failed\n\nKey "priority" not found in op\n',
        ),
    ],
)
def test_a_wrong_parameter_is_refused(
    api: Api, vhost: str, component: str, name: str, value: object, reason: str
) -> None:
    told = api.put(at("parameters", component, vhost, name), {"value": value})
    assert told == (400, {"error": "bad_request", "reason": reason})
    assert api.get(at("parameters", component, vhost)) == []


def test_a_parameter_of_a_virtual_host_that_is_not_there(api: Api) -> None:
    told = api.put(at("parameters", "vhost-limits", "nowhere", "limits"), {"value": {}})
    assert told == (404, {"error": "not_found", "reason": "vhost_not_found"})
    assert api.ask("GET", at("parameters", "vhost-limits", "nowhere")).status == 404


# -- of the broker ---------------------------------------------------------------------------------
def test_a_global_parameter_is_set_changed_and_cleared(api: Api, parameter: str) -> None:
    place = at("global-parameters", parameter)
    assert api.ask("GET", place).status == 404
    assert api.put(place, {"value": {"a": [1, 2]}}) == (201, None)
    assert api.put(place, {"value": 5}) == (204, None)
    assert api.get(place) == {"name": parameter, "value": 5}
    assert {"name": parameter, "value": 5} in api.get("global-parameters")
    assert api.delete(place) == (204, None)
    assert api.ask("DELETE", place).status == 404


def test_a_global_parameter_needs_a_value(api: Api, parameter: str) -> None:
    told = api.put(at("global-parameters", parameter), {})
    assert told == (400, {"error": "bad_request", "reason": "[{key_missing,value}]"})


def test_a_cluster_has_an_identity(api: Api) -> None:
    identity = api.get("global-parameters/internal_cluster_id")["value"]
    assert identity.startswith("rabbitmq-cluster-id-")


def test_a_cluster_is_renamed(api: Api) -> None:
    before = api.get("cluster-name")["name"]
    parameter = api.ask("GET", "global-parameters/cluster_name").status == 200
    name = f"cluster-{secrets.token_hex(4)}"
    try:
        assert api.put("cluster-name", {"name": name}) == (204, None)
        assert api.get("cluster-name") == {"name": name}
        assert api.get("overview")["cluster_name"] == name
        assert api.get("global-parameters/cluster_name")["value"] == name
    finally:
        if parameter:
            api.put("cluster-name", {"name": before})
        else:
            api.delete("global-parameters/cluster_name")
    assert api.get("cluster-name") == {"name": before}


def test_a_name_is_needed_to_rename_a_cluster(api: Api) -> None:
    told = api.put("cluster-name", {})
    assert told == (400, {"error": "bad_request", "reason": "[{key_missing,name}]"})


def test_only_an_administrator_renames_a_cluster(broker: TestBroker, api: Api) -> None:
    user = f"user-{secrets.token_hex(4)}"
    broker.add_user(user, "secret", "monitoring")
    try:
        mine = Api(broker.management, user, "secret")
        assert mine.get("cluster-name") == api.get("cluster-name")
        told = {"error": "not_authorised", "reason": "Not administrator user"}
        assert mine.put("cluster-name", {"name": "mine"}) == (401, told)
    finally:
        broker.delete_user(user)
