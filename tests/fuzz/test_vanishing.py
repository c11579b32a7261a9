"""A thousand connections that vanish at random points of a conversation leave nothing behind."""

from __future__ import annotations

import os
import random
import socket
import struct
from collections.abc import Iterator

import pytest
from pika import spec

from tests.fuzz.arena import (
    HANDSHAKE,
    VHOST,
    Arena,
    arena,
    body,
    header,
    method,
    publish,
    run_on_plain_asyncio,
)
from tests.support.eventually import eventually
from tests.support.wire import Connection
from warren.server.thread import run

PEERS = 1000
AT_ONCE = 25
BODIES = [b"%03d" % number + bytes(20_000) for number in range(50)]

#: Takes and makes everything that a connection can leave behind; acknowledges nothing.
CONVERSATION = b"".join(
    (
        *HANDSHAKE,
        method(spec.Confirm.Select()),
        method(spec.Queue.Declare(queue="", exclusive=True)),
        publish("nowhere", b"lost", mandatory=True),
        method(spec.Basic.Consume(queue="", consumer_tag="own", no_ack=True)),
        method(spec.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True)),
        method(spec.Channel.Open(), 2),
        method(spec.Basic.Qos(prefetch_count=3), 2),
        method(spec.Basic.Consume(queue="shared", consumer_tag="few"), 2),
        method(spec.Channel.Open(), 3),
        method(spec.Basic.Get(queue="shared"), 3),
        method(spec.Basic.Get(queue="shared"), 3),
        method(spec.Basic.Reject(1, requeue=True), 3),
        method(spec.Channel.Open(), 4),
        method(spec.Basic.Consume(queue="shared", consumer_tag="all"), 4),
        method(spec.Channel.Open(), 5),
        method(spec.Tx.Select(), 5),
        publish("shared", b"never committed", 5),
        method(spec.Queue.Declare(queue="passing", auto_delete=True), 5),
        method(spec.Basic.Consume(queue="passing"), 5),
        publish("shared", b"cut short", 6)[:-3],
    )
)


@pytest.fixture(params=[run, run_on_plain_asyncio], ids=["fastest loop", "asyncio"])
def ring(request: pytest.FixtureRequest) -> Iterator[Arena]:
    with arena(request.param) as ring:
        yield ring


def vanish(sock: socket.socket, how: str) -> None:
    if how == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif how == "half":
        sock.shutdown(socket.SHUT_WR)
    sock.close()


def test_a_thousand_connections_that_vanish_leave_nothing_behind(ring: Arena) -> None:
    chance = random.Random(1)
    keeper = Connection.open(ring.broker.url, vhost=VHOST)
    channel = keeper.channel()
    channel.declare("shared", durable=True)
    for number in BODIES:
        channel.publish("shared", number)
    channel.sync()
    held = ring.broker.snapshot()["held_bytes"]
    descriptors = len(os.listdir("/proc/self/fd"))

    for _ in range(0, PEERS, AT_ONCE):
        socks = [ring.dial() for _ in range(AT_ONCE)]
        for sock in chance.sample(socks, len(socks)):
            # Near the end more often: that is where most is held.
            cut = int(len(CONVERSATION) * chance.random() ** 0.3)
            sock.sendall(CONVERSATION[:cut])
            if chance.random() < 0.3:
                sock.recv(chance.randrange(1, 100_000))
        for sock in chance.sample(socks, len(socks)):
            vanish(sock, chance.choice(["reset", "close", "half"]))
    ring.say(HANDSHAKE[:1])  # answered: whoever dialled before has been let in

    def nothing_is_left() -> bool:
        snapshot = ring.broker.snapshot()
        assert snapshot["connections"] == 2  # the keeper and the witness
        assert snapshot["channels"] == 2
        assert {queue["name"] for queue in snapshot["queues"]} == {"witness", "shared"}
        (shared,) = (queue for queue in snapshot["queues"] if queue["name"] == "shared")
        assert (shared["consumers"], shared["messages_unacknowledged"]) == (0, 0)
        assert snapshot["held_bytes"] == held
        return len(os.listdir("/proc/self/fd")) == descriptors

    eventually(nothing_is_left)
    assert channel.drain("shared") == BODIES
    keeper.close()
    ring.check()


def test_connections_that_are_never_opened_are_given_up(ring: Arena) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    for size in range(0, len(b"".join(HANDSHAKE[:-1])), 5):
        with ring.dial() as sock:
            sock.sendall(b"".join(HANDSHAKE)[:size])

    eventually(lambda: len(os.listdir("/proc/self/fd")) == descriptors)
    ring.check()


def test_a_peer_that_vanishes_in_the_middle_of_many_bodies_leaves_no_bytes(ring: Arena) -> None:
    begun = b"".join(
        method(spec.Channel.Open(), number)
        + method(spec.Basic.Publish(routing_key="nowhere"), number)
        + header(1_000_000, number)
        + body(bytes(100_000), number)
        for number in range(2, 50)
    )
    with ring.dial() as sock:
        sock.sendall(b"".join(HANDSHAKE) + begun)
        ring.works()
    ring.check()


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_peer_that_vanishes_with_unread_answers_gives_everything_back(
    ring: Arena, how: str
) -> None:
    keeper = Connection.open(ring.broker.url, vhost=VHOST)
    channel = keeper.channel()
    channel.declare("shared", durable=True)
    for number in BODIES:
        channel.publish("shared", number)
    channel.sync()
    descriptors = len(os.listdir("/proc/self/fd"))
    asked = method(spec.Basic.Get(queue="shared")) + method(spec.Basic.Recover(requeue=True))
    for _ in range(10):
        sock = ring.dial()
        sock.sendall(
            b"".join(HANDSHAKE) + asked * 2000 + method(spec.Basic.Consume(queue="shared"))
        )
        ring.works()
        vanish(sock, how)

    ring.say(HANDSHAKE[:1])  # answered: whoever dialled before has been let in
    eventually(lambda: ring.broker.snapshot()["connections"] == 2)
    eventually(lambda: len(os.listdir("/proc/self/fd")) == descriptors)
    assert channel.drain("shared") == BODIES
    keeper.close()
    ring.check()
