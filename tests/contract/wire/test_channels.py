"""Channels: opening, closing, numbers, and methods in the wrong place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec
from pika.amqp_object import Method

from tests.contract.wire.raw import body, header, lost, method, publish, raw_method, refusal
from tests.support.wire import Channel, Closed, Connection

Connect = Callable[..., Connection]
Name = Callable[[str], str]

BYE = spec.Channel.Close(200, "bye", 0, 0)
MISSING = method(spec.Queue.Declare(queue="absent", passive=True))
NOT_FOUND = ("channel", 404, "NOT_FOUND - no queue 'absent' in vhost '/'", 50, 10)


def closing(connection: Connection) -> None:
    """Make the broker close channel 1, and leave its close unanswered."""
    connection.wire.send(MISSING)
    assert isinstance(connection.wire.read().method, spec.Channel.Close)


def test_open_ok_has_an_empty_channel_id(connect: Connect) -> None:
    connection = connect()
    connection.wire.send(method(spec.Channel.Open()))
    assert connection.wire.read().method.channel_id == b""


def test_channels_may_be_opened_in_any_order_up_to_the_largest_number(connect: Connect) -> None:
    connection = connect()
    for number in (9, 2, 65535, 1):
        connection.channel(number).sync()


@pytest.mark.parametrize(
    ("data", "class_id", "method_id"),
    [
        pytest.param(method(spec.Basic.Qos(), 3), 60, 10, id="qos"),
        pytest.param(method(spec.Basic.Ack(1), 3), 60, 80, id="ack"),
        pytest.param(method(BYE, 3), 20, 40, id="close"),
        pytest.param(method(spec.Channel.CloseOk(), 3), 20, 41, id="close-ok"),
        pytest.param(publish(channel=3) + header(channel=3), 60, 40, id="publish"),
        pytest.param(
            publish(channel=3) + header(1, channel=3) + body(b"x", channel=3), 60, 40, id="body"
        ),
    ],
)
def test_a_method_on_an_unopened_channel_closes_the_connection_with_504(
    connect: Connect, data: bytes, class_id: int, method_id: int
) -> None:
    text = "CHANNEL_ERROR - expected 'channel.open'"
    assert refusal(connect(), data) == ("connection", 504, text, class_id, method_id)


def test_a_publish_on_an_unopened_channel_is_judged_once_its_content_is_there(
    connect: Connect,
) -> None:
    connection = connect()
    connection.channel(1)
    connection.wire.send(publish(channel=3) + header(1, channel=3))
    connection.channels[1].sync()
    refused = refusal(connection, body(b"x", channel=3))
    assert refused[:3] == ("connection", 504, "CHANNEL_ERROR - expected 'channel.open'")


def test_opening_a_channel_twice_closes_the_connection_with_504(channel: Channel) -> None:
    text = "CHANNEL_ERROR - second 'channel.open' seen"
    assert channel.refused(spec.Channel.Open()).args == ("connection", 504, text, 20, 10)


def test_opening_a_channel_whose_close_is_unanswered_closes_the_connection_with_504(
    channel: Channel,
) -> None:
    closing(channel.connection)
    text = "CHANNEL_ERROR - second 'channel.open' seen"
    assert channel.refused(spec.Channel.Open()).args == ("connection", 504, text, 20, 10)


@pytest.mark.parametrize(
    "misplaced",
    [
        spec.Channel.Open(),
        BYE,
        spec.Queue.Declare(queue="q"),
        spec.Basic.Qos(),
        spec.Basic.Publish(routing_key="q"),
        spec.Basic.Ack(1),
    ],
    ids=lambda value: value.NAME,
)
def test_a_channel_method_on_channel_0_closes_the_connection_with_504(
    connect: Connect, misplaced: Method
) -> None:
    text = "CHANNEL_ERROR - unexpected method in connection state running"
    ids = (misplaced.INDEX >> 16, misplaced.INDEX & 0xFFFF)
    assert refusal(connect(), method(misplaced, 0)) == ("connection", 504, text, *ids)


@pytest.mark.parametrize(
    "misplaced",
    [
        spec.Connection.Close(200, "bye", 0, 0),
        spec.Connection.TuneOk(2047, 131072, 0),
        spec.Connection.UpdateSecret("secret", "reason"),
        spec.Channel.OpenOk(),
        spec.Channel.CloseOk(),
        spec.Channel.FlowOk(True),
        spec.Queue.DeclareOk("q", 0, 0),
        spec.Basic.GetEmpty(),
        spec.Basic.CancelOk("tag"),
    ],
    ids=lambda value: value.NAME,
)
def test_a_method_no_client_sends_on_a_channel_closes_the_connection_with_503(
    channel: Channel, misplaced: Method
) -> None:
    text = "COMMAND_INVALID - unimplemented method"
    ids = (misplaced.INDEX >> 16, misplaced.INDEX & 0xFFFF)
    assert channel.refused(misplaced).args == ("connection", 503, text, *ids)


@pytest.mark.parametrize(
    "misplaced",
    [
        spec.Basic.Deliver("tag", 1, False, "", "q"),
        spec.Basic.Return(312, "NO_ROUTE", "", "q"),
        spec.Basic.GetOk(1, False, "", "q", 0),
    ],
    ids=lambda value: value.NAME,
)
def test_so_does_one_with_content_once_the_content_is_there(
    channel: Channel, misplaced: Method
) -> None:
    connection = channel.connection
    connection.wire.send(method(misplaced))
    text = "COMMAND_INVALID - unimplemented method"
    ids = (misplaced.INDEX >> 16, misplaced.INDEX & 0xFFFF)
    assert refusal(connection, header()) == ("connection", 503, text, *ids)


def test_flow_may_be_switched_on_but_not_off(channel: Channel) -> None:
    assert channel.call(spec.Channel.Flow(active=True)).active is True
    text = "NOT_IMPLEMENTED - active=false"
    assert channel.refused(spec.Channel.Flow(active=False)).args == (
        "connection",
        540,
        text,
        20,
        20,
    )


def test_access_request_of_older_clients_is_granted(channel: Channel) -> None:
    channel.connection.wire.send(raw_method(1, 30, 10, b"\x05/data\x1f"))
    assert channel.expect(spec.Access.RequestOk).ticket == 1


def test_a_soft_error_closes_its_channel_and_no_other(connect: Connect) -> None:
    connection = connect()
    first, second = connection.channel(1), connection.channel(2)
    assert refusal(connection, MISSING) == NOT_FOUND
    second.sync()
    with pytest.raises(Closed) as refused:
        connection.channel(3)
        first.sync()
    assert refused.value.args[:3] == ("connection", 504, "CHANNEL_ERROR - expected 'channel.open'")


def test_what_follows_a_soft_error_is_ignored_until_its_close_is_answered(
    connect: Connect, name: Name
) -> None:
    channel = connect().channel(1)
    channel.declare(queue := name("unharmed"))
    connection = channel.connection
    closing(connection)
    connection.wire.send(
        publish(queue)
        + header(1)
        + body(b"x")
        + MISSING
        + method(spec.Queue.Delete(queue=queue))
        + method(spec.Basic.Qos(prefetch_size=1))
        + method(spec.Channel.CloseOk())
    )
    assert connection.channel(1).declare(queue, passive=True).message_count == 0


def test_a_close_that_crosses_the_brokers_is_answered(channel: Channel) -> None:
    closing(channel.connection)
    channel.close()
    channel.send(spec.Channel.CloseOk())
    channel.call(spec.Channel.Open())
    channel.sync()


def test_content_begun_in_a_closing_channel_must_be_finished_before_close_ok(
    channel: Channel,
) -> None:
    closing(channel.connection)
    text = (
        "UNEXPECTED_FRAME - expected content header for class 60,"
        " got non content header frame instead"
    )
    refused = refusal(channel.connection, publish() + method(spec.Channel.CloseOk()))
    assert refused == ("connection", 505, text, 60, 40)


def test_an_unknown_method_costs_the_connection_in_a_closing_channel_too(channel: Channel) -> None:
    closing(channel.connection)
    channel.connection.wire.send(raw_method(1, 60, 999))
    assert lost(channel.connection.wire)


def test_a_channel_opened_anew_begins_anew(connect: Connect, name: Name) -> None:
    connection = connect()
    first = connection.channel(1)
    first.declare(queue := name("reused"))
    first.confirm()
    first.consume(queue, "tag")
    first.publish(queue, b"one")
    assert first.delivery().tag == 1
    first.close()
    again = connection.channel(1)
    again.consume(queue, "tag")
    message = again.delivery()
    assert (message.tag, message.method.redelivered) == (1, True)
    again.publish(queue, b"two")
    assert again.delivery().tag == 2
    assert again.quiet(0.1)  # no confirm: the mode ended with the first channel


def test_a_channel_closed_by_an_error_can_be_opened_anew_at_once(channel: Channel) -> None:
    wire = channel.connection.wire
    wire.send(MISSING)
    assert type(wire.read().method) is spec.Channel.Close
    wire.send(
        method(spec.Channel.CloseOk()) + method(spec.Channel.Open()) + method(spec.Basic.Qos())
    )
    answers = [type(wire.read().method) for _ in range(2)]
    assert answers == [spec.Channel.OpenOk, spec.Basic.QosOk]
