"""Groups on every broker and every coordinator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.contract.groups.steps import Workers
from tests.support.brokers import TestBroker


@pytest.fixture(params=["amqp", "etcd"])
def coordinator(request: pytest.FixtureRequest) -> str:
    """What ``Group(coordinator=...)`` is given."""
    if request.param == "amqp":
        return "amqp"
    url: str = request.getfixturevalue("etcd").url
    return url.replace("http", "etcd") + "?ttl_s=5"


@pytest.fixture
async def workers(
    broker: TestBroker, name: Callable[[str], str], coordinator: str
) -> AsyncIterator[Workers]:
    """Members of one group; all leave after the test, and nothing of the group may be left."""
    workers = Workers(broker, name, coordinator)
    async with workers:
        yield workers
