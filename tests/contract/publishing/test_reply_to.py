"""Direct reply-to: answers go straight to the channel that asked, without a queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import amqp_object, spec

from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed, Connection, Message

PSEUDO_QUEUE = "amq.rabbitmq.reply-to"


@pytest.fixture
def server(connect: Callable[..., Connection]) -> Channel:
    """The one who answers, on a connection of its own."""
    return connect().channel()


@pytest.fixture
def queue(server: Channel, name: Callable) -> str:
    """Where requests go."""
    return server.declare(name("requests")).queue


def _ask(asking: Channel, server: Channel, queue: str, body: bytes = b"request") -> str:
    """Send a request from a channel that consumes replies; return the address for the answer."""
    asking.publish(queue, body, reply_to=PSEUDO_QUEUE)
    request: Message = eventually(lambda: server.get(queue))
    assert request.body == body
    return request.properties.reply_to


@pytest.fixture
def address(channel: Channel, server: Channel, queue: str) -> str:
    """The reply address of ``channel``, as the server sees it."""
    channel.consume(PSEUDO_QUEUE, "replies", no_ack=True)
    return _ask(channel, server, queue)


def _known(channel: Channel, address: str) -> bool:
    asking = channel.connection.channel()
    try:
        asking.call(spec.Queue.Declare(queue=address, passive=True))
    except Closed as refusal:
        text = f"NOT_FOUND - no queue '{address}' in vhost '/'"
        assert refusal.args == ("channel", 404, text, 50, 10)
        return False
    return True


# -- requests and replies --------------------------------------------------------------------
def test_a_request_bears_a_reply_address_made_by_the_broker(address: str) -> None:
    assert address.startswith("amq.rabbitmq.reply-to.")
    assert len(address) > len("amq.rabbitmq.reply-to.") + 16
    assert len(address) <= 255


def test_a_reply_arrives_at_the_channel_that_asked(
    channel: Channel, server: Channel, address: str
) -> None:
    server.publish(address, b"answer", correlation_id="7", content_type="text/plain")
    reply = channel.delivery()
    method = reply.method
    assert (method.consumer_tag, method.exchange, method.routing_key) == ("replies", "", address)
    assert method.redelivered is False
    assert reply.body == b"answer"
    assert reply.properties.correlation_id == "7"
    assert reply.properties.content_type == "text/plain"


def test_the_other_properties_of_a_request_are_untouched(
    channel: Channel, server: Channel, queue: str
) -> None:
    channel.consume(PSEUDO_QUEUE, no_ack=True)
    sent = {"correlation_id": "7", "headers": {"n": 1}, "priority": 3, "type": "question"}
    channel.publish(queue, b"request", reply_to=PSEUDO_QUEUE, **sent)
    request = eventually(lambda: server.get(queue))
    for key, value in sent.items():
        assert getattr(request.properties, key) == value


def test_many_replies_arrive_in_order(channel: Channel, server: Channel, address: str) -> None:
    bodies = [str(number).encode() for number in range(50)]
    for body in bodies:
        server.publish(address, body)
    assert [reply.body for reply in channel.deliveries(50)] == bodies


@pytest.mark.parametrize("size", [0, 131065, 300_000])
def test_a_reply_of_any_length_arrives_whole(
    channel: Channel, server: Channel, address: str, size: int
) -> None:
    server.publish(address, b"x" * size)
    assert channel.delivery().body == b"x" * size


def test_the_address_stays_the_same_from_request_to_request(
    channel: Channel, server: Channel, queue: str, address: str
) -> None:
    assert _ask(channel, server, queue) == address


def test_each_channel_has_an_address_of_its_own(
    channel: Channel, server: Channel, queue: str, address: str
) -> None:
    second = channel.connection.channel()
    second.consume(PSEUDO_QUEUE, no_ack=True)
    other = _ask(second, server, queue)
    assert other != address
    server.publish(other, b"for the second")
    server.publish(address, b"for the first")
    assert second.delivery().body == b"for the second"
    assert channel.delivery().body == b"for the first"


def test_the_server_may_answer_on_the_connection_of_the_client(
    channel: Channel, address: str
) -> None:
    channel.publish(address, b"to myself")
    assert channel.delivery().body == b"to myself"


def test_a_server_made_tag_is_given_where_none_is_asked_for(channel: Channel) -> None:
    assert channel.consume(PSEUDO_QUEUE, no_ack=True).startswith("amq.ctag-")


def test_a_no_wait_consumer_has_no_answer_and_gets_replies(
    channel: Channel, server: Channel, queue: str
) -> None:
    channel.send(
        spec.Basic.Consume(queue=PSEUDO_QUEUE, consumer_tag="mine", no_ack=True, nowait=True)
    )
    server.publish(_ask(channel, server, queue), b"answer")
    assert channel.delivery().method.consumer_tag == "mine"
    assert not channel.inbox


def test_a_reply_takes_no_delivery_tag_from_the_channel(
    channel: Channel, server: Channel, address: str, name: Callable
) -> None:
    for _ in range(2):
        server.publish(address, b"answer")
        assert channel.delivery().tag == 1
    other = channel.declare(name("other")).queue
    channel.publish(other, b"hello")
    message = channel.get(other)
    assert message is not None
    assert message.tag == 1


def test_a_reply_can_not_be_acked(channel: Channel, server: Channel, address: str) -> None:
    server.publish(address, b"answer")
    channel.ack(channel.delivery().tag)
    text = "PRECONDITION_FAILED - unknown delivery tag 1"
    assert channel.expect_closed().args == ("channel", 406, text, 60, 80)


def test_a_reply_to_that_is_written_differently_is_left_alone(
    channel: Channel, server: Channel, queue: str
) -> None:
    for reply_to in ("amq.rabbitmq.reply-to.x", "Amq.rabbitmq.reply-to", "amq.rabbitmq.reply", ""):
        channel.publish(queue, b"request", reply_to=reply_to)
        request = eventually(lambda: server.get(queue))
        assert request.properties.reply_to == reply_to


def test_a_returned_request_bears_the_address_too(channel: Channel, address: str) -> None:
    channel.publish("nowhere", b"request", mandatory=True, reply_to=PSEUDO_QUEUE)
    assert channel.expect(spec.Basic.Return).properties.reply_to == address


def test_a_request_may_go_through_any_exchange(
    channel: Channel, server: Channel, queue: str, address: str, name: Callable
) -> None:
    exchange = name("fanout")
    server.declare_exchange(exchange, "fanout")
    server.bind(queue, exchange)
    channel.publish("", b"request", exchange=exchange, reply_to=PSEUDO_QUEUE)
    assert eventually(lambda: server.get(queue)).properties.reply_to == address


def test_a_reply_goes_by_the_default_exchange_only(
    channel: Channel, server: Channel, address: str
) -> None:
    server.publish(address, b"answer", exchange="amq.direct")
    server.publish(address, b"answer", exchange="amq.fanout")
    server.sync()
    assert channel.quiet(0.2)


def test_a_reply_address_may_stand_in_cc(
    channel: Channel, server: Channel, queue: str, address: str
) -> None:
    server.publish(queue, b"answer", headers={"CC": [address]})
    assert channel.delivery().method.routing_key == queue
    assert server.drain(queue) == [b"answer"]


# -- guarantees ------------------------------------------------------------------------------
def test_a_reply_is_confirmed(server: Channel, address: str) -> None:
    server.confirm()
    server.publish(address, b"answer")
    assert server.wait_confirms(1) == {1: "ack"}


def test_a_mandatory_reply_is_returned_although_it_arrives(
    channel: Channel, server: Channel, address: str
) -> None:
    server.publish(address, b"answer", mandatory=True)
    assert server.expect(spec.Basic.Return).method.reply_code == 312
    assert channel.delivery().body == b"answer"


def test_a_reply_in_a_transaction_does_not_wait_for_the_commit(
    channel: Channel, server: Channel, address: str
) -> None:
    server.call(spec.Tx.Select())
    server.publish(address, b"answer")
    assert channel.delivery().body == b"answer"
    server.call(spec.Tx.Rollback())
    assert channel.quiet(0.1)


def test_prefetch_does_not_hold_replies_back(channel: Channel, server: Channel, queue: str) -> None:
    channel.qos(1)
    channel.consume(PSEUDO_QUEUE, no_ack=True)
    address = _ask(channel, server, queue)
    for _ in range(5):
        server.publish(address, b"answer")
    assert len(channel.deliveries(5)) == 5


# -- the end of a consumer -------------------------------------------------------------------
def test_after_a_cancel_replies_are_dropped(
    channel: Channel, server: Channel, address: str
) -> None:
    assert channel.cancel("replies").consumer_tag == "replies"
    server.publish(address, b"too late")
    server.sync()
    assert channel.quiet(0.2)
    assert not _known(server, address)


def test_after_a_cancel_one_may_consume_again_under_another_address(
    channel: Channel, server: Channel, queue: str, address: str
) -> None:
    channel.cancel("replies")
    channel.consume(PSEUDO_QUEUE, "replies", no_ack=True)
    new = _ask(channel, server, queue)
    assert new != address
    assert not _known(server, address)
    server.publish(address, b"to the old")
    server.publish(new, b"to the new")
    assert channel.delivery().body == b"to the new"


def test_when_the_channel_closes_its_address_is_forgotten(
    channel: Channel, server: Channel, address: str
) -> None:
    channel.close()
    eventually(lambda: not _known(server, address))
    server.publish(address, b"too late")
    server.sync()


def test_when_the_client_vanishes_its_address_is_forgotten(
    connect: Callable[..., Connection], server: Channel, queue: str
) -> None:
    client = connect()
    asking = client.channel()
    asking.consume(PSEUDO_QUEUE, no_ack=True)
    address = _ask(asking, server, queue)
    assert _known(server, address)
    client.drop()
    eventually(lambda: not _known(server, address))


# -- the address as a queue name -------------------------------------------------------------
@pytest.mark.parametrize("passive", [True, False])
def test_the_address_can_be_declared_to_see_if_the_client_is_there(
    server: Channel, address: str, passive: bool
) -> None:
    found = server.declare(address, passive=passive)
    assert (found.queue, found.message_count, found.consumer_count) == (address, 0, 1)


@pytest.mark.parametrize("passive", [True, False])
def test_the_pseudo_queue_itself_seems_always_there(channel: Channel, passive: bool) -> None:
    found = channel.declare(PSEUDO_QUEUE, passive=passive)
    assert (found.queue, found.message_count, found.consumer_count) == (PSEUDO_QUEUE, 0, 1)


@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize(
    "forged", [f"{PSEUDO_QUEUE}.forged", f"{PSEUDO_QUEUE}-x"], ids=["dot", "dash"]
)
def test_a_forged_address_is_not_found(channel: Channel, forged: str, passive: bool) -> None:
    refusal = channel.refused(spec.Queue.Declare(queue=forged, passive=passive))
    text = f"NOT_FOUND - no queue '{forged}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 50, 10)


def test_an_address_with_a_changed_key_is_not_found_and_gets_nothing(
    channel: Channel, server: Channel, address: str
) -> None:
    at = address.rindex(".") + 3
    changed = address[:at] + ("A" if address[at] != "A" else "B") + address[at + 1 :]
    assert not _known(server, changed)
    server.publish(changed, b"to the forged one")
    server.publish(address, b"to the true one")
    assert channel.delivery().body == b"to the true one"


def test_publishing_to_a_forged_address_is_dropped(channel: Channel) -> None:
    channel.publish("amq.rabbitmq.reply-to.forged", b"hello")
    channel.sync()


@pytest.mark.parametrize(
    "method",
    [
        spec.Basic.Get(queue=PSEUDO_QUEUE),
        spec.Queue.Purge(queue=PSEUDO_QUEUE),
        spec.Queue.Bind(queue=PSEUDO_QUEUE, exchange="amq.direct", routing_key="key"),
    ],
    ids=lambda method: method.NAME,
)
def test_it_is_no_queue(channel: Channel, method: amqp_object.Method) -> None:
    channel.consume(PSEUDO_QUEUE, no_ack=True)
    class_id, method_id = method.INDEX >> 16, method.INDEX & 0xFFFF
    text = f"NOT_FOUND - no queue '{PSEUDO_QUEUE}' in vhost '/'"
    assert channel.refused(method).args == ("channel", 404, text, class_id, method_id)


def test_an_address_can_not_be_consumed_from(server: Channel, address: str) -> None:
    refusal = server.refused(spec.Basic.Consume(queue=address, no_ack=True))
    text = f"NOT_FOUND - no queue '{address}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 60, 20)


def test_deleting_the_address_does_nothing(channel: Channel, server: Channel, address: str) -> None:
    assert server.call(spec.Queue.Delete(queue=address)).message_count == 0
    server.publish(address, b"answer")
    assert channel.delivery().body == b"answer"


# -- refusals --------------------------------------------------------------------------------
def test_replies_are_consumed_without_acks_only(channel: Channel) -> None:
    refusal = channel.refused(spec.Basic.Consume(queue=PSEUDO_QUEUE, no_ack=False))
    text = "PRECONDITION_FAILED - reply consumer cannot acknowledge"
    assert refusal.args == ("channel", 406, text, 60, 20)


def test_a_channel_has_one_reply_consumer(channel: Channel) -> None:
    channel.consume(PSEUDO_QUEUE, no_ack=True)
    refusal = channel.refused(spec.Basic.Consume(queue=PSEUDO_QUEUE, no_ack=True))
    text = "PRECONDITION_FAILED - reply consumer already set"
    assert refusal.args == ("channel", 406, text, 60, 20)


def test_a_request_needs_a_reply_consumer(channel: Channel, queue: str) -> None:
    channel.publish(queue, b"request", reply_to=PSEUDO_QUEUE)
    text = "PRECONDITION_FAILED - fast reply consumer does not exist"
    assert channel.expect_closed().args == ("channel", 406, text, 60, 40)


def test_a_request_needs_a_reply_consumer_on_its_own_channel(channel: Channel, queue: str) -> None:
    channel.consume(PSEUDO_QUEUE, no_ack=True)
    other = channel.connection.channel()
    other.publish(queue, b"request", reply_to=PSEUDO_QUEUE)
    text = "PRECONDITION_FAILED - fast reply consumer does not exist"
    assert other.expect_closed().args == ("channel", 406, text, 60, 40)


def test_a_request_after_a_cancel_is_refused(channel: Channel, queue: str, address: str) -> None:
    channel.cancel("replies")
    channel.publish(queue, b"request", reply_to=PSEUDO_QUEUE)
    assert channel.expect_closed().code == 406


def test_a_tag_in_use_can_not_be_taken_for_replies(channel: Channel, name: Callable) -> None:
    channel.consume(channel.declare(name("queue")).queue, "taken")
    refusal = channel.refused(
        spec.Basic.Consume(queue=PSEUDO_QUEUE, consumer_tag="taken", no_ack=True)
    )
    text = "NOT_ALLOWED - attempt to reuse consumer tag 'taken'"
    assert refusal.args == ("connection", 530, text, 60, 20)
