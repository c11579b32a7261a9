"""What a broker holds is bounded, whoever is slow, large, or many."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pika import frame, spec

import warren
from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed, Connection

MIB = 1 << 20


@pytest.fixture
def running() -> Iterator[Callable[..., warren.Broker]]:
    """Starts brokers with settings of the test's own."""
    stack: list[Any] = []

    def start(**settings: Any) -> warren.Broker:
        stack.append(warren.Broker.in_thread(**settings))
        broker: warren.Broker = stack[-1].__enter__()
        return broker

    yield start
    for broker in reversed(stack):
        broker.__exit__(None, None, None)


@pytest.fixture
def broker(running: Callable[..., warren.Broker]) -> warren.Broker:
    return running()


@pytest.fixture
def connect(broker: warren.Broker) -> Iterator[Callable[..., Connection]]:
    opened: list[Connection] = []

    def connect(**options: Any) -> Connection:
        opened.append(Connection.open(options.pop("url", broker.url), **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.drop()


@pytest.fixture
def channel(connect: Callable[..., Connection]) -> Channel:
    return connect().channel()


def memory_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def queue_of(broker: warren.Broker, name: str) -> dict[str, Any]:
    (queue,) = (queue for queue in broker.snapshot()["queues"] if queue["name"] == name)
    return queue


# -- one body, many queues -----------------------------------------------------------------------
def fan_out(channel: Channel, queues: int) -> list[str]:
    names = [f"copy-{number}" for number in range(queues)]
    for name in names:
        channel.declare(name, exclusive=True)
        channel.bind(name, "amq.fanout")
    return names


def test_one_body_is_held_once_for_a_hundred_queues(
    broker: warren.Broker, channel: Channel
) -> None:
    names = fan_out(channel, 100)
    before = memory_bytes()
    channel.publish("", bytes(MIB), exchange="amq.fanout")
    channel.sync()

    assert MIB < broker.snapshot()["held_bytes"] < MIB + 1000
    assert memory_bytes() < before + 8 * MIB
    assert queue_of(broker, names[-1])["message_bytes_ready"] == MIB


def test_a_body_is_held_until_the_last_queue_has_let_it_go(
    broker: warren.Broker, channel: Channel
) -> None:
    first, second, third, fourth = fan_out(channel, 4)
    channel.publish("", bytes(MIB), exchange="amq.fanout")
    channel.get(first)
    unacked = channel.get(second, no_ack=False)
    channel.call(spec.Queue.Purge(queue=third))
    channel.call(spec.Queue.Delete(queue=fourth))
    assert broker.snapshot()["held_bytes"] > MIB

    assert unacked is not None
    channel.ack(unacked.tag)
    channel.sync()
    assert broker.snapshot()["held_bytes"] == 0


def test_one_body_is_held_once_for_fifty_streams(broker: warren.Broker, channel: Channel) -> None:
    names = [f"stream-{number}" for number in range(50)]
    for name in names:
        channel.declare(name, durable=True, arguments={"x-queue-type": "stream"})
        channel.bind(name, "amq.fanout")
    before = memory_bytes()
    channel.publish("", b"a" + bytes(MIB), exchange="amq.fanout", headers={"of": "us all"})
    channel.sync()

    assert MIB < broker.snapshot()["held_bytes"] < 2 * MIB
    assert memory_bytes() < before + 8 * MIB
    channel.call(spec.Basic.Qos(prefetch_count=1))
    channel.consume(names[-1], arguments={"x-stream-offset": "first"})
    message = channel.delivery()
    assert message.body == b"a" + bytes(MIB)
    assert message.properties.headers == {"of": "us all", "x-stream-offset": 0}


def test_one_body_is_held_once_for_thirty_dead_letters(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.declare("dead", exclusive=True)
    for number in range(30):
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.declare(f"live-{number}", exclusive=True, arguments=arguments)
        channel.bind(f"live-{number}", "amq.fanout")
    before = memory_bytes()
    channel.publish("", b"a" + bytes(MIB), exchange="amq.fanout", expiration="60000")
    for number in range(30):
        taken = channel.get(f"live-{number}", no_ack=False)
        channel.send(spec.Basic.Reject(delivery_tag=taken.tag, requeue=False))
    eventually(lambda: channel.count("dead") == 30)

    assert MIB < broker.snapshot()["held_bytes"] < 2 * MIB
    assert memory_bytes() < before + 16 * MIB  # what was sent to us is on its way through
    for number in range(30):
        letter = channel.get("dead")
        assert letter.body == b"a" + bytes(MIB)
        assert letter.properties.headers["x-death"][0]["queue"] == f"live-{number}"
    channel.sync()
    assert broker.snapshot()["held_bytes"] == 0


# -- slow readers --------------------------------------------------------------------------------
def test_a_consumer_that_does_not_read_does_not_make_the_broker_grow(
    broker: warren.Broker, connect: Callable[..., Connection], channel: Channel
) -> None:
    channel.declare("orders")
    lazy = connect().channel()
    lazy.consume("orders", no_ack=True)
    lazy.connection.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    before = memory_bytes()
    for _ in range(400):
        channel.publish("orders", bytes(100_000))
    channel.sync()

    # What was given out lies in buffers, all else in its queue: nothing is held twice.
    queue = queue_of(broker, "orders")
    assert queue["messages_ready"] > 300
    assert memory_bytes() - before < 40 * MIB + 16 * MIB


def test_a_consumer_that_reads_again_gets_everything(
    broker: warren.Broker, connect: Callable[..., Connection], channel: Channel
) -> None:
    channel.declare("orders")
    lazy = connect().channel()
    lazy.consume("orders", no_ack=True)
    for number in range(200):
        channel.publish("orders", b"%03d" % number + bytes(50_000))
    channel.sync()
    assert queue_of(broker, "orders")["messages_ready"] > 50

    assert [int(lazy.delivery().body[:3]) for _ in range(200)] == list(range(200))


def test_a_consumer_that_does_not_read_does_not_slow_others_down(
    broker: warren.Broker, connect: Callable[..., Connection], channel: Channel
) -> None:
    channel.declare("orders")
    lazy, eager = connect().channel(), connect().channel()
    lazy.consume("orders", no_ack=True)
    eager.consume("orders", no_ack=True)
    for _ in range(200):
        channel.publish("orders", bytes(100_000))

    eager.deliveries(100)
    eventually(lambda: queue_of(broker, "orders")["messages_ready"] < 100)


def test_a_client_that_does_not_read_what_it_asked_for_is_not_answered_any_more(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.declare("orders")
    channel.publish("orders", bytes(100_000))
    channel.sync()
    before = memory_bytes()
    # Each round takes the message and gives it back: an answer of 100 kB for 34 octets.
    asked = _method(spec.Basic.Get(queue="orders")) + _method(spec.Basic.Recover(requeue=True))
    channel.connection.wire.send(asked * 5000)

    for _ in range(5):
        _works(broker)
        assert memory_bytes() - before < 64 * MIB


def test_a_client_that_reads_late_gets_every_answer(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.declare("orders")
    channel.publish("orders", bytes(100_000))
    asked = _method(spec.Basic.Get(queue="orders")) + _method(spec.Basic.Recover(requeue=True))
    channel.connection.wire.send(asked * 200)
    _works(broker)

    for _ in range(200):
        assert len(channel.expect(spec.Basic.GetOk).body) == 100_000
        channel.expect(spec.Basic.RecoverOk)


def test_replies_that_nobody_reads_do_not_pile_up(
    broker: warren.Broker, connect: Callable[..., Connection], channel: Channel
) -> None:
    server = connect().channel()
    server.declare("requests")
    channel.consume("amq.rabbitmq.reply-to", no_ack=True)
    channel.publish("requests", b"ask", reply_to="amq.rabbitmq.reply-to")
    request = eventually(lambda: server.get("requests"))
    before = memory_bytes()
    for _ in range(1000):
        server.publish(request.properties.reply_to, bytes(100_000))
    server.sync()

    assert memory_bytes() - before < 32 * MIB


def _method(method: Any, channel: int = 1) -> bytes:
    return frame.Method(channel, method).marshal()


def _works(broker: warren.Broker) -> None:
    connection = Connection.open(broker.url)
    connection.channel().declare(exclusive=True)
    connection.close()


# -- memory --------------------------------------------------------------------------------------
def test_publishers_wait_while_memory_is_short_and_nothing_is_lost(
    running: Callable[..., warren.Broker],
) -> None:
    broker = running(memory_limit_bytes=2 * MIB)
    publisher, consumer = Connection.open(broker.url), Connection.open(broker.url)
    taking = consumer.channel()
    taking.declare("orders")
    thread = threading.Thread(target=_publish_all, args=(publisher.channel(), 300))
    thread.start()

    eventually(lambda: broker.snapshot()["memory_alarm"])
    assert publisher.expect(spec.Connection.Blocked).reason == "low on memory"
    held = broker.snapshot()["held_bytes"]
    assert 2 * MIB < held < 4 * MIB
    assert thread.is_alive()

    taking.consume("orders", no_ack=True)
    bodies = [int(taking.delivery().body[:3]) for _ in range(300)]
    thread.join(10)
    assert bodies == list(range(300))
    publisher.expect(spec.Connection.Unblocked)
    assert broker.snapshot()["memory_alarm"] is False
    for connection in (publisher, consumer):
        connection.close()


def _publish_all(channel: Channel, count: int) -> None:
    for number in range(count):
        channel.publish("orders", b"%03d" % number + bytes(100_000))


def test_consumers_work_while_publishers_wait(running: Callable[..., warren.Broker]) -> None:
    broker = running(memory_limit_bytes=MIB)
    both = Connection.open(broker.url)
    channel = both.channel()
    channel.declare("orders")
    for _ in range(12):
        channel.publish("orders", bytes(100_000))
    eventually(lambda: broker.snapshot()["memory_alarm"])

    other = Connection.open(broker.url)
    reader = other.channel()
    taken = [reader.get("orders") for _ in range(3)]
    assert all(taken)
    eventually(lambda: not broker.snapshot()["memory_alarm"])
    for connection in (both, other):
        connection.close()


def test_no_limit_is_no_limit(running: Callable[..., warren.Broker]) -> None:
    broker = running(memory_limit_bytes=0)
    connection = Connection.open(broker.url)
    channel = connection.channel()
    channel.declare("orders")
    channel.publish("orders", bytes(MIB))
    channel.sync()

    assert broker.snapshot()["memory_alarm"] is False
    connection.close()


# -- sizes and numbers ---------------------------------------------------------------------------
def test_a_message_over_the_limit_is_refused_in_rabbitmqs_words(
    running: Callable[..., warren.Broker],
) -> None:
    broker = running(max_message_bytes=1_000_000)
    connection = Connection.open(broker.url)
    channel = connection.channel()
    channel.declare("orders")
    channel.publish("orders", bytes(1_000_000))
    assert channel.count("orders") == 1

    channel.publish("orders", bytes(1_000_001))
    closed = channel.expect_closed()
    assert (closed.code, closed.class_id, closed.method_id) == (406, 60, 40)
    assert closed.text == (
        "PRECONDITION_FAILED - message size 1000001 is larger than configured max size 1000000"
    )
    assert queue_of(broker, "orders")["messages"] == 1
    connection.close()


def test_2047_channels_can_be_opened_and_used_at_once(channel: Channel) -> None:
    channels = [channel, *(channel.connection.channel() for _ in range(2046))]
    channel.declare("orders", exclusive=True)
    for each in channels:
        each.publish("orders", b"x")
    channels[-1].sync()
    assert channels[-1].count("orders") == 2047

    with pytest.raises(Closed, match=r"channel_max \(2047\)") as refusal:
        channel.connection.channel(2048)
    assert (refusal.value.scope, refusal.value.code) == ("connection", 530)


def test_channels_that_were_closed_make_room(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    connection = connect(channel_max=2)
    for _ in range(20):
        first, second = connection.channel(1), connection.channel(2)
        first.close()
        second.close()

    assert broker.snapshot()["channels"] == 0


def test_a_long_chain_of_queues_that_pass_a_message_on(channel: Channel) -> None:
    queues = 1000
    for number in range(queues):
        channel.declare(
            f"chain-{number}",
            exclusive=True,
            arguments={
                "x-max-length": 0,
                "x-overflow": "reject-publish-dlx",
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": f"chain-{number + 1}",
            },
        )
    channel.declare(f"chain-{queues}", exclusive=True)
    channel.publish("chain-0", b"passed on")

    message = eventually(lambda: channel.get(f"chain-{queues}"))
    assert message.body == b"passed on"
    assert len(message.properties.headers["x-death"]) == queues


def test_a_long_chain_of_exchanges_that_go_with_each_other(channel: Channel) -> None:
    names = [f"link-{number}" for number in range(1000)]
    for name in names:
        channel.declare_exchange(name, "fanout", auto_delete=True)
    for source, destination in pairwise(names):
        channel.bind_exchange(destination, source)
    channel.declare("end", exclusive=True)
    channel.bind("end", names[-1])
    channel.publish("", b"through all of them", exchange=names[0])
    message = channel.get("end")
    assert message is not None

    channel.call(spec.Queue.Delete(queue="end"))
    for name in (names[0], names[-1]):
        refusal = channel.refused(spec.Exchange.Declare(exchange=name, passive=True))
        assert refusal.code == 404
        channel = channel.connection.channel()


def test_headers_of_any_size_are_not_remembered(broker: warren.Broker, channel: Channel) -> None:
    before = memory_bytes()
    for number in range(600):
        channel.publish("nowhere", b"x", headers={"n": f"{number:06}" + "x" * 100_000})
    channel.sync()

    assert memory_bytes() - before < 24 * MIB


def test_a_limit_on_messages_holds_for_small_ones_too() -> None:
    with warren.Broker.in_thread(max_message_bytes=1000) as broker:
        channel = Connection.open(broker.url).channel()
        queue = channel.declare(exclusive=True).queue
        channel.publish(queue, bytes(1000))
        assert len(channel.get(queue).body) == 1000
        channel.publish(queue, bytes(1001))
        assert channel.expect_closed().code == 406
        channel.connection.close()


def test_a_peer_that_neither_reads_nor_speaks_is_dropped() -> None:
    with warren.Broker.in_thread() as broker:
        feeder = Connection.open(broker.url).channel()
        queue = feeder.declare().queue
        silent = Connection.open(broker.url, heartbeat=1)
        silent.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.channel().consume(queue, no_ack=True)
        for _ in range(200):
            feeder.publish(queue, bytes(100_000))
        eventually(lambda: broker.snapshot()["connections"] == 1, within_s=30)
        silent.wire.close()
        feeder.connection.close()
