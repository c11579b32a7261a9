"""The embedded broker as programs hold it: start, look, stop, virtual time, faults."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pika.frame
import pytest
from pika import spec

import warren
from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed, Connection, Gone
from warren.testing import FakeClock

SHUTDOWN = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def broker(clock: FakeClock) -> Iterator[warren.Broker]:
    """A broker whose time stands still."""
    with warren.Broker.in_thread(clock=clock) as broker:
        yield broker


@pytest.fixture
def connect(broker: warren.Broker) -> Iterator[Callable[..., Connection]]:
    opened: list[Connection] = []

    def connect(**options: Any) -> Connection:
        opened.append(Connection.open(broker.url, **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def channel(connect: Callable[..., Connection]) -> Channel:
    return connect().channel()


def round_trip(url: str) -> bytes:
    """Publish a message and get it."""
    connection = Connection.open(url)
    channel = connection.channel()
    queue = channel.declare(exclusive=True).queue
    channel.publish(queue, b"there and back")
    message = channel.get(queue)
    connection.close()
    assert message is not None
    return message.body


def queue_of(broker: warren.Broker, name: str) -> dict[str, Any]:
    (queue,) = (queue for queue in broker.snapshot()["queues"] if queue["name"] == name)
    return queue


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


# -- start and stop ------------------------------------------------------------------------------
async def test_a_broker_in_an_event_loop() -> None:
    async with warren.Broker(port=0) as broker:
        assert broker.port > 0
        assert broker.url == f"amqp://guest:guest@127.0.0.1:{broker.port}/"
        assert await asyncio.to_thread(round_trip, broker.url) == b"there and back"


def test_a_broker_on_a_thread_of_its_own() -> None:
    before = set(threading.enumerate())
    with warren.Broker.in_thread() as broker:
        (thread,) = set(threading.enumerate()) - before
        assert thread.name == "warren-broker"
        assert round_trip(broker.url) == b"there and back"

    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        Connection.open(broker.url)


def test_several_brokers_in_one_process_know_nothing_of_each_other(stack: ExitStack) -> None:
    brokers = [stack.enter_context(warren.Broker.in_thread()) for _ in range(5)]
    connections = [Connection.open(broker.url) for broker in brokers]
    for number, connection in enumerate(connections):
        connection.channel().declare(f"queue-{number}")

    assert len({broker.port for broker in brokers}) == 5
    for number, broker in enumerate(brokers):
        assert [queue["name"] for queue in broker.snapshot()["queues"]] == [f"queue-{number}"]
    for connection in connections:
        connection.close()


def test_a_block_that_fails_stops_its_broker_too() -> None:
    with pytest.raises(ZeroDivisionError), warren.Broker.in_thread() as broker:
        _ = 1 / 0

    with pytest.raises(ConnectionRefusedError):
        Connection.open(broker.url)


def test_stopping_closes_clients_in_the_orderly_way() -> None:
    with warren.Broker.in_thread() as broker:
        connections = [Connection.open(broker.url) for _ in range(3)]
        reading = threading.Thread(target=lambda: codes.extend(map(closed_with, connections)))
        codes: list[tuple[int, str]] = []
        reading.start()
    reading.join()

    assert codes == [(320, SHUTDOWN)] * 3
    for connection in connections:
        connection.close()


def closed_with(connection: Connection) -> tuple[int, str]:
    closed = connection.expect_closed()
    return closed.code, closed.text


def test_a_client_that_does_not_answer_does_not_hold_the_broker_up() -> None:
    with warren.Broker.in_thread() as broker:
        silent = Connection.open(broker.url)
        half = socket.create_connection((broker.host, broker.port))
        half.sendall(b"AM")

    closed = silent.expect_closed()
    assert closed.code == 320
    assert silent.wire.closed_within()
    silent.close()
    half.close()


def test_a_broker_is_started_again_on_the_same_port() -> None:
    with warren.Broker.in_thread() as first:
        connection = Connection.open(first.url)
    connection.close()

    with warren.Broker.in_thread(port=first.port) as second:
        assert second.url == first.url
        assert round_trip(second.url) == b"there and back"


@pytest.mark.parametrize("how", ["loop", "thread"])
def test_a_port_that_is_taken_is_told(how: str) -> None:
    async def in_loop(port: int) -> None:
        async with warren.Broker(port=port):
            pass

    with warren.Broker.in_thread() as first, pytest.raises(warren.ListenError) as error:
        if how == "loop":
            asyncio.run(in_loop(first.port))
        with warren.Broker.in_thread(port=first.port):
            pass
    assert str(error.value) == (
        f"can't listen on 127.0.0.1:{first.port}: the port is taken "
        "(another broker? choose one with port, or 0 for any)"
    )
    assert (error.value.host, error.value.port) == ("127.0.0.1", first.port)


def test_an_address_that_is_not_ours_is_told() -> None:
    with (
        pytest.raises(warren.ListenError, match=r"can't listen on 192\.0\.2\.1:0"),
        warren.Broker.in_thread("192.0.2.1"),
    ):
        pass


def test_an_ipv6_address_stands_in_brackets(stack: ExitStack) -> None:
    try:
        broker = stack.enter_context(warren.Broker.in_thread("::1"))
    except warren.ListenError:
        pytest.skip("this machine has no IPv6")
    assert broker.url == f"amqp://guest:guest@[::1]:{broker.port}/"
    assert round_trip(broker.url) == b"there and back"


# -- settings ------------------------------------------------------------------------------------
def test_settings_are_given_by_name() -> None:
    with warren.Broker.in_thread(heartbeat_s=7, channel_max=3) as broker:
        connection = Connection.open(broker.url)
        tune = connection.tune
        connection.close()

    assert (tune.heartbeat, tune.channel_max) == (7, 3)


def test_settings_are_given_by_a_config_and_changed_by_name() -> None:
    config = warren.BrokerConfig(port=free_port(), heartbeat_s=7)
    broker = warren.Broker(config=config, heartbeat_s=8)

    assert (broker.config.port, broker.config.heartbeat_s) == (config.port, 8)


def test_a_setting_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(warren.ConfigError, match="did you mean heartbeat_s"):
        warren.Broker(heartbeat=5)


# -- looking -------------------------------------------------------------------------------------
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


# -- virtual time --------------------------------------------------------------------------------
def test_a_message_lives_as_long_as_the_clock_says(clock: FakeClock, channel: Channel) -> None:
    channel.declare("orders", arguments={"x-message-ttl": 3_600_000})
    channel.publish("orders", b"an hour")
    channel.publish("orders", b"a minute", expiration="60000")
    channel.sync()

    clock.advance(3599.999)
    assert channel.count("orders") == 2  # the second waits behind the first
    clock.advance(0.001)
    assert channel.count("orders") == 0


def test_a_day_passes_at_once_through_a_chain_of_queues(clock: FakeClock, channel: Channel) -> None:
    for hours in (1, 2, 4, 8):
        channel.declare(
            f"wait-{hours}",
            arguments={
                "x-message-ttl": hours * 3_600_000,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": f"wait-{hours * 2}" if hours < 8 else "due",
            },
        )
    channel.declare("due")
    channel.publish("wait-1", b"late")
    channel.sync()

    clock.advance(15 * 3600 - 1)
    assert channel.count("due") == 0
    clock.advance(1)
    message = channel.get("due")
    assert message is not None
    times = {death["time"].timestamp() for death in message.properties.headers["x-death"]}
    begin = clock.wall_ms() // 1000 - 15 * 3600
    assert times == {begin + hours * 3600 for hours in (1, 3, 7, 15)}


def test_an_unused_queue_goes_when_the_clock_says(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.declare("idle", arguments={"x-expires": 60_000})
    clock.advance(59)
    channel.declare("idle", arguments={"x-expires": 60_000})  # used: begins anew
    clock.advance(59.999)
    assert queue_of(broker, "idle")

    clock.advance(0.001)
    assert broker.snapshot()["queues"] == []


def test_a_peer_that_is_silent_for_two_intervals_is_cut(
    broker: warren.Broker, clock: FakeClock, connect: Callable[..., Connection]
) -> None:
    connection = connect(heartbeat=10)
    connection.channel().sync()
    clock.advance(5)
    assert isinstance(connection.wire.read(), pika.frame.Heartbeat)
    clock.advance(30)

    assert connection.wire.closed_within()
    eventually(lambda: broker.snapshot()["connections"] == 0)


def test_a_peer_that_beats_lives_as_long_as_it_does(
    broker: warren.Broker, clock: FakeClock, connect: Callable[..., Connection]
) -> None:
    channel = connect(heartbeat=10).channel()
    for _ in range(20):
        clock.advance(9)
        channel.connection.wire.send(pika.frame.Heartbeat().marshal())
        channel.sync()

    assert broker.snapshot()["connections"] == 1


def test_a_peer_that_does_not_say_who_it_is_is_cut_after_ten_seconds(
    broker: warren.Broker, clock: FakeClock
) -> None:
    with socket.create_connection((broker.host, broker.port), timeout=30) as sock:
        sock.sendall(b"AMQP\x00\x00\x09\x01")
        assert sock.recv(4096)
        clock.advance(9.9)
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)

        clock.advance(0.1)
        sock.settimeout(30)
        assert _end_of(sock)


def _end_of(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


async def test_time_is_moved_inside_the_loop_too(clock: FakeClock) -> None:
    def prepare(url: str) -> Channel:
        channel = Connection.open(url).channel()
        channel.declare("orders", arguments={"x-message-ttl": 1000})
        channel.publish("orders", b"late")
        channel.sync()
        return channel

    async with warren.Broker(port=0, clock=clock) as broker:
        channel = await asyncio.to_thread(prepare, broker.url)
        clock.advance(0.5)
        assert queue_of(broker, "orders")["messages"] == 1
        clock.advance(0.5)
        assert queue_of(broker, "orders")["messages"] == 0
        channel.connection.wire.close()


def test_one_clock_serves_several_brokers_and_outlives_them(
    clock: FakeClock, stack: ExitStack
) -> None:
    with warren.Broker.in_thread(clock=clock):
        clock.advance(1)
    brokers = [stack.enter_context(warren.Broker.in_thread(clock=clock)) for _ in range(2)]
    for broker in brokers:
        connection = Connection.open(broker.url)
        connection.channel().declare("idle", arguments={"x-expires": 1000})
        connection.close()
    clock.advance(1)

    assert [broker.snapshot()["queues"] for broker in brokers] == [[], []]


# -- faults --------------------------------------------------------------------------------------
def confirmed(channel: Channel) -> list[int]:
    """The tags that the broker has confirmed until now."""
    channel.sync()
    tags: list[int] = []
    while channel.inbox:
        method = channel.inbox.popleft()
        assert isinstance(method, spec.Basic.Ack)
        first = max(tags, default=0) + 1 if method.multiple else method.delivery_tag
        tags += range(first, method.delivery_tag + 1)
    return tags


def publish(channel: Channel, count: int = 1) -> None:
    """Several publishes in one write."""
    data = b""
    for _ in range(count):
        data += pika.frame.Method(
            channel.number, spec.Basic.Publish(exchange="", routing_key="nowhere")
        ).marshal()
        data += pika.frame.Header(channel.number, 1, spec.BasicProperties()).marshal()
        data += pika.frame.Body(channel.number, b"x").marshal()
    channel.connection.wire.send(data)
    channel.sync()


def test_cut_connections_are_gone_without_a_word(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    connections = [connect() for _ in range(3)]

    assert broker.faults.cut_connections() == 3
    for connection in connections:
        with pytest.raises(Gone):
            connection.wire.read(5)
    assert broker.snapshot()["connections"] == 0


def test_a_cut_connection_gives_its_messages_back(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    channel = connect().channel()
    channel.declare("orders")
    channel.publish("orders", b"one")
    channel.consume("orders")
    channel.delivery()
    broker.faults.cut_connections()

    again = connect().channel().get("orders")
    assert again is not None
    assert (again.body, again.method.redelivered) == (b"one", True)


def test_the_same_seed_cuts_the_same_connections() -> None:
    def left(seed: int) -> list[bool]:
        with warren.Broker.in_thread() as broker:
            connections = [Connection.open(broker.url) for _ in range(12)]
            broker.faults.seed(seed)
            cut = broker.faults.cut_connections(chance=0.5)
            eventually(lambda: broker.snapshot()["connections"] == 12 - cut)
            broker.close_connections("the others")
            told = [_is_told(connection) for connection in connections]
            for connection in connections:
                connection.close()
            assert told.count(False) == cut
            return told

    assert left(1) == left(1)
    assert left(1) != left(2)


def _is_told(connection: Connection) -> bool:
    try:
        return connection.expect_closed(5).code == 320
    except Gone:
        return False


def test_held_confirms_come_when_they_are_let_go(broker: warren.Broker, channel: Channel) -> None:
    channel.confirm()
    broker.faults.hold_confirms()
    publish(channel, 2)
    publish(channel)
    assert confirmed(channel) == []

    broker.faults.hold_confirms(False)
    assert confirmed(channel) == [1, 2, 3]
    publish(channel)
    assert confirmed(channel) == [4]


def test_faults_of_confirms_hold_for_connections_to_come(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    broker.faults.hold_confirms()
    channel = connect().channel()
    channel.confirm()
    publish(channel)
    assert confirmed(channel) == []

    broker.faults.hold_confirms(False)
    assert confirmed(channel) == [1]


def test_delayed_confirms_come_each_at_its_time(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.delay_confirms(1)
    publish(channel)
    clock.advance(0.5)
    publish(channel)
    clock.advance(0.499)
    assert confirmed(channel) == []
    clock.advance(0.001)
    assert confirmed(channel) == [1]
    clock.advance(0.5)
    assert confirmed(channel) == [2]

    publish(channel)
    assert confirmed(channel) == []
    clock.advance(1)
    assert confirmed(channel) == [3]


def test_confirms_are_not_sent_on_a_channel_that_was_closed_meanwhile(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.delay_confirms(1)
    publish(channel)
    channel.close()
    clock.advance(2)

    other = channel.connection.channel()
    other.sync()
    assert not channel.inbox


def test_delays_end_with_what_was_held_back(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.delay_confirms(60)
    publish(channel, 3)
    broker.faults.delay_confirms(0)

    assert confirmed(channel) == [1, 2, 3]
    clock.advance(100)
    assert confirmed(channel) == []


def test_lost_confirms_never_come_not_even_by_a_later_multiple(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.drop_confirms()
    publish(channel)
    broker.faults.drop_confirms(0)
    publish(channel, 3)
    channel.sync()

    tags = [method.delivery_tag for method in channel.inbox]
    assert tags == [2, 3, 4]
    assert not any(method.multiple for method in channel.inbox)


def test_the_same_seed_loses_the_same_confirms(stack: ExitStack) -> None:
    def kept(seed: int) -> list[int]:
        broker = stack.enter_context(warren.Broker.in_thread())
        broker.faults.seed(seed)
        broker.faults.drop_confirms(chance=0.5)
        channel = Connection.open(broker.url).channel()
        stack.callback(channel.connection.close)
        channel.confirm()
        for _ in range(20):
            publish(channel)
        return confirmed(channel)

    first = kept(1)
    assert 0 < len(first) < 20
    assert kept(1) == first
    assert kept(2) != first


@pytest.mark.parametrize("exclusive", [False, True])
def test_consumers_are_cancelled_by_the_broker(
    broker: warren.Broker, channel: Channel, exclusive: bool
) -> None:
    channel.declare("orders", exclusive=exclusive)
    tags = {channel.consume("orders"), channel.consume("orders")}

    assert broker.faults.cancel_consumers("orders") == 2
    assert {channel.expect(spec.Basic.Cancel).consumer_tag for _ in tags} == tags
    assert queue_of(broker, "orders")["consumers"] == 0
    channel.publish("orders", b"kept")
    message = channel.get("orders")
    assert message is not None
    assert message.body == b"kept"


def test_consumers_of_another_vhost_are_cancelled_there_only(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    broker.add_vhost("other")
    here, there = connect().channel(), connect(vhost="other").channel()
    for channel in (here, there):
        channel.declare("orders")
        channel.consume("orders")

    assert broker.faults.cancel_consumers("orders", vhost="other") == 1
    assert there.expect(spec.Basic.Cancel)
    assert here.quiet(0.05)


def test_the_memory_alarm_blocks_publishers_until_it_is_cleared(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.declare("orders")
    broker.memory_alarm(True)
    assert broker.snapshot()["memory_alarm"] is True
    channel.publish("orders", b"waits")
    assert channel.connection.expect(spec.Connection.Blocked).reason == "low on memory"
    assert queue_of(broker, "orders")["messages"] == 0

    broker.memory_alarm(False)
    channel.connection.expect(spec.Connection.Unblocked)
    assert channel.count("orders") == 1


def test_connections_are_closed_as_an_operator_does(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    connections = [connect(), connect()]

    assert broker.close_connections("maintenance") == 2
    assert [closed_with(connection) for connection in connections] == [
        (320, "CONNECTION_FORCED - maintenance")
    ] * 2


def test_a_blocked_connection_is_closed_as_quickly_as_any(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    connection = connect()
    broker.memory_alarm(True)
    connection.channel().publish("nowhere", b"waits")
    connection.expect(spec.Connection.Blocked)
    broker.close_connections("maintenance")

    assert closed_with(connection) == (320, "CONNECTION_FORCED - maintenance")
    assert connection.wire.closed_within()
    broker.memory_alarm(False)


# -- the pytest plugin ---------------------------------------------------------------------------
pytest_plugins = ["pytester"]

USES_THE_FIXTURE = """
import pika
import pytest

@pytest.mark.parametrize("number", range(6))
def test_a_broker_of_its_own(warren_broker, number, worker_id):
    connection = pika.BlockingConnection(pika.URLParameters(warren_broker.url))
    channel = connection.channel()
    assert channel.queue_declare("orders").method.message_count == 0
    channel.basic_publish("", "orders", b"one")
    with open(f"{number}.seen", "w") as file:
        file.write(f"{worker_id} {warren_broker.port}")
    connection.close()
"""


@pytest.mark.timeout(300)  # a run of pytest with processes of its own
@pytest.mark.parametrize(("workers", "names"), [("0", {"master"}), ("2", {"gw0", "gw1"})])
def test_every_test_gets_a_broker_of_its_own(
    pytester: pytest.Pytester, workers: str, names: set[str]
) -> None:
    pytester.makepyfile(test_it=USES_THE_FIXTURE)

    result = pytester.runpytest_subprocess("-q", "-n", workers, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=6)
    seen = [path.read_text().split() for path in pytester.path.glob("**/*.seen")]
    assert len(seen) == 6
    assert {worker for worker, _ in seen} == names


def test_the_fixture_is_listed_with_what_it_does(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--fixtures", "-q", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["warren_broker*", "*A fresh broker on a free port*"])
