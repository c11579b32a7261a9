"""``guest`` comes from this machine's loopback only, as long as nobody says otherwise.

Tests listen on the loopback alone, so every client comes from there: what counts as one is turned
round instead. Which addresses do is tested with ``is_loopback`` itself.
"""

from __future__ import annotations

import pytest

import warren
from tests.support.wire import Closed, Connection


@pytest.fixture
def from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where our clients come from is no loopback."""
    monkeypatch.setattr("warren.broker.connection.is_loopback", lambda host: host != "127.0.0.1")


def test_guest_is_let_in_from_the_loopback() -> None:
    with warren.Broker.in_thread() as broker:
        Connection.open(broker.url).close()


@pytest.mark.usefixtures("from_elsewhere")
def test_guest_is_let_in_from_nowhere_else() -> None:
    with warren.Broker.in_thread() as broker:
        with pytest.raises(Closed) as refused:
            Connection.open(broker.url)
        assert (refused.value.scope, refused.value.code) == ("connection", 403)


@pytest.mark.usefixtures("from_elsewhere")
def test_other_users_may_come_from_anywhere() -> None:
    with warren.Broker.in_thread() as broker:
        broker.add_user("ann", "ann")
        broker.set_permissions("ann")
        Connection.open(broker.url, user="ann", password="ann").close()


@pytest.mark.usefixtures("from_elsewhere")
def test_guest_may_come_from_anywhere_where_nobody_is_bound_to_the_loopback() -> None:
    with warren.Broker.in_thread(loopback_users="none") as broker:
        Connection.open(broker.url).close()
