"""Programs as pika's users write them: the six tutorials and what comes after them."""

from __future__ import annotations

import asyncio
import functools
import queue
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NackError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
    UnroutableError,
)

from tests.integration.clients.programs import DEADLINE_S, Consumer, Process, script
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually

Name = Callable[[str], str]
Start = Callable[[Callable[[BlockingChannel], Any]], Consumer]
StartProcess = Callable[..., Process]
Connect = Callable[..., pika.BlockingConnection]


@pytest.fixture
def pika_connect(broker: TestBroker, name: Name) -> Iterator[Connect]:
    opened: list[pika.BlockingConnection] = []

    def connect(**parameters: Any) -> pika.BlockingConnection:
        given = pika.URLParameters(broker.url)
        for key, value in parameters.items():
            setattr(given, key, value)
        opened.append(pika.BlockingConnection(given))
        return opened[-1]

    yield connect
    for connection in opened:
        if connection.is_open:
            connection.close()


@pytest.fixture
def channel(pika_connect: Connect) -> BlockingChannel:
    return pika_connect().channel()


class Inbox:
    """What a consumer got, in the order in which it came."""

    def __init__(self) -> None:
        self._got: queue.Queue[tuple[Any, pika.BasicProperties, bytes]] = queue.Queue()

    def callback(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._got.put((method, properties, body))

    def acking_callback(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        channel.basic_ack(method.delivery_tag)
        self.callback(channel, method, properties, body)

    def next(self) -> bytes:
        return self._got.get(timeout=DEADLINE_S)[2]

    def take(self, count: int) -> list[bytes]:
        return [self.next() for _ in range(count)]

    def next_routing_key(self) -> str:
        return self._got.get(timeout=DEADLINE_S)[0].routing_key

    @property
    def empty(self) -> bool:
        return self._got.empty()


# -- the tutorials -------------------------------------------------------------------------------
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


# -- publisher confirms --------------------------------------------------------------------------
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


# -- ways to consume -----------------------------------------------------------------------------
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
            threads.append(threading.Thread(target=work, args=(method.delivery_tag,)))
            threads[-1].start()

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


# -- connections ---------------------------------------------------------------------------------
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


# -- connections without threads -----------------------------------------------------------------
class EventProgram:
    """pika's asynchronous example: confirmed publishes, then what it published comes back."""

    MESSAGES = 5

    def __init__(self, exchange: str) -> None:
        self.exchange = exchange
        self.confirmed: list[int] = []
        self.got: list[bytes] = []
        self.closed: BaseException | None = None
        self.connection: Any = None
        self.channel: Any = None

    def opened(self, connection: Any) -> None:
        self.connection = connection
        connection.channel(on_open_callback=self.channel_opened)

    def channel_opened(self, channel: Any) -> None:
        self.channel = channel
        channel.exchange_declare(self.exchange, "topic", callback=self.exchange_declared)

    def exchange_declared(self, frame: Any) -> None:
        self.channel.queue_declare("", exclusive=True, callback=self.queue_declared)

    def queue_declared(self, frame: Any) -> None:
        bound = functools.partial(self.bound, frame.method.queue)
        self.channel.queue_bind(frame.method.queue, self.exchange, "example.#", callback=bound)

    def bound(self, queue: str, frame: Any) -> None:
        self.channel.basic_qos(prefetch_count=2)
        self.channel.basic_consume(queue, self.delivered)
        self.channel.confirm_delivery(self.confirm, callback=self.confirms_on)

    def confirms_on(self, frame: Any) -> None:
        for number in range(self.MESSAGES):
            self.channel.basic_publish(self.exchange, "example.text", b"%d" % number)

    def confirm(self, frame: Any) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        self.confirmed.append(frame.method.delivery_tag)
        self.finish_when_done()

    def delivered(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.got.append(body)
        channel.basic_ack(method.delivery_tag)
        self.finish_when_done()

    def finish_when_done(self) -> None:
        if self.MESSAGES in self.confirmed and len(self.got) == self.MESSAGES:
            self.connection.close()

    def check(self) -> None:
        assert self.got == [b"%d" % number for number in range(self.MESSAGES)]
        assert "Normal shutdown" in str(self.closed)


def test_a_select_connection(broker: TestBroker, name: Name) -> None:
    program = EventProgram(name("message"))

    def on_close(connection: Any, reason: BaseException) -> None:
        program.closed = reason
        connection.ioloop.stop()

    connection = pika.SelectConnection(
        pika.URLParameters(broker.url),
        on_open_callback=program.opened,
        on_open_error_callback=on_close,
        on_close_callback=on_close,
    )
    connection.ioloop.call_later(DEADLINE_S, connection.ioloop.stop)
    connection.ioloop.start()
    connection.ioloop.close()
    program.check()


async def test_an_asyncio_connection(broker: TestBroker, name: Name) -> None:
    program, closed = EventProgram(name("message")), asyncio.Event()

    def on_close(connection: Any, reason: BaseException) -> None:
        program.closed = reason
        closed.set()

    AsyncioConnection(
        pika.URLParameters(broker.url),
        on_open_callback=program.opened,
        on_open_error_callback=on_close,
        on_close_callback=on_close,
    )
    await asyncio.wait_for(closed.wait(), DEADLINE_S)
    program.check()
