"""Connections of pika's that hang, are closed, or are not let in."""

from __future__ import annotations

import threading
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from tests.integration.clients.pika_programs.steps import Connect, Inbox, Name, Start
from tests.integration.clients.programs import DEADLINE_S
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually


def test_heartbeats_keep_an_idle_connection_open(
    pika_connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "pika.heartbeat")
    connection = pika_connect(heartbeat=1)
    connection.process_data_events(time_limit=3.5)  # a silent client is dropped before that
    connection.channel()
    assert caplog.messages.count("Received heartbeat frame") >= 3


def test_a_program_that_hangs_loses_its_connection_and_its_messages(
    pika_connect: Connect, channel: BlockingChannel, name: Name, consumer: Start
) -> None:
    orders, inbox = channel.queue_declare(name("orders")).method.queue, Inbox()
    hung = pika_connect(heartbeat=1).channel()  # nobody calls process_data_events for it
    channel.basic_publish("", orders, b"taken")
    eventually(lambda: channel.queue_declare(orders, passive=True).method.message_count)
    method, _, _ = hung.basic_get(orders)
    consumer(lambda channel: channel.basic_consume(orders, inbox.acking_callback))
    assert inbox.next() == b"taken"
    with pytest.raises(AMQPConnectionError):
        hung.basic_ack(method.delivery_tag)
        hung.connection.process_data_events(time_limit=DEADLINE_S)


def test_a_program_that_connects_again_goes_on_after_its_connection_was_closed(
    broker: TestBroker, channel: BlockingChannel, name: Name
) -> None:
    orders, inbox, reasons = name("orders"), Inbox(), []
    channel.queue_declare(orders, durable=True)
    consuming, done = threading.Semaphore(0), threading.Event()

    def program() -> None:
        while not done.is_set():
            try:
                connection = pika.BlockingConnection(pika.URLParameters(broker.url))
                channel = connection.channel()
                channel.basic_consume(orders, inbox.acking_callback)
                consuming.release()
                while not done.is_set():
                    connection.process_data_events(time_limit=0.05)
                connection.close()
            except ConnectionClosedByBroker as closed:
                reasons.append((closed.reply_code, closed.reply_text))

    thread = threading.Thread(target=program, daemon=True)
    thread.start()
    assert consuming.acquire(timeout=DEADLINE_S)
    broker.close_connections("maintenance")
    assert consuming.acquire(timeout=DEADLINE_S)
    with pytest.raises(ConnectionClosedByBroker):  # the publisher's connection went too
        channel.connection.process_data_events(time_limit=DEADLINE_S)
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        connection.channel().basic_publish("", orders, b"after")
    assert inbox.next() == b"after"
    done.set()
    thread.join(DEADLINE_S)
    assert reasons == [(320, "CONNECTION_FORCED - maintenance")]


def test_a_wrong_password_is_told(broker: TestBroker) -> None:
    parameters = pika.URLParameters(broker.url)
    parameters.credentials = pika.PlainCredentials("guest", "wrong")
    with pytest.raises(ProbableAuthenticationError, match=r"\(403\) 'ACCESS_REFUSED - Login was"):
        pika.BlockingConnection(parameters)


def test_a_wrong_vhost_is_told(broker: TestBroker) -> None:
    with pytest.raises(ProbableAccessDeniedError, match=r"NOT_ALLOWED - vhost nowhere not found"):
        pika.BlockingConnection(pika.URLParameters(broker.url + "nowhere"))


def test_a_refused_declaration_closes_the_channel_and_not_the_connection(
    pika_connect: Connect, name: Name
) -> None:
    connection, orders = pika_connect(), name("orders")
    channel = connection.channel()
    channel.queue_declare(orders, durable=True)
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.queue_declare(orders, durable=False)
    assert refused.value.reply_code == 406
    assert channel.is_closed
    connection.channel().queue_declare(orders, durable=True)


def test_a_large_message_with_every_property_comes_back_as_it_went(
    channel: BlockingChannel, name: Name
) -> None:
    files = channel.queue_declare(name("files")).method.queue
    properties = pika.BasicProperties(
        content_type="application/json",
        content_encoding="utf-8",
        headers={"number": 7, "list": [1, "two", None], "table": {"deep": True}},
        delivery_mode=2,
        priority=3,
        correlation_id="c-1",
        reply_to="replies",
        expiration="600000",
        message_id="m-1",
        timestamp=1700000000,
        type="order",
        user_id="guest",
        app_id="shop",
        cluster_id="",
    )
    body = bytes(range(256)) * 4096
    channel.basic_publish("", files, body, properties)
    got: list[Any] = []

    def arrived() -> bool:
        got[:] = channel.basic_get(files, auto_ack=True)
        return got[0] is not None

    eventually(arrived)
    assert got[2] == body
    assert got[1] == properties
