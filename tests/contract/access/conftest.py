"""A virtual host of the module's own, and users made to order."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Connection


@pytest.fixture(scope="module")
def vhost(broker: TestBroker) -> Iterator[str]:
    """guest may do everything in it; it goes with all that is in it."""
    name = f"access-{secrets.token_hex(4)}"
    broker.add_vhost(name)
    yield name
    broker.delete_vhost(name)


@pytest.fixture
def user(broker: TestBroker) -> Iterator[str]:
    """A user without tags and permissions; the password is the name."""
    name = f"user-{secrets.token_hex(4)}"
    broker.add_user(name, name)
    yield name
    broker.delete_user(name)


@pytest.fixture
def admin(connect: Callable[..., Connection], vhost: str) -> Channel:
    """A channel of guest's in the virtual host."""
    return connect(vhost=vhost).channel()


@pytest.fixture
def allowed(
    broker: TestBroker, connect: Callable[..., Connection], vhost: str, user: str
) -> Callable[..., Channel]:
    """Gives the user these permissions (none by default), and a channel of the user's."""

    def channel(configure: str = "", write: str = "", read: str = "", **options: Any) -> Channel:
        broker.set_permissions(user, vhost, configure, write, read)
        return connect(vhost=vhost, user=user, password=user, **options).channel()

    return channel
