"""Programs that publish with pika: confirms, returns, transactions."""

from __future__ import annotations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    NackError,
    UnroutableError,
)

from tests.integration.clients.pika_programs.steps import Connect, Name
from tests.integration.clients.programs import DEADLINE_S


def test_a_confirmed_publish_is_in_the_queue(channel: BlockingChannel, name: Name) -> None:
    orders = channel.queue_declare(name("orders"), durable=True).method.queue
    channel.confirm_delivery()
    for number in range(20):
        channel.basic_publish("", orders, b"%d" % number, mandatory=True)
    assert channel.queue_declare(orders, passive=True).method.message_count == 20


def test_an_unroutable_message_is_an_error_that_carries_the_message(
    channel: BlockingChannel, name: Name
) -> None:
    nowhere = name("nowhere")
    channel.confirm_delivery()
    with pytest.raises(UnroutableError) as failed:
        channel.basic_publish(
            "amq.direct", nowhere, b"lost", pika.BasicProperties(app_id="shop"), mandatory=True
        )
    [message] = failed.value.messages
    assert (message.method.reply_code, message.method.reply_text) == (312, "NO_ROUTE")
    assert (message.method.exchange, message.method.routing_key) == ("amq.direct", nowhere)
    assert (message.properties.app_id, message.body) == ("shop", b"lost")
    channel.basic_publish("amq.direct", nowhere, b"without mandatory: dropped")


def test_a_message_that_a_full_queue_refuses_is_an_error(
    channel: BlockingChannel, name: Name
) -> None:
    small = name("small")
    channel.queue_declare(small, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.confirm_delivery()
    channel.basic_publish("", small, b"fits")
    with pytest.raises(NackError):
        channel.basic_publish("", small, b"does not")
    assert channel.basic_get(small, auto_ack=True)[2] == b"fits"


def test_without_confirms_an_unroutable_message_comes_to_the_return_callback(
    pika_connect: Connect, name: Name
) -> None:
    connection = pika_connect()
    channel, returned = connection.channel(), []
    channel.add_on_return_callback(lambda ch, method, properties, body: returned.append(body))
    channel.basic_publish("", name("nowhere"), b"lost", mandatory=True)
    connection.process_data_events(time_limit=DEADLINE_S)
    assert returned == [b"lost"]


def test_a_transaction(channel: BlockingChannel, name: Name) -> None:
    orders = channel.queue_declare(name("orders")).method.queue
    channel.tx_select()
    channel.basic_publish("", orders, b"rolled back")
    channel.tx_rollback()
    channel.basic_publish("", orders, b"committed")
    assert channel.queue_declare(orders, passive=True).method.message_count == 0
    channel.tx_commit()
    assert channel.queue_declare(orders, passive=True).method.message_count == 1
    assert channel.basic_get(orders)[2] == b"committed"
