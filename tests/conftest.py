"""Fixtures for every test: brokers, connections to them, names that clean up after themselves."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pika import spec

from tests.support import brokers, rabbitmq
from tests.support import etcd as etcd_server
from tests.support.brokers import RabbitBroker, TestBroker
from tests.support.etcd import Etcd
from tests.support.servers import Run
from tests.support.wire import Channel, Closed, Connection

RUN = pytest.StashKey[Run]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--brokers",
        default=",".join(brokers.NAMES),
        help="run broker tests on these only: warren, durable, rabbitmq (default: on all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # xdist's workers belong to their controller's run
        config.stash[RUN] = Run.begin()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = set(config.getoption("--brokers").split(","))
    if unknown := chosen - set(brokers.NAMES):
        raise pytest.UsageError(f"--brokers: no such broker: {', '.join(sorted(unknown))}")
    left_out = []
    for item in items:
        name = _broker_of(item)
        if name is not None:
            item.user_properties.append(("broker", name))
            # With a data folder the contract holds, too; nothing else is said of it.
            beyond = name == "durable" and "contract/" not in item.nodeid
            if name not in chosen or beyond:
                left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _broker_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("broker")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say on which broker how many contract tests ran: the numbers should be the same."""
    ran: Counter[str] = Counter()
    for outcome in ("passed", "failed", "xfailed"):
        for report in terminalreporter.getreports(outcome):
            if report.when == "call" and "contract/" in report.nodeid:
                ran.update(value for key, value in report.user_properties if key == "broker")
    if ran:
        counts = ", ".join(f"{ran[name]} on {name}" for name in brokers.NAMES)
        terminalreporter.write_line(f"contract: {counts}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    run = session.config.stash.get(RUN, None)
    if run is not None and session.testsfailed:
        run.keep_logs(session.config.rootpath / ".test-logs")


def pytest_unconfigure(config: pytest.Config) -> None:
    run = config.stash.get(RUN, None)
    if run is not None:
        run.end()


@pytest.fixture(scope="session", params=brokers.NAMES)
def broker(request: pytest.FixtureRequest) -> Iterator[TestBroker]:
    """Our broker, in memory and durable, then a real RabbitMQ: the same test passes on all."""
    running = {
        "warren": brokers.running_warren,
        "durable": brokers.running_durable,
        "rabbitmq": brokers.running_rabbitmq,
    }
    with running[request.param]() as broker:
        yield broker


@pytest.fixture(scope="session")
def rabbitmq_cluster() -> list[RabbitBroker]:
    """Three RabbitMQ nodes that form a cluster."""
    return [brokers.from_node(node) for node in rabbitmq.cluster()]


@pytest.fixture(scope="session")
def etcd() -> Etcd:
    """An etcd server of the run's own."""
    return etcd_server.etcd()


@pytest.fixture
def name(broker: TestBroker) -> Iterator[Callable[[str], str]]:
    """Makes unique names; queues and exchanges of these names are deleted after the test."""
    made: list[str] = []

    def unique(word: str = "test") -> str:
        made.append(f"{word}-{secrets.token_hex(4)}")
        return made[-1]

    yield unique
    if made:
        _delete(broker, made)


def _delete(broker: TestBroker, names: list[str]) -> None:
    connection = Connection.open(broker.url)
    channel = connection.channel()
    for name in names:
        for method in (spec.Queue.Delete(queue=name), spec.Exchange.Delete(exchange=name)):
            try:
                channel.call(method)
            except Closed as refusal:  # such as a reserved name
                if refusal.scope == "connection":
                    connection.close()
                    connection = Connection.open(broker.url)
                channel = connection.channel()
    connection.close()


@pytest.fixture
def connect(broker: TestBroker, name: Any) -> Iterator[Callable[..., Connection]]:
    """Opens connections (keywords as ``Connection.open``); all are closed after the test."""
    # Takes ``name`` so that connections, and with them exclusive queues, go before the names do.
    opened: list[Connection] = []

    def open_connection(**options: Any) -> Connection:
        opened.append(Connection.open(options.pop("url", broker.url), **options))
        return opened[-1]

    yield open_connection
    if broker.alarmed:  # the test failed half way
        broker.memory_alarm(False)
    for connection in opened:
        connection.close()


@pytest.fixture
def channel(connect: Callable[..., Connection]) -> Channel:
    """A channel on a connection of its own."""
    return connect().channel()
