"""Queues and vhosts: each vhost is a broker of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pika import spec

from tests.contract.queues.steps import (
    DECLARE,
    arrival,
    drain,
    exists,
    fill,
    no_queue,
    reject_next,
    words,
)
from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Closed, Connection


@pytest.fixture
def vhost(broker: TestBroker, name: Callable[[str], str]) -> Iterator[str]:
    vhost = name("vhost")
    broker.add_vhost(vhost)
    yield vhost
    broker.delete_vhost(vhost)


@pytest.fixture
def elsewhere(vhost: str, connect: Callable[..., Connection]) -> Channel:
    """A channel in another vhost."""
    return connect(vhost=vhost).channel()


def test_a_queue_is_there_in_its_vhost_only(elsewhere: Channel, queue: str, vhost: str) -> None:
    refusal = elsewhere.refused(spec.Queue.Declare(queue=queue, passive=True))
    assert words(refusal) == ("channel", 404, no_queue(queue, vhost), DECLARE)


def test_queues_of_one_name_in_two_vhosts_are_two(
    channel: Channel, elsewhere: Channel, queue: str
) -> None:
    elsewhere.declare(queue, durable=True, arguments={"x-max-length": 5})
    fill(elsewhere, queue, "a")
    fill(channel, queue, "b")
    assert (drain(elsewhere, queue), drain(channel, queue)) == ("a", "b")


def test_refusals_name_the_vhost(elsewhere: Channel, vhost: str) -> None:
    elsewhere.declare("queue")
    refusal = elsewhere.refused(spec.Queue.Declare(queue="queue", durable=True))
    text = (
        f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'queue' in vhost '{vhost}':"
        " received 'true' but current is 'false'"
    )
    assert words(refusal) == ("channel", 406, text, DECLARE)


def test_deleting_a_queue_leaves_that_of_another_vhost(
    channel: Channel, elsewhere: Channel, queue: str
) -> None:
    elsewhere.declare(queue)
    elsewhere.call(spec.Queue.Delete(queue=queue))
    assert exists(channel, queue)


def test_messages_are_dead_lettered_within_their_vhost(
    channel: Channel, elsewhere: Channel, queue: str
) -> None:
    elsewhere.declare(queue)
    elsewhere.declare(
        "source", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    )
    fill(elsewhere, "source", "a")
    reject_next(elsewhere, "source")
    assert arrival(elsewhere, queue).body == b"a"
    assert channel.count(queue) == 0


def test_predeclared_exchanges_are_there_in_a_new_vhost(elsewhere: Channel) -> None:
    elsewhere.declare("queue")
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"):
        elsewhere.bind("queue", exchange, "key")
    elsewhere.publish("key", b"a", exchange="amq.topic")
    assert drain(elsewhere, "queue") == "a"


def test_deleting_a_vhost_ends_its_connections_and_its_queues(
    broker: TestBroker, name: Callable[[str], str], connect: Callable[..., Connection]
) -> None:
    vhost = name("vhost")
    broker.add_vhost(vhost)
    inside = connect(vhost=vhost)
    inside.channel().declare("queue", durable=True)
    broker.delete_vhost(vhost)
    scope, code, text, ids = words(inside.expect_closed())
    assert (scope, code, ids) == ("connection", 320, (0, 0))
    # two parts of RabbitMQ hear of it, and either may be the first to close the connection
    told = {f"CONNECTION_FORCED - vhost '{vhost}' is {what}" for what in ("deleted", "down")}
    assert text in told
    with pytest.raises(Closed) as refusal:
        connect(vhost=vhost)
    text = f"NOT_ALLOWED - vhost {vhost} not found"
    assert words(refusal.value) == ("connection", 530, text, (10, 40))


def test_a_vhost_made_anew_is_empty(
    broker: TestBroker, vhost: str, connect: Callable[..., Connection]
) -> None:
    connect(vhost=vhost).channel().declare("queue", durable=True)
    broker.delete_vhost(vhost)
    broker.add_vhost(vhost)
    refusal = (
        connect(vhost=vhost).channel().refused(spec.Queue.Declare(queue="queue", passive=True))
    )
    assert words(refusal) == ("channel", 404, no_queue("queue", vhost), DECLARE)
