"""Fixtures for every test: brokers, connections to them, names that clean up after themselves."""

from __future__ import annotations

import logging
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import brokers, parts, rabbitmq
from tests.support import etcd as etcd_server
from tests.support.brokers import RabbitBroker, TestBroker
from tests.support.etcd import Etcd
from tests.support.leavings import Leavings
from tests.support.servers import Run
from tests.support.wire import Channel, Connection

RUN = pytest.StashKey[Run]()

# A test judges what happens, not how long a busy machine takes for it. What random examples find
# is found at home: in CI the same commit is given the same examples each time.
settings.register_profile(
    "warren",
    deadline=None,
    print_blob=True,
    derandomize=os.environ.get("CI", "").lower() in ("true", "1"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("warren")


# What asyncio's debug mode says of a callback that took long tells of the machine, and a test that
# wants nothing logged would fail for it.
logging.getLogger("asyncio").addFilter(lambda record: " took %.3f seconds" not in str(record.msg))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--brokers",
        default=",".join(brokers.NAMES),
        help="run broker tests on these only: warren, durable, rabbitmq (default: on all)",
    )
    parser.addoption(
        "--part",
        choices=parts.PARTS,
        help="run only what may run on four processes at once, on two, or must run on one",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # xdist's workers belong to their controller's run
        config.stash[RUN] = Run.begin()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = set(config.getoption("--brokers").split(","))
    if unknown := chosen - set(brokers.NAMES):
        raise pytest.UsageError(f"--brokers: no such broker: {', '.join(sorted(unknown))}")
    part = config.getoption("--part")
    left_out = set()
    for item in items:
        if part is not None and parts.part_of(item.nodeid) != part:
            left_out.add(item)
        name = _broker_of(item)
        if name is not None:
            item.user_properties.append(("broker", name))
            if name not in chosen or not parts.runs_on(item.nodeid, name):
                left_out.add(item)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't even read the files of the other part, unless they were asked for by name."""
    part = config.getoption("--part")
    if part is None or config.args_source is pytest.Config.ArgsSource.ARGS:
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if collection_path.is_file() and parts.part_of(path) != part else None


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name long bytes by their length: a compressor's clock in a name would part the workers."""
    return f"{len(val)} octets" if isinstance(val, bytes) and len(val) > 20 else None


def _broker_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("broker")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say on which broker how many contract tests ran: on warren as many as on rabbitmq."""
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
    part = session.config.getoption("--part")
    if part is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK  # what was asked for is in the other part
    cache = getattr(session.config, "cache", None)
    if run is not None and part is not None and cache is not None:
        # .ci/run wants to know that every test had its turn, whatever came of it.
        ended = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        cache.set(f"warren/ended-{part}", ended)


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


@pytest.fixture(scope="session")
def leavings(broker: TestBroker) -> Iterator[Leavings]:
    """Deletes what tests have left in the broker."""
    leavings = Leavings(broker.url)
    yield leavings
    leavings.close()


@pytest.fixture
def name(leavings: Leavings) -> Iterator[Callable[[str], str]]:
    """Makes unique names; queues and exchanges of these names are deleted after the test."""
    made: list[str] = []

    def unique(word: str = "test") -> str:
        made.append(f"{word}-{secrets.token_hex(4)}")
        return made[-1]

    yield unique
    if made:
        leavings.delete(made)


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
