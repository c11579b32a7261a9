"""``guest`` comes from this machine's loopback only, as long as nobody says otherwise."""

from __future__ import annotations

import socket

import pytest

import warren
from tests.support.wire import Closed, Connection


@pytest.fixture
def own_address() -> str:
    """An address of this machine that is not a loopback's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has a loopback only")
        address = str(probe.getsockname()[0])
    if address.startswith("127."):
        pytest.skip("this machine has a loopback only")
    return address


def url_of(broker: warren.Broker, host: str, user: str = "guest") -> str:
    return f"amqp://{user}:{user}@{host}:{broker.port}/"


def test_guest_is_let_in_from_the_loopback_and_from_nowhere_else(own_address: str) -> None:
    with warren.Broker.in_thread("0.0.0.0") as broker:
        Connection.open(url_of(broker, "127.0.0.1")).close()
        with pytest.raises(Closed) as refused:
            Connection.open(url_of(broker, own_address))
        assert (refused.value.scope, refused.value.code) == ("connection", 403)


def test_other_users_may_come_from_anywhere(own_address: str) -> None:
    with warren.Broker.in_thread("0.0.0.0") as broker:
        broker.add_user("ann", "ann")
        broker.set_permissions("ann")
        Connection.open(url_of(broker, own_address, "ann")).close()


def test_guest_may_come_from_anywhere_where_nobody_is_bound_to_the_loopback(
    own_address: str,
) -> None:
    with warren.Broker.in_thread("0.0.0.0", loopback_users="none") as broker:
        Connection.open(url_of(broker, own_address)).close()
