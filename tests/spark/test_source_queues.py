"""Which queues the source takes, and which it refuses before anything is lost."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pika import spec
from pyspark.sql.types import BinaryType, StructField, StructType

from tests.support.brokers import TestBroker
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.servers import free_ports
from tests.support.wire import Channel, Connection
from warren import Broker
from warren.client.blocking import BlockingConnection
from warren.errors import (
    ApiLoginRefused,
    ApiRefused,
    ApiTimedOut,
    ApiUnreachable,
    ApiUntrusted,
    ConfigError,
    KindUnknown,
    ManagementError,
    NotManagement,
    NotSingleActive,
    QueueAutoDeletes,
    QueueExclusive,
    QueueMissing,
    ReadRefused,
)
from warren.spark.batch import QueueReader
from warren.spark.driver import Driver
from warren.spark.listing import Listing, is_passing, management, places, why
from warren.spark.options import SourceOptions
from warren.spark.plan import Offset, Positions, positions_of
from warren.spark.queues import Catalog
from warren.spark.source import QueueStreamReader

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


@pytest.mark.parametrize("peek", ["true", "false"])
def test_one_that_is_named_is_refused_with_the_remedy(
    given: dict[str, str], channel: Channel, name: Callable[..., str], peek: str
) -> None:
    theirs = name("theirs")
    channel.declare(theirs, exclusive=True)

    for way in (lambda: begin(given | {"queues": theirs}),
                lambda: read(given | {"queues": theirs, "peek": peek})):  # fmt: skip
        with pytest.raises(QueueExclusive, match=f"'{theirs}'.* without the exclusive flag, or gi"):
            way()


# -- names that look like patterns ---------------------------------------------------------------
def test_a_queue_that_is_called_as_a_pattern_is_told_with_the_way_to_write_it(
    given: dict[str, str], channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("jobs[1]")
    assert begin({**given, "queues": queue}) == {}  # it may come
    channel.declare(queue)

    with pytest.raises(ConfigError) as refused:
        begin({**given, "queues": f"nothing-*,{queue}"})
    assert f"'{queue}' is a pattern, and no queue fits it" in str(refused.value)
    assert str(refused.value).endswith(f"written '{queue.replace('[', '[[]')}'")
    assert begin({**given, "queues": queue.replace("[", "[[]")}) == {queue: 0}

    other = queue.replace("[1]", "1")
    channel.declare(other, arguments={"x-expires": 60_000})
    assert begin({**given, "queues": queue}) == {other: 0}


# -- delivery limits -----------------------------------------------------------------------------
@pytest.mark.parametrize("by", ["name", "pattern"])
def test_a_quorum_queue_that_would_drop_what_comes_back_is_told_of(
    given: dict[str, str],
    channel: Channel,
    name: Callable[..., str],
    caplog: pytest.LogCaptureFixture,
    by: str,
) -> None:
    stem = name("limited")
    drops, hands_on = name(f"{stem}.drops"), name(f"{stem}.hands-on")
    limited = {
        "x-queue-type": "quorum",
        "x-single-active-consumer": True,
        "x-delivery-limit": 5,
    }
    channel.declare(drops, durable=True, arguments=limited)
    channel.declare(hands_on, durable=True, arguments={**limited, "x-dead-letter-exchange": ""})

    begin({**given, "queues": f"{stem}.*" if by == "pattern" else f"{drops},{hands_on}"})

    [told] = [each.getMessage() for each in caplog.records if each.name == "warren.spark.returns"]
    assert told.startswith(f"quorum queue '{drops}' drops a message that came back more than 5 tim")


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
    parsed = SourceOptions.parse({"queues": "a.*", **options})

    assert management(parsed, places(parsed)[0]).address == address


@pytest.mark.parametrize(
    ("url", "user"),
    [
        ("http://mq", "ann"),
        ("http://bob:b@mq", "bob"),
        ("http://guest:guest@mq", "guest"),
    ],
)
def test_a_login_that_the_management_url_names_is_used(url: str, user: str) -> None:
    given = {"queues": "a.*", "url": "amqp://ann:a@mq", "managementUrl": url}
    options = SourceOptions.parse(given)

    assert management(options, places(options)[0]).user == user


def test_a_query_on_a_pattern_goes_on_at_another_node(
    broker: TestBroker, given: dict[str, str], channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("elsewhere")
    channel.declare(queue)
    channel.publish(queue, b"one")
    channel.sync()
    [nobody] = free_ports(1)
    at = {
        "uri": f"amqp://127.0.0.1:{nobody},{broker.host}:{broker.port}/",
        "managementUri": f"http://127.0.0.1:{nobody}, {broker.management}",
    }

    assert begin({**given, **at, "queues": f"{queue[:-1]}?"}) == {queue: 1}


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

        assert Listing(trusting).queues() == Listing(careless).queues() == []
        with pytest.raises(ApiUntrusted):
            Listing(mistaken).queues()


def test_a_stream_of_a_pattern_may_go_just_when_it_was_listed(
    given: dict[str, str],
    channel: Channel,
    name: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("warren.spark.listing._COUNTS_S", 30.0)
    word = name("streams")
    streams = [f"{word}.{letter}" for letter in "ab"]
    for stream in streams:
        channel.declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    driver = Driver(SourceOptions.parse({**given, "queues": f"{word}.*"}))
    start = driver.initial()
    channel.call(spec.Queue.Delete(queue=streams[1]))
    try:
        assert driver.latest(start, None, None) == start  # it is on the list still
        channel.publish(streams[0], b"one")
        channel.sync()
        end = eventually(lambda: more_than(driver, start))
    finally:
        driver.close()
        channel.call(spec.Queue.Delete(queue=streams[0]))

    assert positions_of(end) == {streams[0]: 1, streams[1]: 0}


def more_than(driver: Driver, start: Offset) -> Offset | None:
    end = driver.latest(start, None, None)
    return end if end != start else None


@pytest.mark.parametrize("missing", ["fail", "wait"])
def test_a_named_stream_that_goes_ends_the_query_or_is_waited_for(
    given: dict[str, str], channel: Channel, name: Callable[..., str], missing: str
) -> None:
    stream = name("named")
    declared = {"durable": True, "arguments": {"x-queue-type": "stream"}}
    channel.declare(stream, **declared)
    options = {**given, "queues": stream, "onMissingQueue": missing}
    driver = Driver(SourceOptions.parse(options))
    start = driver.initial()
    channel.call(spec.Queue.Delete(queue=stream))
    try:
        if missing == "fail":
            with pytest.raises(QueueMissing, match=stream):
                driver.latest(start, None, None)
            return
        assert driver.latest(start, None, None) == start
        channel.declare(stream, **declared)
        channel.publish(stream, b"one")
        channel.sync()
        end = eventually(lambda: more_than(driver, start))
    finally:
        driver.close()

    assert positions_of(end) == {stream: 1}


# -- when the management API is away -------------------------------------------------------------
@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the management API told is not good for a while: it is asked again at each look."""
    monkeypatch.setattr("warren.spark.listing._COUNTS_S", 0.0)
    monkeypatch.setattr("warren.spark.listing._COUNTS_TIMES", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_query_on_a_pattern_waits_for_a_management_api_that_has_answered(
    broker: TestBroker, given: dict[str, str], channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("away")
    channel.declare(queue)
    at = urlsplit(broker.management)
    with (
        Proxy(broker.host, broker.port) as amqp,
        Proxy(at.hostname or "", at.port or 0) as api,
        ThreadPoolExecutor(1) as thread,
    ):
        where = {"uri": amqp.url, "managementUri": f"http://127.0.0.1:{api.port}"}
        driver = Driver(SourceOptions.parse({**given, **where, "queues": f"{queue[:-1]}?"}))
        start = driver.initial()
        channel.publish(queue, b"one")
        channel.sync()
        api.refuse()
        waiting = thread.submit(driver.latest, start, None, None)
        # What it takes for a lost connection it makes again.
        eventually(lambda: amqp.accepted > 1 or waiting.done())
        api.accept()
        end = waiting.result(60)
        driver.close()

    assert positions_of(end) == {queue: 1}


@pytest.mark.usefixtures("impatient")
def test_a_query_on_a_pattern_outlives_a_restart_of_the_broker(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with ThreadPoolExecutor(1) as thread, ExitStack() as stack:
        with Broker.in_thread(management_port=0, data_dir=data) as broker:
            ports = {"port": broker.port, "management_port": broker.management_port}
            proxy = stack.enter_context(Proxy("127.0.0.1", broker.port))
            given = {
                "uri": proxy.url,
                "managementUri": broker.management_url,
                "queues": "kept.*",
                "ledger": str(tmp_path / "ledger"),
            }
            driver = Driver(SourceOptions.parse(given))
            start = driver.initial()
            connection = Connection.open(broker.url)
            channel = connection.channel()
            channel.declare("kept.a", durable=True)
            channel.publish("kept.a", b"one", delivery_mode=2)
            channel.sync()
            connection.close()
        # Brokers listen for clients before they have an HTTP API.
        with Broker.in_thread(**{**ports, "management_port": -1}, data_dir=data):
            waiting = thread.submit(driver.latest, start, None, None)
            eventually(lambda: proxy.accepted > 1 or waiting.done())
        with Broker.in_thread(**ports, data_dir=data):
            end = waiting.result(60)
            driver.close()

    assert positions_of(end) == {"kept.a": 1}


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (ApiUnreachable("http://h:1", "Connection refused"), True),
        (ApiTimedOut("http://h:1", 10.0), True),
        (NotManagement("http://h:1", "it closes the connection without an answer"), True),
        (ApiRefused("list queues", 503, "HTTP status 503"), True),
        (ApiRefused("list queues", 403, "no"), False),
        (ApiLoginRefused("http://h:1", "ann", "login failed"), False),
        (ApiUntrusted("https://h:1", "self-signed certificate"), False),
    ],
)
def test_what_may_be_a_restart_is_told_from_what_will_not_pass(
    error: ManagementError, passing: bool
) -> None:
    assert is_passing(error) is passing
    assert "--" not in why(error)


# -- users who may only read ---------------------------------------------------------------------
@pytest.fixture
def reader(broker: TestBroker, given: dict[str, str]) -> Iterator[Callable[..., dict[str, str]]]:
    """Options of a user who may read all queues and do no more, but for these tags."""
    user = f"reader-{secrets.token_hex(4)}"

    def options(tags: str) -> dict[str, str]:
        broker.add_user(user, "secret", tags)
        broker.set_permissions(user, "/", configure="^$", write="^$", read=".*")
        return {**given, "user": user, "password": "secret"}

    yield options
    broker.delete_user(user)


def test_the_management_api_tells_the_kind_to_who_may_not_configure(
    reader: Callable[..., dict[str, str]], channel: Channel, name: Callable[..., str]
) -> None:
    classic, stream, quorum = name("classic"), name("stream"), name("quorum")
    channel.declare(classic)
    channel.declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    channel.declare(quorum, durable=True, arguments={"x-queue-type": "quorum"})
    queues = f"{classic},{stream},{quorum}"
    options = SourceOptions.parse({**reader("management"), "queues": queues})

    with BlockingConnection.open(options.endpoints) as link:
        found = Catalog(options).queues(link)

    assert {name: info.kind for name, info in found.items()} == {
        classic: "classic",
        stream: "stream",
        quorum: "quorum",
    }
    with pytest.raises(NotSingleActive):
        _ = found[quorum].mode


@pytest.mark.parametrize("peek", ["true", "false"])
def test_a_queue_of_which_nobody_tells_the_kind_is_not_read(
    reader: Callable[..., dict[str, str]], channel: Channel, name: Callable[..., str], peek: str
) -> None:
    queue = name("unknown")
    channel.declare(queue)
    channel.publish(queue, b"kept")
    channel.sync()
    options = reader("")

    with pytest.raises(KindUnknown, match=r"permission to configure .* managementUrl") as refused:
        read({**options, "queues": queue, "peek": peek})

    assert (refused.value.queue, refused.value.user) == (queue, options["user"])
    assert channel.count(queue) == 1


@pytest.mark.parametrize("peek", ["true", "false"])
def test_who_may_not_read_a_queue_is_told_so_at_once(
    reader: Callable[..., dict[str, str]],
    broker: TestBroker,
    channel: Channel,
    name: Callable[..., str],
    peek: str,
) -> None:
    queue = name("closed")
    channel.declare(queue)
    channel.publish(queue, b"kept")
    channel.sync()
    options = reader("")
    broker.set_permissions(options["user"], "/", configure=".*", write="^$", read="^$")

    with pytest.raises(ReadRefused, match=rf"'{queue}'.*grant that user the permission to read it"):
        read({**options, "queues": queue, "peek": peek})
    assert channel.count(queue) == 1


# -- queues that hold up a query -------------------------------------------------------------------
def run(options: dict[str, str], start: Offset, end: Offset) -> list[bytes]:
    """A batch that Spark has written down."""
    reader = QueueStreamReader(options, BODIES)
    try:
        tasks = reader.partitions(start, end)
        batches = [batch for task in tasks for batch in reader.read(task)]
    finally:
        reader.stop()
    return [body for batch in batches for body in batch.column("body").to_pylist()]


def test_a_quorum_queue_that_a_pattern_finds_is_refused_before_a_batch_is_written_down(
    given: dict[str, str], channel: Channel, name: Callable[..., str]
) -> None:
    stem = name("mixed")
    good, bad = name(f"{stem}.good"), name(f"{stem}.bad")
    channel.declare(good)
    channel.declare(bad, durable=True, arguments={"x-queue-type": "quorum"})
    channel.publish(good, b"one")
    channel.sync()
    pattern = {**given, "queues": f"{stem}.*"}
    assert begin(pattern) == {good: 1, bad: 0}
    channel.publish(bad, b"kept")
    channel.sync()

    eventually(lambda: channel.count(bad) == 1)

    with pytest.raises(NotSingleActive, match=f"'{bad}'"):
        begin(pattern)
    assert begin({**given, "queues": good}) == {good: 1}


def test_a_batch_goes_on_without_a_queue_that_may_not_be_read_once_it_is_left_out(
    reader: Callable[..., dict[str, str]],
    broker: TestBroker,
    channel: Channel,
    name: Callable[..., str],
) -> None:
    good, bad = name("good"), name("bad")
    for queue in (good, bad):
        channel.declare(queue)
        channel.publish(queue, b"one")
    channel.sync()
    options = {**reader(""), "minPartitions": "1"}
    broker.set_permissions(options["user"], "/", configure=".*", write="^$", read=f"^{good}$")
    both = {**options, "queues": f"{good},{bad}"}
    driver = Driver(SourceOptions.parse(both))
    try:
        start = driver.initial()
        end = driver.latest(start, None, None)
    finally:
        driver.close()

    for _ in range(2):
        with pytest.raises(ReadRefused, match=f"'{bad}'"):
            run(both, start, end)
    assert run({**options, "queues": good}, start, end) == [b"one"]

    broker.set_permissions(options["user"], "/", configure=".*", write="^$", read=".*")
    assert run(both, start, end) == [b"one"], "it has the rows that it had"
    assert channel.count(bad) == 1
    later = {**end, "queues": {good: 1, bad: 2}}
    assert run(both, end, later) == [b"one"]
    assert channel.count(bad) == 0
