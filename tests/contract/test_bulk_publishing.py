"""The blocking publisher: everything confirmed, whatever becomes of queues and connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import pytest

from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.wire import Channel, Connection
from warren.client.blocking_publisher import BlockingPublisher, PublishRules
from warren.client.endpoint import Endpoint
from warren.client.publish_columns import (
    Routes,
    encode_column,
    encode_messages,
    join_properties,
)
from warren.client.publish_connection import PublishConnection
from warren.errors import (
    HostUnreachable,
    Nacked,
    NotFound,
    PublisherBlocked,
    Unconfirmed,
    Unroutable,
)

Open = Callable[..., BlockingPublisher]


@pytest.fixture
def publisher(broker: TestBroker) -> Iterator[Open]:
    opened: list[BlockingPublisher] = []

    def open_publisher(**rules: Any) -> BlockingPublisher:
        endpoint = Endpoint.from_uri(broker.url)
        opened.append(BlockingPublisher([endpoint], PublishRules(**rules)))
        return opened[-1]

    yield open_publisher
    for each in opened:
        each.abandon()


def messages(
    bodies: list[bytes], routing_key: str, *, exchange: str = "", frame_max: int = 131072
) -> list[bytes]:
    """Messages with an id each, encoded as the sink does."""
    ids = encode_column("message_id", [f"m{number}" for number in range(len(bodies))])
    listed = join_properties({"message_id": ids}, {}, len(bodies))
    frame = Routes(mandatory=True).frame(exchange, routing_key)
    return encode_messages(repeat(frame), listed, bodies, frame_max)


def test_every_message_is_in_the_queue_in_order_when_it_is_finished(
    publisher: Open, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("bulk")
    channel.declare(queue)
    bodies = [b"%d" % number for number in range(2_000)]
    bulk = publisher(window=50)

    bulk.publish(messages(bodies, queue))
    bulk.finish()

    assert (bulk.unconfirmed, bulk.counts.confirmed) == (0, 2_000)
    assert channel.drain(queue) == bodies


def test_bodies_of_no_octets_and_of_many_frames_arrive(
    publisher: Open, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("bulk")
    channel.declare(queue)
    bulk = publisher()
    bodies = [b"", b"x" * 1_000_000, b"", b"y" * 131_064]

    bulk.publish(messages(bodies, queue, frame_max=bulk.frame_max))
    bulk.finish()

    assert channel.drain(queue) == bodies


def test_a_message_that_no_queue_takes_fails_and_names_its_routing_key(publisher: Open) -> None:
    bulk = publisher()
    with pytest.raises(Unroutable, match="no queue for routing key 'nowhere-at-all'"):
        bulk.publish(messages([b"lost"], "nowhere-at-all"))
        bulk.finish()


def test_large_messages_that_no_queue_takes_come_back_while_more_are_sent(
    publisher: Open,
) -> None:
    # The broker has to get rid of 40 MB while we write 40 MB: who only writes hangs here.
    bulk = publisher(unroutable="drop", confirm_timeout_s=20)
    bulk.publish(messages([b"x" * 100_000] * 400, "nowhere-at-all"))
    bulk.finish()
    assert bulk.counts.dropped == bulk.counts.confirmed == 400


def test_what_no_queue_takes_goes_to_the_dead_letter_exchange_as_it_was(
    publisher: Open, channel: Channel, name: Callable[[str], str]
) -> None:
    exchange, queue = name("dead"), name("dead")
    channel.declare_exchange(exchange, "fanout")
    channel.declare(queue)
    channel.bind(queue, exchange)
    bulk = publisher(unroutable="deadletter", dead_letter_exchange=exchange)

    bulk.publish(messages([b"one", b"two"], "nowhere-at-all"))
    bulk.finish()

    assert bulk.counts.dead_lettered == 2
    got = [channel.get(queue), channel.get(queue)]
    assert [(each.body, each.properties.message_id) for each in got if each] == [
        (b"one", "m0"),
        (b"two", "m1"),
    ]
    assert got[0] is not None
    assert got[0].method.routing_key == "nowhere-at-all"


def test_a_dead_letter_exchange_without_a_queue_fails_and_loses_nothing_silently(
    publisher: Open, channel: Channel, name: Callable[[str], str]
) -> None:
    exchange = name("dead")
    channel.declare_exchange(exchange, "fanout")
    bulk = publisher(unroutable="deadletter", dead_letter_exchange=exchange)
    with pytest.raises(Unroutable, match=exchange):
        bulk.publish(messages([b"one"], "nowhere-at-all"))
        bulk.finish()


def test_an_exchange_that_is_not_there_is_named(publisher: Open) -> None:
    bulk = publisher()
    with pytest.raises(NotFound, match="no exchange 'not-there'"):
        bulk.publish(messages([b"lost"], "key", exchange="not-there"))
        bulk.finish()


def test_a_broker_that_confirms_nothing_is_given_up(
    broker: TestBroker, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("frozen")
    channel.declare(queue)
    rules = PublishRules(confirm_timeout_s=0.3)
    with Proxy(broker.host, broker.port) as proxy:
        without_heartbeats = Endpoint.from_uri(f"{proxy.url}?heartbeat=0")
        bulk = BlockingPublisher([without_heartbeats], rules)
        _publish_all(bulk, messages([b"heard"], queue))
        proxy.freeze()
        began = time.monotonic()

        with pytest.raises(Unconfirmed, match=f"key '{queue}': no confirm in 0.3 s$"):
            _publish_all(bulk, messages([b"lost"], queue))
        bulk.abandon()
    assert 0.3 <= time.monotonic() - began < 5
    assert channel.drain(queue) == [b"heard"]


def test_a_publisher_that_is_not_patient_fails_at_once_where_no_broker_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    endpoint = Endpoint.from_uri("amqp://guest:guest@127.0.0.1:9/")
    bulk = BlockingPublisher([endpoint], patient=False)
    with pytest.raises(HostUnreachable):
        bulk.publish(messages([b"one"], "key"))
    assert caplog.messages == []  # each further try would be told


def test_a_full_queue_that_stays_full_fails_after_some_tries(
    publisher: Open, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("full")
    channel.declare(queue, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    bulk = publisher(retries=2)
    with pytest.raises(Nacked, match=f"routing key '{queue}'"):
        bulk.publish(messages([b"%d" % number for number in range(50)], queue))
        bulk.finish()
    assert bulk.unconfirmed > 0


def test_what_was_refused_is_tried_again_over_another_connection(
    publisher: Open,
    channel: Channel,
    name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A channel may be refused for ever: RabbitMQ's, of a quorum queue that had no leader at first.
    queue = name("full")
    channel.declare(queue, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    opened: list[Any] = []
    dial = PublishConnection._dial
    monkeypatch.setattr(
        PublishConnection, "_dial", staticmethod(lambda at: opened.append(at) or dial(at))
    )
    bulk = publisher(retries=2)
    with pytest.raises(Nacked):
        bulk.publish(messages([b"one", b"two", b"three"], queue))
        bulk.finish()
    assert len(opened) == 3


def test_a_full_queue_that_is_read_gets_every_message(
    publisher: Open, connect: Callable[..., Any], name: Callable[[str], str]
) -> None:
    queue = name("full")
    channel = connect().channel()
    channel.declare(queue, arguments={"x-max-length": 10, "x-overflow": "reject-publish"})
    bodies = {b"%d" % number for number in range(30)}
    bulk = publisher(retries=20)
    sender = threading.Thread(target=_publish_all, args=(bulk, messages(sorted(bodies), queue)))
    sender.start()
    seen: set[bytes] = set()
    try:
        eventually(lambda: seen.update(channel.drain(queue)) or seen == bodies, 40, 0.05)
    finally:
        sender.join(30)
    assert bulk.unconfirmed == 0


def _publish_all(bulk: BlockingPublisher, encoded: list[bytes]) -> None:
    bulk.publish(encoded)
    bulk.finish()


def test_what_a_lost_connection_had_not_confirmed_is_published_again(
    publisher: Open, broker: TestBroker, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("again")
    channel.declare(queue)
    bodies = [b"%d" % number for number in range(3_000)]
    encoded = messages(bodies, queue)
    bulk = publisher()

    bulk.publish(encoded[:1_500])
    broker.close_connections("a test")
    bulk.publish(encoded[1_500:])
    bulk.finish()

    assert bulk.counts.reconnects >= 1
    found = _drained(broker, queue)
    assert set(found) == set(bodies)
    assert list(dict.fromkeys(found)) == bodies  # the first of each, in order


@pytest.mark.slow
def test_a_connection_stays_while_nobody_publishes(
    broker: TestBroker, channel: Channel, name: Callable[[str], str]
) -> None:
    # Spark may take longer over its next rows than a broker waits for a sign of life.
    queue = name("idle")
    channel.declare(queue)
    endpoint = Endpoint.from_uri(f"{broker.url}?heartbeat=1")
    with BlockingPublisher([endpoint]) as bulk:
        bulk.publish(messages([b"before"], queue))
        patience = time.monotonic() + 4.5
        eventually(lambda: time.monotonic() > patience)
        assert bulk.unconfirmed == 0  # heard meanwhile, too
        bulk.publish(messages([b"after"], queue))
        bulk.finish()
        assert bulk.counts.reconnects == 0
    assert _drained(broker, queue) == [b"before", b"after"]


def _drained(broker: TestBroker, queue: str) -> list[bytes]:
    connection = Connection.open(broker.url)
    try:
        return connection.channel().drain(queue)
    finally:
        connection.close()


def test_a_broker_short_of_memory_is_waited_for(
    publisher: Open, broker: TestBroker, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("blocked")
    channel.declare(queue)
    broker.memory_alarm(True)
    bulk = publisher(confirm_timeout_s=3)
    sender = threading.Thread(
        target=_publish_all, args=(bulk, messages([b"x" * 1000] * 5_000, queue))
    )
    sender.start()
    try:
        eventually(lambda: bulk.is_blocked, 20)
        patience = time.monotonic() + 3.5  # longer than for a confirm
        eventually(lambda: time.monotonic() > patience)
    finally:
        broker.memory_alarm(False)
        sender.join(50)
    assert bulk.unconfirmed == 0
    assert channel.count(queue) == 5_000


def test_a_broker_that_stays_short_of_memory_is_given_up_and_the_reason_told(
    publisher: Open, broker: TestBroker, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("blocked")
    channel.declare(queue)
    broker.memory_alarm(True)
    try:
        bulk = publisher(blocked_timeout_s=0.3)
        with pytest.raises(PublisherBlocked, match="low on memory"):
            _publish_all(bulk, messages([b"x" * 1000] * 20_000, queue))
    finally:
        broker.memory_alarm(False)
