"""What a program sees of the broker that it embeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import warren
from tests.integration.broker_api.steps import closed_with, queue_of
from tests.support.wire import Channel, Closed, Connection


def test_a_snapshot_counts_what_there_is(broker: warren.Broker, channel: Channel) -> None:
    channel.declare("orders", durable=True, arguments={"x-max-length": 10})
    for body in (b"one", b"four", b"seven"):
        channel.publish("orders", body)
    channel.get("orders", no_ack=False)
    channel.connection.channel().consume("amq.rabbitmq.reply-to", no_ack=True)
    snapshot = broker.snapshot()

    assert (snapshot["connections"], snapshot["channels"], snapshot["published"]) == (1, 2, 3)
    assert snapshot["memory_alarm"] is False
    assert snapshot["held_bytes"] > len(b"onefourseven")
    (queue,) = snapshot["queues"]
    assert queue["arguments"] == {"x-max-length": 10}
    known = {
        "name": "orders",
        "vhost": "/",
        "type": "classic",
        "durable": True,
        "auto_delete": False,
        "exclusive": False,
        "messages_ready": 2,
        "messages_unacknowledged": 1,
        "messages": 3,
        "message_bytes_ready": len(b"fourseven"),
        "consumers": 0,
    }
    assert {key: queue[key] for key in known} == known


def test_a_snapshot_names_the_single_active_consumer(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.declare("orders", arguments={"x-single-active-consumer": True})
    channel.consume("orders", "first")
    channel.consume("orders", "second")

    queue = queue_of(broker, "orders")
    assert (queue["consumers"], queue["single_active_consumer_tag"]) == (2, "first")


async def test_a_snapshot_may_be_taken_inside_the_loop() -> None:
    async with warren.Broker(port=0) as broker:
        assert broker.snapshot()["connections"] == 0


def test_a_snapshot_may_be_taken_after_the_end() -> None:
    with warren.Broker.in_thread() as broker:
        connection = Connection.open(broker.url)
        connection.channel().declare("orders")
        connection.close()

    assert queue_of(broker, "orders")["messages"] == 0


def test_a_snapshot_is_a_value_of_its_own(broker: warren.Broker, channel: Channel) -> None:
    channel.declare("orders")
    before = broker.snapshot()
    channel.publish("orders", b"later")
    channel.sync()

    assert before["queues"][0]["messages"] == 0
    before["queues"][0]["arguments"]["x"] = 1
    assert queue_of(broker, "orders")["arguments"] == {}


def test_vhosts_come_and_go(broker: warren.Broker, connect: Callable[..., Connection]) -> None:
    broker.add_vhost("other")
    connection = connect(vhost="other")
    connection.channel().declare("orders")
    broker.add_vhost("other")  # stays as it is
    assert queue_of(broker, "orders")["vhost"] == "other"

    broker.delete_vhost("other")
    assert closed_with(connection) == (320, "CONNECTION_FORCED - vhost 'other' is deleted")
    assert broker.snapshot()["queues"] == []
    with pytest.raises(Closed, match="vhost other not found"):
        connect(vhost="other")
