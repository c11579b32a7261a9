"""Programs that consume with pika, one by one, in threads, and as a standby."""

from __future__ import annotations

import functools
import queue
import threading
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    ChannelClosedByBroker,
)

from tests.integration.clients.pika_programs.steps import Connect, Name, Start, StartProcess
from tests.integration.clients.programs import DEADLINE_S, script
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually


def test_a_loop_of_basic_get_empties_a_queue(channel: BlockingChannel, name: Name) -> None:
    orders = channel.queue_declare(name("orders")).method.queue
    for number in range(5):
        channel.basic_publish("", orders, b"%d" % number)
    left, bodies = [], []
    while (got := channel.basic_get(orders))[0] is not None:
        method, _, body = got
        left.append(method.message_count)
        bodies.append(body)
        channel.basic_ack(method.delivery_tag)
    assert bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert left == [4, 3, 2, 1, 0]


def test_the_consume_generator_ends_and_gives_back_what_it_did_not_hand_out(
    channel: BlockingChannel, name: Name
) -> None:
    orders = channel.queue_declare(name("orders")).method.queue
    for number in range(10):
        channel.basic_publish("", orders, b"%d" % number)
    for method, _, body in channel.consume(orders, inactivity_timeout=DEADLINE_S):
        channel.basic_ack(method.delivery_tag)
        if body == b"3":
            break
    channel.cancel()
    rest = channel.consume(orders, inactivity_timeout=DEADLINE_S)
    assert [next(rest)[2] for _ in range(6)] == [b"4", b"5", b"6", b"7", b"8", b"9"]


def test_a_deleted_queue_cancels_its_consumer_and_ends_the_program(
    channel: BlockingChannel, name: Name, consumer: Start
) -> None:
    orders, cancelled = name("orders"), queue.SimpleQueue[str]()
    channel.queue_declare(orders)

    def set_up(channel: BlockingChannel) -> str:
        channel.add_on_cancel_callback(lambda frame: cancelled.put(frame.method.consumer_tag))
        return channel.basic_consume(orders, lambda *delivery: None)

    program = consumer(set_up)
    channel.queue_delete(orders)
    assert cancelled.get(timeout=DEADLINE_S) == program.ready.result()
    program.wait_done()


def test_a_consumer_stops_when_it_cancels_itself(
    channel: BlockingChannel, name: Name, consumer: Start
) -> None:
    orders = channel.queue_declare(name("orders")).method.queue

    def set_up(channel: BlockingChannel) -> None:
        def on_message(ch: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
            ch.basic_ack(method.delivery_tag)
            ch.basic_cancel(method.consumer_tag)

        channel.basic_consume(orders, on_message)

    program = consumer(set_up)
    channel.basic_publish("", orders, b"last one")
    program.wait_done()
    answer = channel.queue_declare(orders, passive=True).method
    assert (answer.message_count, answer.consumer_count) == (0, 0)


def test_work_in_threads_is_acked_on_the_connections_own(
    channel: BlockingChannel, name: Name, consumer: Start
) -> None:
    tasks, threads = channel.queue_declare(name("tasks")).method.queue, []

    def set_up(channel: BlockingChannel) -> None:
        def work(tag: int) -> None:
            ack = functools.partial(channel.basic_ack, tag)
            channel.connection.add_callback_threadsafe(ack)

        def on_message(ch: Any, method: Any, properties: Any, body: bytes) -> None:
            thread = threading.Thread(target=work, args=(method.delivery_tag,))
            thread.start()  # before it is in the list: who finds it there joins it
            threads.append(thread)

        channel.basic_qos(prefetch_count=2)
        channel.basic_consume(tasks, on_message)

    program = consumer(set_up)
    for number in range(10):
        channel.basic_publish("", tasks, b"%d" % number)
    eventually(lambda: len(threads) == 10)
    for thread in threads:
        thread.join(DEADLINE_S)
    program.stop()
    assert channel.queue_declare(tasks, passive=True).method.message_count == 0


# -- exclusive consumers -------------------------------------------------------------------------
EXCLUSIVE_WORKER = """
    import sys, pika
    url, orders = sys.argv[1:]

    def work(channel, method, properties, body):
        if body == b"2":
            print("working on 2")
        else:
            channel.basic_ack(method.delivery_tag)

    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(orders, work, exclusive=True)
    channel.start_consuming()
"""


def test_the_standby_takes_over_when_the_exclusive_consumer_is_killed(
    broker: TestBroker, pika_connect: Connect, name: Name, process: StartProcess
) -> None:
    connection, orders, got = pika_connect(), name("orders"), []
    publisher = connection.channel()
    publisher.queue_declare(orders, durable=True)
    for number in range(6):
        publisher.basic_publish("", orders, b"%d" % number)
    active = process(script(EXCLUSIVE_WORKER, broker.url, orders))
    eventually(lambda: active.has_printed("working on 2"))

    def on_message(channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        got.append((body, method.redelivered))
        channel.basic_ack(method.delivery_tag)

    def take_over() -> bool:
        standby = connection.channel()
        try:
            standby.basic_consume(orders, on_message, exclusive=True)
        except ChannelClosedByBroker as refused:
            assert refused.reply_code == 403
            expected = f"ACCESS_REFUSED - queue '{orders}' in vhost '/' in exclusive use"
            assert refused.reply_text == expected
            return False
        return True

    assert not take_over()
    active.kill()
    eventually(take_over)
    eventually(lambda: connection.process_data_events(time_limit=0.1) or len(got) == 4)
    assert got == [(b"2", True), (b"3", False), (b"4", False), (b"5", False)]
