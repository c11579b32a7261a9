"""A queue keeps the order in which messages came, whatever goes on around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Thread

from tests.contract.consumers.steps import fill, wait_ready, word
from tests.support.wire import Channel, Connection


def publish_numbers(channel: Channel, queue: str, count: int) -> Thread:
    """Publish 0, 1, 2, ... from a thread; the channel is the thread's alone."""

    def run() -> None:
        for number in range(count):
            channel.publish(queue, b"%d" % number)

    thread = Thread(target=run, name="publisher")
    thread.start()
    return thread


def test_one_consumer_gets_messages_in_the_order_they_were_published(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    channel.consume(queue)
    publisher = publish_numbers(connect().channel(), queue, 1000)
    seen = [int(message.body) for message in channel.deliveries(1000)]
    publisher.join()
    assert seen == list(range(1000))


def test_order_is_kept_when_messages_are_given_back_while_others_are_published(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    channel.qos(1)
    channel.consume(queue)
    publisher = publish_numbers(connect().channel(), queue, 300)
    done: list[int] = []
    while len(done) < 300:
        message = channel.delivery()
        if int(message.body) % 3 == 0 and not message.method.redelivered:
            channel.nack(message.tag)
        else:
            channel.ack(message.tag)
            done.append(int(message.body))
    publisher.join()
    assert done == list(range(300))


def test_order_is_kept_when_the_consumer_is_lost_again_and_again(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    fill(channel, queue, "abcdefghijkl")
    done = ""
    while len(done) < 12:
        connection = connect()
        worker = connection.channel()
        worker.qos(4)
        worker.consume(queue)
        first, second, *_ = worker.deliveries(min(4, 12 - len(done)))
        worker.ack(second.tag, multiple=True)
        worker.sync()
        done += word([first, second])
        connection.drop()
        wait_ready(channel, queue, 12 - len(done))
    assert done == "abcdefghijkl"


def test_each_publishers_messages_stay_in_their_order(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    publishers = [connect().channel() for _ in range(3)]
    threads = [publish_numbers(publisher, queue, 200) for publisher in publishers]
    channel.consume(queue)
    seen = [int(message.body) for message in channel.deliveries(600)]
    for thread in threads:
        thread.join()

    assert set(Counter(seen).values()) == {3}
    # With three sorted streams merged, a number can't come before its elder came as often.
    counts: Counter[int] = Counter()
    for number in seen:
        counts[number] += 1
        assert number == 0 or counts[number] <= counts[number - 1]


def test_two_consumers_each_see_their_share_in_order(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    workers = [connect().channel() for _ in range(2)]
    for worker in workers:
        worker.consume(queue)
    publisher = publish_numbers(connect().channel(), queue, 200)
    shares = [[int(message.body) for message in worker.deliveries(100)] for worker in workers]
    publisher.join()
    assert all(share == sorted(share) for share in shares)
    assert sorted(shares[0] + shares[1]) == list(range(200))


def test_a_large_message_keeps_its_place_among_small_ones(channel: Channel, queue: str) -> None:
    bodies = [b"a", b"b" * 300_000, b"", b"c" * 131_064, b"d"]
    channel.consume(queue)
    for body in bodies:
        channel.publish(queue, body)
    assert [message.body for message in channel.deliveries(5)] == bodies
