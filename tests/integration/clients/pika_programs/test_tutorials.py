"""Programs as pika's users write them: the six tutorials."""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.integration.clients.pika_programs.steps import Connect, Inbox, Name, Start, StartProcess
from tests.integration.clients.programs import DEADLINE_S, script
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually


def test_hello_world(channel: BlockingChannel, name: Name, consumer: Start) -> None:
    hello, inbox = name("hello"), Inbox()

    def receive(channel: BlockingChannel) -> None:
        channel.queue_declare(hello)
        channel.basic_consume(hello, inbox.callback, auto_ack=True)

    consumer(receive)
    channel.queue_declare(hello)
    channel.basic_publish("", hello, b"Hello World!")
    assert inbox.next() == b"Hello World!"


def test_work_goes_to_the_worker_that_is_free(
    channel: BlockingChannel, name: Name, consumer: Start
) -> None:
    tasks, busy, free, finish = name("task_queue"), Inbox(), Inbox(), threading.Event()

    def work(task: Callable[..., None]) -> Callable[[BlockingChannel], None]:
        def set_up(channel: BlockingChannel) -> None:
            channel.queue_declare(tasks, durable=True)
            channel.basic_qos(prefetch_count=1)
            channel.basic_consume(tasks, task)

        return set_up

    def slow(channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        busy.callback(channel, method, properties, body)
        finish.wait(DEADLINE_S)
        channel.basic_ack(method.delivery_tag)

    consumer(work(slow))
    persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)
    channel.basic_publish("", tasks, b"0", persistent)
    assert busy.next() == b"0"
    consumer(work(free.acking_callback))
    for number in range(1, 9):
        channel.basic_publish("", tasks, b"%d" % number, persistent)
    assert free.take(8) == [b"%d" % number for number in range(1, 9)]
    assert busy.empty
    finish.set()


WORKER = """
    import sys, pika
    url, tasks = sys.argv[1:]
    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    channel.basic_qos(prefetch_count=3)
    channel.basic_consume(tasks, lambda ch, method, properties, body: print("got", body.decode()))
    channel.start_consuming()
"""


def test_the_tasks_of_a_killed_worker_go_to_another(
    broker: TestBroker, channel: BlockingChannel, name: Name, consumer: Start, process: StartProcess
) -> None:
    tasks, inbox = name("task_queue"), Inbox()
    channel.queue_declare(tasks, durable=True)
    for body in (b"a", b"b", b"c", b"d"):
        channel.basic_publish("", tasks, body)
    worker = process(script(WORKER, broker.url, tasks))
    eventually(lambda: worker.has_printed("got c"))

    consumer(lambda channel: channel.basic_consume(tasks, inbox.acking_callback))
    assert inbox.next() == b"d"
    worker.kill()
    assert inbox.take(3) == [b"a", b"b", b"c"]


def test_publish_and_subscribe(channel: BlockingChannel, name: Name, consumer: Start) -> None:
    logs, screen, file = name("logs"), Inbox(), Inbox()

    def receive_logs(inbox: Inbox, channel: BlockingChannel) -> str:
        channel.exchange_declare(logs, exchange_type="fanout")
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(mine, logs)
        channel.basic_consume(mine, inbox.callback, auto_ack=True)
        return mine

    channel.exchange_declare(logs, exchange_type="fanout")
    channel.basic_publish(logs, "", b"nobody listens yet")
    channel.exchange_declare(logs, exchange_type="fanout")  # its answer comes after the publish
    names = {consumer(functools.partial(receive_logs, i)).ready.result() for i in (screen, file)}
    assert len(names) == 2
    assert all(queue.startswith("amq.gen-") for queue in names)
    channel.basic_publish(logs, "", b"info: hello")
    assert screen.next() == file.next() == b"info: hello"


def receive_by_key(
    exchange: str, kind: str, keys: list[str], inbox: Inbox
) -> Callable[[BlockingChannel], None]:
    """receive_logs_direct.py and receive_logs_topic.py."""

    def set_up(channel: BlockingChannel) -> None:
        channel.exchange_declare(exchange, exchange_type=kind)
        mine = channel.queue_declare("", exclusive=True).method.queue
        for key in keys:
            channel.queue_bind(mine, exchange, routing_key=key)
        channel.basic_consume(mine, inbox.callback, auto_ack=True)

    return set_up


def test_routing(channel: BlockingChannel, name: Name, consumer: Start) -> None:
    logs, errors, everything = name("direct_logs"), Inbox(), Inbox()
    levels = ["info", "warning", "error"]
    consumer(receive_by_key(logs, "direct", ["error"], errors))
    consumer(receive_by_key(logs, "direct", levels, everything))
    for level in levels:
        channel.basic_publish(logs, level, level.encode())
    assert everything.take(3) == [b"info", b"warning", b"error"]
    assert errors.next() == b"error"
    assert errors.empty


def test_topics(channel: BlockingChannel, name: Name, consumer: Start) -> None:
    logs = name("topic_logs")
    patterns = {"#": 5, "kern.*": 2, "*.critical": 2, "lazy.#": 2}
    inboxes = {pattern: Inbox() for pattern in patterns}
    for pattern, inbox in inboxes.items():
        consumer(receive_by_key(logs, "topic", [pattern], inbox))
    keys = ["kern.critical", "kern.info", "cron.critical", "lazy.pink.rabbit", "lazy"]
    for key in keys:
        channel.basic_publish(logs, key, b"")
    got = {
        pattern: [inboxes[pattern].next_routing_key() for _ in range(count)]
        for pattern, count in patterns.items()
    }
    assert got == {
        "#": keys,
        "kern.*": ["kern.critical", "kern.info"],
        "*.critical": ["kern.critical", "cron.critical"],
        "lazy.#": ["lazy.pink.rabbit", "lazy"],
    }
    assert all(inbox.empty for inbox in inboxes.values())


def fib(number: int) -> int:
    return number if number < 2 else fib(number - 1) + fib(number - 2)


def rpc_server(rpc_queue: str) -> Callable[[BlockingChannel], None]:
    def on_request(channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        reply = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, b"%d" % fib(int(body)), reply)
        channel.basic_ack(method.delivery_tag)

    def set_up(channel: BlockingChannel) -> None:
        channel.queue_declare(rpc_queue)
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(rpc_queue, on_request)

    return set_up


class FibonacciClient:
    """rpc_client.py; with ``reply_to`` given, by direct reply-to."""

    def __init__(self, connection: pika.BlockingConnection, reply_to: str | None = None) -> None:
        self.connection, self.channel = connection, connection.channel()
        self.reply_to = reply_to or self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.basic_consume(self.reply_to, self.on_response, auto_ack=True)
        self.answers: dict[str, int] = {}

    def on_response(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.answers[properties.correlation_id] = int(body)

    def call(self, rpc_queue: str, number: int) -> int:
        call_id = str(uuid.uuid4())
        properties = pika.BasicProperties(reply_to=self.reply_to, correlation_id=call_id)
        self.channel.basic_publish("", rpc_queue, str(number), properties)
        self.connection.process_data_events(time_limit=DEADLINE_S)
        return self.answers[call_id]


@pytest.mark.parametrize("reply_to", [None, "amq.rabbitmq.reply-to"])
def test_rpc(pika_connect: Connect, name: Name, consumer: Start, reply_to: str | None) -> None:
    rpc_queue = name("rpc_queue")
    consumer(rpc_server(rpc_queue))
    client = FibonacciClient(pika_connect(), reply_to)
    assert [client.call(rpc_queue, number) for number in (0, 1, 10)] == [0, 1, 55]
