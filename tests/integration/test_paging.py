"""More messages than the memory budget allows: they lie on disk only, and nobody notices."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pika import spec

from tests.support.bulk import Bulk
from tests.support.eventually import eventually
from tests.support.process import BrokerProcess, broker_process
from tests.support.wire import Channel, Message

#: A quarter of it is the budget: about 4,000 of these messages.
LIMIT = 1_000_000
MANY = 20_000
Connect = Callable[..., Bulk]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path / "data", "--memory-limit-bytes", str(LIMIT)) as broker:
        yield broker


@pytest.fixture
def bulk(broker: BrokerProcess) -> Iterator[Connect]:
    opened: list[Bulk] = []

    def bulk(**options: Any) -> Bulk:
        opened.append(Bulk(broker.url, **options))
        return opened[-1]

    yield bulk
    for each in opened:
        each.close()


@pytest.fixture
def channel(broker: BrokerProcess) -> Channel:
    channel = broker.connect().channel()
    channel.declare("q", durable=True)
    return channel


def resident_mb(broker: BrokerProcess) -> int:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def rows(broker: BrokerProcess) -> int:
    with closing(sqlite3.connect(f"file:{broker.file}?mode=ro", uri=True)) as connection:
        count: int = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
        return count


def get(channel: Channel, *, no_ack: bool = True) -> Message | None:
    answer = channel.call(spec.Basic.Get(queue="q", no_ack=no_ack))
    return answer if isinstance(answer, Message) else None


@pytest.mark.timeout(240)
def test_a_long_backlog_takes_little_memory_and_drains_in_order(
    broker: BrokerProcess, channel: Channel, bulk: Connect
) -> None:
    publisher, consumer = bulk(), bulk(prefetch=1000)
    publisher.publish("q", range(5000))
    before = resident_mb(broker)
    publisher.publish("q", range(5000, 200_000))
    assert channel.count("q") == 200_000
    assert resident_mb(broker) - before < 40  # in memory they take more than 80

    consumer.consume("q")
    taken = consumer.take(200_000)
    assert [each.number for each in taken] == list(range(200_000))
    assert not any(each.redelivered for each in taken)
    channel.sync()
    assert resident_mb(broker) - before < 60
    eventually(lambda: rows(broker) == 0)


def test_several_consumers_drain_all_of_it(channel: Channel, bulk: Connect) -> None:
    bulk().publish("q", range(MANY))
    consumers = [bulk(prefetch=100) for _ in range(2)]
    for consumer in consumers:
        consumer.consume("q")
    numbers: list[int] = []
    while len(numbers) < MANY:
        for consumer in consumers:
            came = list(consumer.deliveries(0.2))
            numbers += [each.number for each in came]
            if came:
                assert [each.number for each in came] == sorted(each.number for each in came)
                consumer.ack(came[-1].tag)
    assert sorted(numbers) == list(range(MANY))


def test_get_and_requeue_keep_the_order(channel: Channel, bulk: Connect) -> None:
    bulk().publish("q", range(6000))
    for number in range(6000):
        message = get(channel, no_ack=False)
        assert message is not None
        assert (int(message.body), message.method.redelivered) == (number, False)
        if number % 97 == 0:
            channel.nack(message.tag, requeue=True)
            message = get(channel, no_ack=False)
            assert message is not None
            assert (int(message.body), message.method.redelivered) == (number, True)
        channel.ack(message.tag)
    assert get(channel) is None


def test_a_message_on_its_way_to_the_disk_is_there_for_get(
    broker: BrokerProcess, channel: Channel, bulk: Connect
) -> None:
    other = broker.connect().channel()
    other.declare("full", durable=True)
    bulk().publish("full", range(6000))
    for number in range(300):
        channel.publish("q", b"%d" % number, delivery_mode=2)
        message = get(channel)
        assert message is not None
        assert message.body == b"%d" % number
    channel.sync()
    eventually(lambda: rows(broker) == 6000)


def test_requeues_of_a_consumer_return_to_their_place(channel: Channel, bulk: Connect) -> None:
    bulk().publish("q", range(MANY))
    consumer = bulk(prefetch=500)
    consumer.consume("q")
    done: list[int] = []
    first = True
    while len(done) < MANY:
        came = list(consumer.deliveries())
        assert came
        if first and came[-1].number > MANY // 2:
            first = False
            consumer.channel.nack(came[-1].tag, multiple=True, requeue=True)
            continue
        done += [each.number for each in came]
        consumer.ack(came[-1].tag)
    assert sorted(done) == list(range(MANY))
    half = MANY // 2 - 2000
    assert done[:half] == list(range(half))


def test_purge_takes_what_lies_on_disk_too(
    broker: BrokerProcess, channel: Channel, bulk: Connect
) -> None:
    publisher = bulk()
    publisher.publish("q", range(MANY))
    held = get(channel, no_ack=False)
    assert channel.call(spec.Queue.Purge(queue="q")).message_count == MANY - 1
    publisher.publish("q", range(MANY, MANY + 6000))
    assert channel.count("q") == 6000
    channel.nack(held.tag, requeue=True)  # type: ignore[union-attr]
    consumer = bulk()
    consumer.consume("q")
    expected = [0, *range(MANY, MANY + 6000)]
    assert [each.number for each in consumer.take(6001)] == expected
    channel.sync()
    eventually(lambda: rows(broker) == 0)


def test_a_purge_right_behind_the_publish_leaves_nothing(
    broker: BrokerProcess, channel: Channel, bulk: Connect
) -> None:
    publisher = bulk()
    publisher.publish("q", range(6000))
    publisher.send("q", range(6000, MANY))
    publisher.channel.send(spec.Queue.Purge(queue="q", nowait=True))
    publisher.send("q", range(MANY, MANY + 10))
    eventually(lambda: channel.count("q") == 10)
    assert [int(get(channel).body) for _ in range(10)] == list(range(MANY, MANY + 10))  # type: ignore[union-attr]
    channel.sync()
    eventually(lambda: rows(broker) == 0)


def test_the_oldest_are_dropped_from_the_disk(
    broker: BrokerProcess, channel: Channel, bulk: Connect
) -> None:
    channel.call(spec.Queue.Delete(queue="q"))
    channel.declare("q", durable=True, arguments={"x-max-length": 8000})
    bulk().publish("q", range(MANY))
    assert channel.count("q") == 8000
    consumer = bulk()
    consumer.consume("q")
    assert [each.number for each in consumer.take(8000)] == list(range(MANY - 8000, MANY))


def test_messages_on_disk_expire(broker: BrokerProcess, channel: Channel, bulk: Connect) -> None:
    publisher = bulk()
    publisher.publish("q", range(MANY), expiration="1500")
    publisher.publish("q", [MANY])
    eventually(lambda: channel.count("q") == 1, every_s=0.1)
    eventually(lambda: rows(broker) == 1)
    assert int(get(channel).body) == MANY  # type: ignore[union-attr]


def test_a_kill_in_the_middle(broker: BrokerProcess, channel: Channel, bulk: Connect) -> None:
    bulk().publish("q", range(MANY))
    consumer = bulk(prefetch=300)
    consumer.consume("q")
    taken = consumer.take(7000)
    consumer.channel.sync()
    broker.kill()
    broker.start()
    consumer = bulk(prefetch=300)
    consumer.consume("q")
    rest = consumer.take(MANY - len(taken))
    assert [each.number for each in [*taken, *rest]] == list(range(MANY))


def test_transient_messages_are_paged_and_do_not_survive(
    broker: BrokerProcess, channel: Channel, bulk: Connect
) -> None:
    publisher, consumer = bulk(), bulk(prefetch=100)
    publisher.publish("q", range(MANY), delivery_mode=1)
    eventually(lambda: rows(broker) > MANY // 2)
    consumer.consume("q")
    taken = consumer.take(7000)
    assert [each.number for each in taken] == list(range(len(taken)))
    publisher.publish("q", [MANY])
    broker.kill()
    broker.start()
    channel = broker.connect().channel()
    assert channel.count("q") == 1
    eventually(lambda: rows(broker) == 1)
    assert int(get(channel).body) == MANY  # type: ignore[union-attr]


def test_a_fanout_beyond_the_budget_lies_on_disk_once(
    broker: BrokerProcess, channel: Channel, bulk: Connect
) -> None:
    channel.declare_exchange("ex", "fanout", durable=True)
    channel.declare("r", durable=True)
    for queue in ("q", "r"):
        channel.bind(queue, "ex")
    bulk().publish("", range(MANY), exchange="ex")
    for queue in ("q", "r"):
        consumer = bulk()
        consumer.consume(queue)
        assert [each.number for each in consumer.take(MANY)] == list(range(MANY))
    eventually(lambda: rows(broker) == 0)
    with closing(sqlite3.connect(f"file:{broker.file}?mode=ro", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM shared").fetchone() == (0,)
