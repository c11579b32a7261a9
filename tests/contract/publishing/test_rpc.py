"""Requests and replies over queues, as RPC clients and servers do it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel, Connection


@pytest.fixture
def server(connect: Callable[..., Connection]) -> Channel:
    return connect().channel()


@pytest.fixture
def requests(server: Channel, name: Callable) -> str:
    """The request queue, consumed by the server."""
    queue = server.declare(name("requests")).queue
    server.consume(queue)
    return queue


def _serve(server: Channel) -> None:
    """Answer one request, the way a worker does."""
    request = server.delivery()
    server.publish(
        request.properties.reply_to,
        request.body.upper(),
        correlation_id=request.properties.correlation_id,
    )
    server.ack(request.tag)


def test_an_answer_comes_to_the_clients_own_queue(
    channel: Channel, server: Channel, requests: str
) -> None:
    replies = channel.declare("", exclusive=True).queue
    channel.consume(replies, no_ack=True)
    channel.publish(requests, b"hello", reply_to=replies, correlation_id="1")
    _serve(server)
    reply = channel.delivery()
    assert (reply.body, reply.properties.correlation_id) == (b"HELLO", "1")
    assert (reply.method.exchange, reply.method.routing_key) == ("", replies)


def test_server_named_reply_queues_are_all_different(connect: Callable[..., Connection]) -> None:
    names = {connect().channel().declare("", exclusive=True).queue for _ in range(10)}
    assert len(names) == 10
    assert all(name.startswith("amq.gen-") for name in names)


def test_answers_find_their_questions_by_correlation_id(
    channel: Channel, server: Channel, requests: str
) -> None:
    replies = channel.declare("", exclusive=True).queue
    channel.consume(replies, no_ack=True)
    questions = {str(number): f"question {number}".encode() for number in range(20)}
    for correlation_id, body in questions.items():
        channel.publish(requests, body, reply_to=replies, correlation_id=correlation_id)
    for _ in questions:
        _serve(server)
    answers = {
        reply.properties.correlation_id: reply.body for reply in channel.deliveries(len(questions))
    }
    assert answers == {key: body.upper() for key, body in questions.items()}


def test_two_clients_get_their_own_answers(
    connect: Callable[..., Connection], server: Channel, requests: str
) -> None:
    clients = [connect().channel(), connect().channel()]
    for number, client in enumerate(clients):
        replies = client.declare("", exclusive=True).queue
        client.consume(replies, no_ack=True)
        client.publish(requests, f"client {number}".encode(), reply_to=replies)
    for _ in clients:
        _serve(server)
    assert [client.delivery().body for client in clients] == [b"CLIENT 0", b"CLIENT 1"]


def test_two_servers_share_the_requests(
    channel: Channel, connect: Callable[..., Connection], server: Channel, requests: str
) -> None:
    second = connect().channel()
    second.consume(requests)
    replies = channel.declare("", exclusive=True).queue
    channel.consume(replies, no_ack=True)
    for number in range(4):
        channel.publish(requests, str(number).encode(), reply_to=replies)
    for each in (server, second, server, second):
        _serve(each)
    assert sorted(reply.body for reply in channel.deliveries(4)) == [b"0", b"1", b"2", b"3"]


def test_a_server_that_dies_leaves_the_request_to_the_next(
    channel: Channel, connect: Callable[..., Connection], name: Callable
) -> None:
    requests = channel.declare(name("requests")).queue
    replies = channel.declare("", exclusive=True).queue
    channel.consume(replies, no_ack=True)
    dying = connect()
    dying.channel().consume(requests)
    channel.publish(requests, b"hello", reply_to=replies)
    dying.channels[1].delivery()
    dying.drop()
    survivor = connect().channel()
    survivor.consume(requests)
    _serve(survivor)
    assert channel.delivery().body == b"HELLO"


def test_an_answer_to_a_client_that_left_is_dropped(
    connect: Callable[..., Connection], server: Channel, requests: str
) -> None:
    client = connect()
    channel = client.channel()
    replies = channel.declare("", exclusive=True).queue
    channel.publish(requests, b"hello", reply_to=replies, correlation_id="1")
    request = server.delivery()
    client.close()
    server.publish(request.properties.reply_to, b"too late", mandatory=True)
    assert server.expect(spec.Basic.Return).method.reply_code == 312
    server.ack(request.tag)
    server.sync()


def test_another_connection_may_answer_into_an_exclusive_queue_but_not_read_it(
    channel: Channel, server: Channel
) -> None:
    replies = channel.declare("", exclusive=True).queue
    server.publish(replies, b"answer")
    refusal = server.refused(spec.Basic.Get(queue=replies))
    text = (
        f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{replies}'"
        " in vhost '/'. It could be originally declared on another connection or the exclusive"
        " property value does not match that of the original declaration."
    )
    assert refusal.args == ("channel", 405, text, 60, 70)
    assert channel.drain(replies) == [b"answer"]


@pytest.mark.parametrize("direct", [False, True])
def test_a_call_there_and_back_with_a_prefetch_of_one(
    channel: Channel, server: Channel, name: Callable, direct: bool
) -> None:
    requests = server.declare(name("requests")).queue
    server.qos(1)
    server.consume(requests)
    replies = "amq.rabbitmq.reply-to" if direct else channel.declare("", exclusive=True).queue
    channel.consume(replies, no_ack=True)
    for number in range(5):
        body = f"call {number}".encode()
        channel.publish(requests, body, reply_to=replies, correlation_id=str(number))
        _serve(server)
        reply = channel.delivery()
        assert (reply.body, reply.properties.correlation_id) == (body.upper(), str(number))
