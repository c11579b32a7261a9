"""A client of the HTTP API, and a virtual host in which a test may do what it likes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.contract.management.http import Api
from tests.support.brokers import TestBroker


@pytest.fixture(scope="module")
def api(broker: TestBroker) -> Api:
    """The administrator's view."""
    return Api(broker.management)


@pytest.fixture(scope="module")
def vhost(broker: TestBroker) -> Iterator[str]:
    """A virtual host of the module's own."""
    name = f"management-{secrets.token_hex(4)}"
    broker.add_vhost(name)
    yield name
    broker.delete_vhost(name)
