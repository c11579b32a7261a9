"""Groups on every broker and every coordinator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.contract.groups.steps import Workers
from tests.support.brokers import TestBroker

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whether the broker has a data folder is nothing that a group could notice."""
    twice = [item for item in items if HERE in item.path.parents and _broker(item) == "durable"]
    if twice:
        config.hook.pytest_deselected(items=twice)
        items[:] = [item for item in items if item not in set(twice)]


def _broker(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("broker")


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
