from __future__ import annotations

import pytest

from warren.amqp.login import external, plain
from warren.client.address import Address, parse_urls
from warren.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("amqp://localhost", Address("localhost", 5672)),
        ("amqp://", Address("localhost", 5672)),
        ("amqp://localhost/", Address("localhost", 5672)),
        ("amqp://localhost/%2f", Address("localhost", 5672)),
        ("amqp://host:99/a%2Fb", Address("host", 99, "a/b")),
        ("amqp://ann:p%40ss%2f@host", Address("host", 5672, login=plain("ann", "p@ss/"))),
        ("amqp://[::1]:99", Address("::1", 99)),
        ("amqp://h?heartbeat=5&name=x", Address("h", 5672, heartbeat_s=5, name="x")),
        ("amqp://h?connection_timeout=1500", Address("h", 5672, connect_timeout_s=1.5)),
        ("amqp://h?auth_mechanism=external", Address("h", 5672, login=external())),
    ],
)
def test_a_url_is_read(url: str, address: Address) -> None:
    assert parse_urls(url) == [address]


def test_several_hosts_share_the_rest_of_the_url() -> None:
    one, two = parse_urls("amqp://a:b@one,two:5/v?heartbeat=7")
    assert (one.host, one.port, two.host, two.port) == ("one", 5672, "two", 5)
    assert one.login == two.login == plain("a", "b")
    assert one.vhost == two.vhost == "v"


def test_several_urls_stand_for_themselves() -> None:
    one, two = parse_urls(["amqp://a:b@one", "amqps://c:d@two"])
    assert (one.port, one.tls, one.login.user) == (5672, None, "a")
    assert (two.port, two.login.user) == (5671, "c")
    assert two.tls is not None


def test_arguments_win_over_the_url() -> None:
    [address] = parse_urls("amqp://h?heartbeat=7&name=x", heartbeat_s=3, name="y")
    assert (address.heartbeat_s, address.name) == (3, "y")


def test_an_error_shows_no_password() -> None:
    with pytest.raises(ConfigError) as error:
        parse_urls("http://ann:secret@host")
    assert "secret" not in str(error.value)


def test_no_url_at_all() -> None:
    with pytest.raises(ConfigError, match="no broker is named"):
        parse_urls([])


@pytest.mark.parametrize(("host", "shown"), [("::1", "[::1]:5"), ("h", "h:5")])
def test_an_address_is_shown_as_host_and_port(host: str, shown: str) -> None:
    assert str(Address(host, 5)) == shown
