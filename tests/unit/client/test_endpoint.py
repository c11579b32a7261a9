"""Addresses of the blocking client."""

from __future__ import annotations

import pytest

from warren.client.endpoint import HTTP, Endpoint, parse_uri
from warren.errors import ConfigError


def test_a_uri_says_where_and_who() -> None:
    endpoint = Endpoint.from_uri("amqps://ann:s%2Fecret@broker/shop%2Feu?heartbeat=7")
    assert (endpoint.address, endpoint.vhost) == (("broker", 5671), "shop/eu")
    assert (endpoint.user, endpoint.password, endpoint.heartbeat_s) == ("ann", "s/ecret", 7)


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("ampq://ann:secret@broker", "does not begin with amqp://"),
        (
            "amqp://ann:secret@broker:port",
            "'broker:port' is not a host and port: a port is 0 to 65535",
        ),
        ("amqp://ann:secret@broker?heartbeat=soon", "heartbeat .*'soon' is not a whole number"),
        ("amqp://ann:secret@broker?heartbeat=-1", "heartbeat .*'-1' is not a whole number"),
        ("amqp://ann:secret@broker?heartbaet=5", "no parameter 'heartbaet'; did you mean heartbea"),
        ("amqps://ann:secret@broker?verify=no", "verify .*'no' is not known; verify_peer and"),
        ("amqp://ann:secret@broker?auth_mechanism=x", "'x' is not known; plain and external are"),
    ],
)
def test_a_slip_in_a_uri_is_named_without_the_password(uri: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        Endpoint.from_uri(uri)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "amqp://ann:sec/ret@broker/",
        "amqp://ann:sec?ret@broker/",
        "amqp://ann:sec#ret@broker/",
        "amqp://ann:5?ret=ret@broker/",
        "amqp://ann:5/ret@broker/",
        "amqp://ann:sec@sec:x/ret@broker/",
        "amqp://ann:s@e?ret@broker/",
        "amqp://ann:se[c]ret@broker/",
        "amqp://ann:sec\u2100ret@broker/",
        "amqp://ann:sec/ret",
        "ann:sec/ret",
        "ampq://ann:sec@ret",
    ],
)
def test_a_password_that_is_not_encoded_is_not_quoted(uri: str) -> None:
    with pytest.raises(ConfigError, match=r"write / as %2F|does not begin with") as caught:
        Endpoint.from_uri(uri)
    assert "ret" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "vhost"),
    [
        ("amqp://ann:secret@broker/shop@eu", "shop@eu"),
        ("amqp://broker/shop%40eu", "shop@eu"),
        ("amqp://broker/?name=ann@home", "/"),
    ],
)
def test_signs_that_no_password_needs_stay_what_they_are(uri: str, vhost: str) -> None:
    assert Endpoint.from_uri(uri).vhost == vhost


def test_so_do_those_in_the_address_of_a_management_page() -> None:
    [found] = parse_uri("http://broker:15672/#/queues", kind=HTTP)

    assert (found.address, found.vhost) == (("broker", 15672), "/")


def test_a_uri_says_how_tls_is_spoken() -> None:
    endpoint = Endpoint.from_uri(
        "amqps://broker?cacertfile=ca.pem&certfile=me.pem&keyfile=key.pem&verify=verify_none"
        "&auth_mechanism=external&connection_timeout=2500"
    )
    assert (endpoint.ca_file, endpoint.cert_file, endpoint.key_file) == (
        "ca.pem",
        "me.pem",
        "key.pem",
    )
    assert (endpoint.tls, endpoint.verify, endpoint.connect_timeout_s) == (True, False, 2.5)
    assert endpoint.login.mechanism == "EXTERNAL"


def test_a_certificate_that_is_not_there_is_named() -> None:
    endpoint = Endpoint.from_uri("amqps://broker?cacertfile=/nowhere/ca.pem")
    with pytest.raises(ConfigError, match=r"/nowhere/ca\.pem: No such file"):
        endpoint.tls_context()


def test_several_hosts_share_the_rest_of_the_uri() -> None:
    one, two = parse_uri("amqp://ann:secret@one,two:5/v")
    assert (one.address, two.address) == (("one", 5672), ("two", 5))
    assert one.but(host="two", port=5) == two


def test_where_a_uri_is_silent_the_caller_says_it() -> None:
    assert parse_uri("amqp://h", heartbeat_s=7)[0].heartbeat_s == 7
    assert parse_uri("amqp://h?heartbeat=5", heartbeat_s=7)[0].heartbeat_s == 5


def test_a_password_is_not_shown() -> None:
    endpoint = Endpoint.from_uri("amqp://ann:secret@broker")
    assert "secret" not in f"{endpoint!r} {endpoint.shown}"
