"""Which queues the source takes, and which it refuses before anything is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from tests.support.brokers import TestBroker
from tests.support.certificates import Authority
from tests.support.wire import Channel
from warren import Broker
from warren.errors import ApiUntrusted, QueueAutoDeletes
from warren.spark.batch import QueueReader
from warren.spark.driver import Driver
from warren.spark.options import SourceOptions
from warren.spark.plan import Positions, positions_of
from warren.spark.queues import list_queues, management

BODIES = StructType([StructField("body", BinaryType())])


@pytest.fixture
def given(broker: TestBroker, tmp_path: Path) -> dict[str, str]:
    """Options for the broker, without queues."""
    return {
        "uri": broker.url,
        "managementUri": broker.management,
        "ledger": str(tmp_path / "ledger"),
    }


# -- auto-delete ---------------------------------------------------------------------------------
@pytest.fixture
def passing(channel: Channel, name: Callable[..., str]) -> str:
    """A queue that goes with its last consumer, and a message in it."""
    queue = name("passing")
    channel.declare(queue, auto_delete=True)
    channel.publish(queue, b"kept")
    channel.sync()
    return queue


def read(options: dict[str, str]) -> None:
    """A batch read, as Spark does it."""
    reader = QueueReader(options, BODIES)
    for partition in reader.partitions():
        list(reader.read(partition))


def begin(options: dict[str, str]) -> Positions:
    """The first step of a query: where its first batch ends."""
    driver = Driver(SourceOptions.parse(options))
    try:
        return positions_of(driver.latest(driver.initial(), None, None))
    finally:
        driver.close()


@pytest.mark.parametrize("peek", ["true", "false"])
def test_a_batch_does_not_touch_a_queue_that_goes_with_its_reader(
    given: dict[str, str], channel: Channel, passing: str, peek: str
) -> None:
    with pytest.raises(QueueAutoDeletes, match=f"'{passing}'.* declare it without auto-delete"):
        read({**given, "queues": passing, "peek": peek})

    assert channel.count(passing) == 1


def test_nor_does_a_query(given: dict[str, str], channel: Channel, passing: str) -> None:
    with pytest.raises(QueueAutoDeletes, match=f"'{passing}'.* declare it without auto-delete$"):
        begin({**given, "queues": passing})

    assert channel.count(passing) == 1


def test_a_pattern_that_finds_such_a_queue_is_told_with_it(
    given: dict[str, str], channel: Channel, passing: str
) -> None:
    pattern = f"{passing[:-1]}?"
    with pytest.raises(QueueAutoDeletes) as refused:
        begin({**given, "queues": f"other-*,{pattern}"})

    assert (refused.value.queue, refused.value.pattern) == (passing, pattern)
    assert channel.count(passing) == 1


# -- exclusive -----------------------------------------------------------------------------------
def test_a_pattern_leaves_out_what_belongs_to_a_connection(
    given: dict[str, str], channel: Channel, name: Callable[..., str]
) -> None:
    stem = name("whose")
    ours, theirs = name(f"{stem}.ours"), name(f"{stem}.theirs")
    channel.declare(ours)
    channel.declare(theirs, exclusive=True, auto_delete=True)
    for queue in (ours, theirs):
        channel.publish(queue, b"one")
    channel.sync()

    assert begin({**given, "queues": f"{stem}.*"}) == {ours: 1}


# -- where the management API is -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"uri": "amqp://mq"}, "http://mq:15672"),
        ({"uri": "amqps://mq:1234"}, "https://mq:15671"),
        ({"host": "::1", "tls": "true"}, "https://[::1]:15671"),
        ({"uri": "amqps://mq", "managementUri": "http://other"}, "http://other:15672"),
    ],
)
def test_a_password_that_goes_over_tls_goes_over_tls_everywhere(
    options: dict[str, str], address: str
) -> None:
    assert management(SourceOptions.parse({"queues": "a.*", **options})).address == address


def test_what_is_said_of_tls_holds_for_the_management_api(tmp_path: Path) -> None:
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs", "another CA")
    shown = ours.issue("broker", "/CN=localhost")
    files = {"tls_certificate": shown.certificate, "tls_key": shown.key}
    with Broker.in_thread(tls_port=0, management_tls_port=0, **files) as broker:
        given = {
            "uri": f"amqps://localhost:{broker.tls_port}",
            "managementUri": f"https://localhost:{broker.management_tls_port}",
            "queues": "a.*",
        }
        trusting = SourceOptions.parse({**given, "tlsCaFile": str(ours.ca)})
        careless = SourceOptions.parse({**given, "tlsVerify": "false"})
        mistaken = SourceOptions.parse({**given, "tlsCaFile": str(theirs.ca)})

        assert list(list_queues(trusting)) == list(list_queues(careless)) == []
        with pytest.raises(ApiUntrusted):
            list(list_queues(mistaken))
