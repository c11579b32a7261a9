"""What the HTTP API says when it says no."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.contract.management.http import Api, at

NOT_FOUND = (404, {"error": "Object Not Found", "reason": "Not Found"})
REFUSED = (401, {"error": "not_authorised", "reason": "Access refused."})
REALM = 'Basic realm="RabbitMQ Management"'


def bad(reason: Any) -> tuple[int, Any]:
    return 400, {"error": "bad_request", "reason": reason}


def test_without_credentials_the_client_is_asked_for_them(api: Api) -> None:
    answer = Api(f"http://{api.host}:{api.port}", user="").ask("GET", "overview")
    assert answer.said == (401, None)
    assert answer.headers["www-authenticate"] == REALM


def test_a_wrong_password_is_refused(api: Api) -> None:
    answer = Api(f"http://{api.host}:{api.port}", password="wrong").ask("GET", "overview")
    assert answer.said == (401, {"error": "not_authorized", "reason": "Login failed"})
    assert answer.headers["www-authenticate"] == REALM


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "queues/%2F/no-such-queue",
        "queues/no-such-vhost",
        "queues/no-such-vhost/q",
        "exchanges/%2F/no-such-exchange",
        "exchanges/no-such-vhost",
        "connections/nobody",
        "channels/nothing",
        "vhosts/no-such-vhost",
        "vhosts/no-such-vhost/permissions",
        "vhosts/no-such-vhost/connections",
        "users/nobody",
        "users/nobody/permissions",
        "permissions/%2F/nobody",
        "policies/%2F/no-such-policy",
        "policies/no-such-vhost",
        "bindings/no-such-vhost",
        "consumers/no-such-vhost",
        "user-limits/nobody",
        "vhost-limits/no-such-vhost",
        "aliveness-test/no-such-vhost",
        "parameters/x/%2F/nothing",
    ],
)
def test_what_is_not_there_is_not_found(api: Api, path: str) -> None:
    assert api.ask("GET", path).said == NOT_FOUND


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "overview", "HEAD, GET, OPTIONS"),
        ("PUT", "queues", "HEAD, GET, OPTIONS"),
        ("GET", "queues/%2F/q/contents", "DELETE, OPTIONS"),
        ("DELETE", "channels/x", "HEAD, GET, OPTIONS"),
    ],
)
def test_a_method_that_makes_no_sense_is_told_which_do(
    api: Api, method: str, path: str, allow: str
) -> None:
    answer = api.ask(method, path)
    assert (answer.said, answer.headers["allow"]) == ((405, None), allow)


def test_options_tells_what_can_be_done(api: Api) -> None:
    answer = api.ask("OPTIONS", "queues")
    assert (answer.status, answer.headers["allow"]) == (200, "HEAD, GET, OPTIONS")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "not_json"),
        (b"[]", "not_json"),
        (
            b'"text"',
            "invalid payload: the request body JSON-decoded to a string. "
            "Is the input doubly-JSON-encoded?",
        ),
        (b'{"durable": "yes"}', ["not_boolean", "yes"]),
    ],
)
def test_a_body_that_can_not_be_used_is_refused(
    api: Api, vhost: str, body: bytes, reason: Any
) -> None:
    assert api.ask("PUT", at("queues", vhost, "q"), body).said == bad(reason)


@pytest.mark.parametrize("path", ["queues", "exchanges", "policies"])
def test_nothing_is_put_into_a_virtual_host_that_is_not_there(api: Api, path: str) -> None:
    body = {"pattern": "a", "definition": {"max-length": 1}}
    assert api.put(f"{path}/no-such-vhost/x", body) == (
        404,
        {"error": "not_found", "reason": "vhost_not_found"},
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "queues/{}/amq.q"),
        ("PUT", "exchanges/{}/amq.x"),
        ("PUT", "exchanges/{}/amq.default"),
        ("DELETE", "exchanges/{}/amq.direct"),
        ("DELETE", "exchanges/{}/amq.default"),
        ("POST", "bindings/{}/e/amq.default/q/q"),
    ],
)
def test_reserved_names_are_refused(api: Api, vhost: str, method: str, path: str) -> None:
    assert api.put(at("queues", vhost, "q"))[0] in (201, 204)
    assert api.ask(method, path.format(vhost), {}).said == REFUSED


def test_a_different_queue_of_the_same_name_is_refused(api: Api, vhost: str) -> None:
    path = at("queues", vhost, "durable")
    assert api.put(path, {"durable": True}) == (201, None)
    assert api.put(path, {"durable": True}) == (204, None)
    assert api.put(path, {"durable": False}) == bad(
        f"inequivalent arg 'durable' for queue 'durable' in vhost '{vhost}': "
        "received 'false' but current is 'true'"
    )


def test_bad_arguments_of_a_queue_are_refused(api: Api, vhost: str) -> None:
    body = {"arguments": {"x-max-length": -1}}
    assert api.put(at("queues", vhost, "bad"), body) == bad(
        f"invalid arg 'x-max-length' for queue 'bad' in vhost '{vhost}': {{value_negative,-1}}"
    )


def test_an_unknown_type_of_exchange_is_refused(api: Api, vhost: str) -> None:
    kind = f"x-{secrets.token_hex(4)}"  # RabbitMQ has another word for one it has heard of
    answer = api.put(at("exchanges", vhost, "x"), {"type": kind})
    assert answer == bad(f"unknown exchange type '{kind}'")
