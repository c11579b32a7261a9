"""Programs as kombu's users write them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

import kombu
import pytest
from amqp.exceptions import AccessRefused, MessageNacked, NotFound, PreconditionFailed
from kombu.exceptions import OperationalError
from kombu.mixins import ConsumerMixin, ConsumerProducerMixin
from kombu.pidbox import Mailbox
from kombu.pools import connections, producers, reset

from tests.integration.clients.programs import DEADLINE_S
from tests.support.brokers import TestBroker

Name = Callable[[str], str]


@pytest.fixture
def connection(broker: TestBroker, name: Name) -> Iterator[kombu.Connection]:
    with kombu.Connection(broker.url) as connection:
        yield connection


def drain(connection: kombu.Connection, count: int, consumer: kombu.Consumer) -> list[Any]:
    """The next bodies that the consumer gets; each is acked."""
    bodies: list[Any] = []

    def on_message(body: Any, message: kombu.Message) -> None:
        bodies.append(body)
        message.ack()

    consumer.register_callback(on_message)
    with consumer:
        while len(bodies) < count:
            connection.drain_events(timeout=DEADLINE_S)
    return bodies


def test_the_hello_world_of_the_docs(connection: kombu.Connection, name: Name) -> None:
    media = kombu.Exchange(name("media"), "direct", durable=True)
    video = kombu.Queue(name("video"), exchange=media, routing_key="video")
    producer = connection.Producer(serializer="json")
    producer.publish(
        {"name": "/tmp/lolcat1.avi", "size": 1301013},
        exchange=media,
        routing_key="video",
        declare=[video],
    )
    assert drain(connection, 1, connection.Consumer(video)) == [
        {"name": "/tmp/lolcat1.avi", "size": 1301013}
    ]


def test_topics_and_more_than_one_queue_for_a_consumer(
    connection: kombu.Connection, name: Name
) -> None:
    news = kombu.Exchange(name("news"), "topic", durable=False)
    sport = kombu.Queue(name("sport"), news, "sport.#")
    local = kombu.Queue(name("local"), news, "*.local")
    consumer = connection.Consumer([sport, local])  # declares the queues, consumes when entered
    producer = connection.Producer(exchange=news)
    for key in ("sport.local", "sport.world.football", "weather.local", "weather.world"):
        producer.publish(key, routing_key=key)
    expected = ["sport.local", "sport.local", "sport.world.football", "weather.local"]
    assert sorted(drain(connection, 4, consumer)) == expected


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_serializers_and_compression(
    connection: kombu.Connection, name: Name, serializer: str, compression: str | None
) -> None:
    queue = kombu.Queue(name("data"))
    payload = {"words": ["ä", "b"] * 1000, "number": 2**40}
    connection.Producer(serializer=serializer).publish(
        payload, routing_key=queue.name, declare=[queue], compression=compression
    )
    got = drain(connection, 1, connection.Consumer(queue, accept=[serializer]))
    assert got == [payload]


def test_simple_queue(connection: kombu.Connection, name: Name) -> None:
    with connection.SimpleQueue(name("simple")) as queue:
        for number in range(3):
            queue.put({"number": number})
        assert queue.get(timeout=DEADLINE_S).payload == {"number": 0}
        for number in (1, 2):
            message = queue.get(timeout=DEADLINE_S)
            assert message.payload == {"number": number}
            message.ack()
        with pytest.raises(Empty):
            queue.get(block=True, timeout=0.1)
    with connection.clone() as later, later.SimpleQueue(queue.queue.name) as again:
        connection.close()  # gives back what was never acked
        message = again.get(timeout=DEADLINE_S)
        assert (message.payload, message.delivery_info["redelivered"]) == ({"number": 0}, True)
        message.ack()


def test_simple_buffer_forgets_and_purges(connection: kombu.Connection, name: Name) -> None:
    with connection.SimpleBuffer(name("buffer")) as buffer:
        for number in range(4):
            buffer.put(number)
        assert buffer.get(timeout=DEADLINE_S).payload == 0
        assert buffer.qsize() <= 3
        buffer.clear()
        assert buffer.qsize() == 0


class Worker(ConsumerMixin):
    """The docs' worker: runs until told, connects again when its connection goes."""

    connect_max_retries = 20

    def __init__(self, connection: kombu.Connection, queue: kombu.Queue) -> None:
        self.connection, self.queue = connection, queue
        self.consuming = threading.Semaphore(0)
        self.got: SimpleQueue[Any] = SimpleQueue()

    def get_consumers(self, Consumer: Any, channel: Any) -> list[kombu.Consumer]:  # noqa: N803
        return [Consumer([self.queue], callbacks=[self.on_task], prefetch_count=4)]

    def on_consume_ready(self, *args: Any, **kwargs: Any) -> None:
        self.consuming.release()

    def on_task(self, body: Any, message: kombu.Message) -> None:
        self.got.put(body)
        message.ack()


@pytest.fixture
def run_worker() -> Iterator[Callable[[Any], None]]:
    running: list[tuple[Any, threading.Thread]] = []

    def start(worker: Any) -> None:
        thread = threading.Thread(target=worker.run, daemon=True)
        running.append((worker, thread))
        thread.start()
        assert worker.consuming.acquire(timeout=DEADLINE_S)

    yield start
    for worker, thread in running:
        worker.should_stop = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def test_a_consumer_mixin_goes_on_after_its_connection_was_closed(
    broker: TestBroker, name: Name, run_worker: Callable[[Any], None]
) -> None:
    tasks = kombu.Queue(name("tasks"), durable=True)
    with kombu.Connection(broker.url) as connection:
        worker = Worker(connection, tasks)
        run_worker(worker)
        broker.close_connections("maintenance")
        assert worker.consuming.acquire(timeout=DEADLINE_S)
        with kombu.Connection(broker.url) as other:
            other.Producer().publish("after", routing_key=tasks.name)
        assert worker.got.get(timeout=DEADLINE_S) == "after"


class RpcServer(ConsumerProducerMixin):
    """The docs' RPC server, with its second connection for the answers."""

    connect_max_retries = 20

    def __init__(self, connection: kombu.Connection, queue: kombu.Queue) -> None:
        self.connection, self.queue = connection, queue
        self.consuming = threading.Semaphore(0)

    def get_consumers(self, Consumer: Any, channel: Any) -> list[kombu.Consumer]:  # noqa: N803
        return [Consumer([self.queue], on_message=self.on_request, prefetch_count=1)]

    def on_consume_ready(self, *args: Any, **kwargs: Any) -> None:
        self.consuming.release()

    def on_request(self, message: kombu.Message) -> None:
        self.producer.publish(
            {"result": message.payload["n"] ** 2},
            exchange="",
            routing_key=message.properties["reply_to"],
            correlation_id=message.properties["correlation_id"],
            retry=True,
        )
        message.ack()


def test_rpc(
    broker: TestBroker,
    connection: kombu.Connection,
    name: Name,
    run_worker: Callable[[Any], None],
) -> None:
    requests = kombu.Queue(name("rpc_queue"))
    with kombu.Connection(broker.url) as servers_own:
        run_worker(RpcServer(servers_own, requests))
        callback = kombu.Queue(kombu.uuid(), exclusive=True, auto_delete=True)
        connection.Producer().publish(
            {"n": 12},
            routing_key=requests.name,
            declare=[callback],
            reply_to=callback.name,
            correlation_id="c-1",
        )
        assert drain(connection, 1, connection.Consumer(callback)) == [{"result": 144}]


# -- queues with arguments -----------------------------------------------------------------------
def test_priorities(connection: kombu.Connection, name: Name) -> None:
    queue = kombu.Queue(name("tasks"), max_priority=10)
    producer = connection.Producer()
    for number, priority in enumerate([0, 5, 10, 5, 0]):
        producer.publish(number, routing_key=queue.name, declare=[queue], priority=priority)
    assert drain(connection, 5, connection.Consumer(queue, prefetch_count=1)) == [2, 1, 3, 0, 4]


def test_every_queue_option_of_kombu_is_accepted(connection: kombu.Connection, name: Name) -> None:
    options = {
        "expires": 60.0,
        "message_ttl": 1.5,
        "max_length": 10,
        "max_length_bytes": 1000,
        "max_priority": 3,
    }
    queue = kombu.Queue(name("limited"), **options)(connection)
    assert queue.declare() == queue.name
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-message-ttl'"):
        kombu.Queue(queue.name, **{**options, "message_ttl": 2.0})(connection).declare()


def test_a_rejected_message_goes_to_the_dead_letter_exchange(
    connection: kombu.Connection, name: Name
) -> None:
    dead = kombu.Exchange(name("dead"), "fanout")
    letters = kombu.Queue(name("letters"), dead)
    orders = kombu.Queue(name("orders"), queue_arguments={"x-dead-letter-exchange": dead.name})
    producer = connection.Producer()
    producer.publish("bad", routing_key=orders.name, declare=[orders, letters])
    with connection.Consumer(orders, callbacks=[lambda _, message: message.reject()]):
        connection.drain_events(timeout=DEADLINE_S)
    assert drain(connection, 1, connection.Consumer(letters)) == ["bad"]


def test_exchanges_bound_to_exchanges(connection: kombu.Connection, name: Name) -> None:
    source = kombu.Exchange(name("source"), "fanout")(connection)
    target = kombu.Exchange(name("target"), "fanout")(connection)
    queue = kombu.Queue(name("queue"), target)(connection)
    source.declare()
    queue.declare()
    target.bind_to(source)
    connection.Producer(exchange=source).publish("through")
    assert drain(connection, 1, connection.Consumer(queue)) == ["through"]
    target.unbind_from(source)
    with pytest.raises(socket.timeout):
        connection.Producer(exchange=source).publish("not through")
        with connection.Consumer(queue, callbacks=[pytest.fail]):
            connection.drain_events(timeout=0.2)


# -- publishing safely ---------------------------------------------------------------------------
def test_a_message_that_a_full_queue_refuses_is_an_error_with_confirms(
    broker: TestBroker, name: Name
) -> None:
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    full = kombu.Queue(name("full"), queue_arguments=arguments)
    confirming = {"confirm_publish": True}
    with kombu.Connection(broker.url, transport_options=confirming) as connection:
        producer = connection.Producer()
        with pytest.raises(MessageNacked):
            producer.publish("no room", routing_key=full.name, declare=[full])


def test_an_unroutable_message_comes_to_on_return(connection: kombu.Connection, name: Name) -> None:
    returned: list[Any] = []

    def on_return(exception: Exception, exchange: str, routing_key: str, message: Any) -> None:
        returned.append((exception.reply_code, routing_key, message.body))

    nowhere = name("nowhere")
    producer = connection.Producer(on_return=on_return)
    producer.publish("lost", routing_key=nowhere, mandatory=True)
    connection.drain_events(timeout=DEADLINE_S)
    assert returned == [(312, nowhere, "lost")]


def test_a_confirmed_publish_with_retry_survives_a_closed_connection(
    broker: TestBroker, name: Name
) -> None:
    queue = kombu.Queue(name("orders"), durable=True)
    confirming = kombu.Connection(broker.url, transport_options={"confirm_publish": True})
    retry = {"interval_start": 0, "interval_step": 0.05, "max_retries": 20}
    try:
        with producers[confirming].acquire(block=True) as producer:
            producer.publish("before", routing_key=queue.name, declare=[queue])
        broker.close_connections("maintenance")
        with producers[confirming].acquire(block=True) as producer:
            producer.publish("after", routing_key=queue.name, retry=True, retry_policy=retry)
        with connections[confirming].acquire(block=True) as connection:
            assert drain(connection, 2, connection.Consumer(queue)) == ["before", "after"]
    finally:
        reset()


def test_a_broker_that_is_not_there_is_told(broker: TestBroker) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"amqp://guest:guest@127.0.0.1:{closed.getsockname()[1]}/"
        with kombu.Connection(url) as connection, pytest.raises(OperationalError):
            connection.ensure_connection(max_retries=1, interval_start=0)


def test_wrong_passwords_and_queues_that_are_not_there_are_told(
    broker: TestBroker, connection: kombu.Connection, name: Name
) -> None:
    with pytest.raises(NotFound, match="no queue"):
        kombu.Queue(name("missing"))(connection).queue_declare(passive=True)
    wrong = broker.url.replace("guest:guest", "guest:wrong")
    with kombu.Connection(wrong) as refused, pytest.raises(AccessRefused, match="Login was refu"):
        refused.connect()


def test_heartbeats_keep_a_connection_open(broker: TestBroker, name: Name) -> None:
    queue = kombu.Queue(name("orders"))
    with kombu.Connection(broker.url, heartbeat=1) as connection:
        consumer = connection.Consumer(queue, callbacks=[lambda body, message: message.ack()])
        with consumer:
            until = time.monotonic() + 3.5  # a silent client is dropped before that
            while time.monotonic() < until:
                connection.heartbeat_check(rate=2)
                with pytest.raises(socket.timeout):
                    connection.drain_events(timeout=0.25)
            connection.Producer().publish("alive", routing_key=queue.name)
            connection.drain_events(timeout=DEADLINE_S)


# -- remote control ------------------------------------------------------------------------------
def test_a_mailbox_asks_every_node_and_gathers_the_answers(
    vhost_url: str,
) -> None:
    mailbox = Mailbox("control", type="fanout")
    stop = threading.Event()

    def node(hostname: str, listening: threading.Event) -> None:
        with kombu.Connection(vhost_url) as own, own.channel() as channel:
            node = mailbox(own).Node(
                hostname,
                handlers={"double": lambda state, number: {hostname: number * 2}},
                channel=channel,
            )
            with node.listen():
                listening.set()
                while not stop.is_set():
                    try:
                        own.drain_events(timeout=0.05)
                    except TimeoutError:
                        continue

    threads = []
    for hostname in ("a", "b"):
        listening = threading.Event()
        threads.append(threading.Thread(target=node, args=(hostname, listening), daemon=True))
        threads[-1].start()
        assert listening.wait(DEADLINE_S)
    with kombu.Connection(vhost_url) as connection:
        answers = mailbox(connection).call(["a", "b"], "double", {"number": 21}, timeout=DEADLINE_S)
    assert sorted(answers, key=str) == [{"a": {"a": 42}}, {"b": {"b": 42}}]
    stop.set()
    for thread in threads:
        thread.join(DEADLINE_S)
