"""Frames that make no sense: what each costs, and in what words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import (
    BODY,
    HEADER,
    HEARTBEAT,
    METHOD,
    body,
    header,
    lost,
    method,
    publish,
    raw,
    raw_method,
    refusal,
)
from tests.support.wire import Connection

Connect = Callable[..., Connection]

LETTERS = b"abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def connection(connect: Connect) -> Connection:
    """A connection with channel 1 open."""
    connection = connect()
    connection.channel(1)
    return connection


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(raw(0, 1, b"abc"), 'type 0, all octets = <<"abc">>', id="zero"),
        pytest.param(raw(4, 0), "type 4, all octets = <<>>", id="channel-0"),
        pytest.param(raw(9, 5, b"\0a"), "type 9, all octets = <<0,97>>", id="unopened-channel"),
        pytest.param(raw(255, 1, b"a\x7f"), "type 255, all octets = <<97,127>>", id="octets"),
        pytest.param(raw(9, 1, b'a"\\'), r'type 9, all octets = <<"a\"\\">>', id="quoted"),
        pytest.param(raw(9, 1, b"\n\t\x1b"), r'type 9, all octets = <<"\n\t\e">>', id="escaped"),
        pytest.param(
            raw(9, 1, LETTERS[:16]), 'type 9, all octets = <<"abcdefghijklmnop">>', id="sixteen"
        ),
        pytest.param(
            raw(9, 1, LETTERS), 'type 9, first 16 octets = <<"abcdefghijklmnop">>', id="long"
        ),
        pytest.param(
            raw(9, 1, bytes(range(17))),
            "type 9, first 16 octets = <<0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15>>",
            id="long-octets",
        ),
        pytest.param(
            raw(METHOD, 1, b"\0\x3c"), "type 1, all octets = <<0,60>>", id="half-a-method"
        ),
        pytest.param(raw(METHOD, 0), "type 1, all octets = <<>>", id="empty-method"),
        pytest.param(raw(HEADER, 1, b"\0"), "type 2, all octets = <<0>>", id="half-a-header"),
        pytest.param(raw(HEARTBEAT, 0, b"x"), 'type 8, all octets = <<"x">>', id="full-heartbeat"),
    ],
)
def test_a_frame_of_no_known_kind_closes_the_connection_with_501(
    connection: Connection, data: bytes, said: str
) -> None:
    text = f"FRAME_ERROR - {said}: unknown_frame"
    assert refusal(connection, data) == ("connection", 501, text, 0, 0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(
            raw(HEARTBEAT, 0, end=0xCD),
            "type 8, all octets = <<>>: {invalid_frame_end_marker,205}",
            id="empty",
        ),
        pytest.param(
            raw(METHOD, 1, bytes(5), end=0),
            "type 1, all octets = <<0,0,0,0,0>>: {invalid_frame_end_marker,0}",
            id="octets",
        ),
        pytest.param(
            raw(BODY, 3, LETTERS, end=1),
            'type 3, first 16 octets = <<"abcdefghijklmnop">>: {invalid_frame_end_marker,1}',
            id="last-that-fits-a-line",
        ),
        pytest.param(
            raw(BODY, 3, LETTERS, end=10),
            'type 3, first 16 octets = <<"abcdefghijklmnop">>: {invalid_frame_end_marker,\n'
            + 51 * " "
            + "10}",
            id="first-that-does-not",
        ),
    ],
)
def test_a_wrong_frame_end_closes_the_connection_with_501(
    connection: Connection, data: bytes, said: str
) -> None:
    assert refusal(connection, data) == ("connection", 501, f"FRAME_ERROR - {said}", 0, 0)


def test_a_client_out_of_step_is_not_heard_any_more_and_dropped(connect: Connect) -> None:
    too_large = raw(BODY, 0)[:3] + b"\xff\xff\xff\xff"
    connections = [connect(), connect()]
    for connection, data in zip(connections, (raw(8, 0, end=1), too_large), strict=True):
        assert refusal(connection, data)[:2] == ("connection", 501)
        connection.wire.send(method(spec.Connection.Close(200, "bye", 0, 0), 0))
    assert all(lost(connection.wire) for connection in connections)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(raw(HEARTBEAT, 1), "type 8, all octets = <<>>", id="heartbeat-on-a-channel"),
        pytest.param(
            header(channel=0),
            "type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,0,0,0>>",
            id="header-on-0",
        ),
        pytest.param(
            body(LETTERS, 0), 'type 3, first 16 octets = <<"abcdefghijklmnop">>', id="body"
        ),
        pytest.param(
            header(), "expected method frame, got non method frame instead", id="header-first"
        ),
        pytest.param(
            body(b"x"), "expected method frame, got non method frame instead", id="body-first"
        ),
        pytest.param(
            body(b"x", channel=5),
            "expected method frame, got non method frame instead",
            id="body-on-an-unopened-channel",
        ),
    ],
)
def test_a_frame_that_nothing_led_to_closes_the_connection_with_505(
    connection: Connection, data: bytes, said: str
) -> None:
    assert refusal(connection, data) == ("connection", 505, f"UNEXPECTED_FRAME - {said}", 0, 0)


NO_HEADER = "expected content header for class 60, got non content header frame instead"
NO_BODY = "expected content body, got non content body frame instead"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(publish() + method(spec.Basic.Qos()), NO_HEADER, id="method-for-header"),
        pytest.param(publish() + publish(), NO_HEADER, id="publish-for-header"),
        pytest.param(publish() + body(b"x"), NO_HEADER, id="body-for-header"),
        pytest.param(publish() + header(weight=1), NO_HEADER, id="header-with-a-weight"),
        pytest.param(
            publish() + header(class_id=50),
            "expected content header for class 60, got one for class 50 instead",
            id="header-of-another-class",
        ),
        pytest.param(
            publish() + header(3) + method(spec.Basic.Qos()), NO_BODY, id="method-for-body"
        ),
        pytest.param(publish() + header(3) + header(3), NO_BODY, id="header-for-body"),
        pytest.param(
            publish() + header(3) + body(b"ab") + publish(), NO_BODY, id="publish-for-the-rest"
        ),
        pytest.param(
            publish() + header(3) + method(spec.Channel.Close(200, "", 0, 0)), NO_BODY, id="close"
        ),
    ],
)
def test_content_out_of_order_closes_the_connection_with_505(
    connection: Connection, data: bytes, said: str
) -> None:
    assert refusal(connection, data) == ("connection", 505, f"UNEXPECTED_FRAME - {said}", 60, 40)


def test_a_body_longer_than_announced_never_ends(
    connection: Connection, name: Callable[[str], str]
) -> None:
    channel = connection.channels[1]
    channel.declare(queue := name("overlong"))
    connection.wire.send(publish(queue) + header(3) + body(b"abcd") + body(b"efgh"))
    assert channel.quiet(0.1)
    refused = refusal(connection, method(spec.Basic.Qos()))
    assert refused == ("connection", 505, f"UNEXPECTED_FRAME - {NO_BODY}", 60, 40)


@pytest.mark.parametrize(
    ("data", "class_id", "method_id", "octets"),
    [
        pytest.param(
            raw_method(1, 50, 10, b"\0\0\x05ab"), 50, 10, "<<0,0,5,97,98>>", id="too-short"
        ),
        pytest.param(
            raw_method(1, 60, 10, bytes(7) + b"ab"),
            60,
            10,
            "<<0,0,0,0,0,0,0,97,98>>",
            id="too-long",
        ),
        pytest.param(raw_method(2, 20, 10), 20, 10, "<<>>", id="empty"),
        pytest.param(
            raw_method(1, 50, 10, b"\0\0\x01q\0\0\0\0\x09\x01a"),
            *(50, 10, "<<0,0,1,113,0,0,0,0,9,1,97>>"),
            id="table-too-short",
        ),
        pytest.param(
            raw_method(1, 60, 40, b"x" * 300), 60, 40, f"<<{300 * '120,'}"[:224] + "...", id="cut"
        ),
    ],
)
def test_arguments_that_do_not_fit_their_method_close_the_connection_with_501(
    connection: Connection, data: bytes, class_id: int, method_id: int, octets: str
) -> None:
    text = f"FRAME_ERROR - cannot decode {octets}"
    assert refusal(connection, data) == ("connection", 501, text, class_id, method_id)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(raw_method(0, 50, 10, b"\0\0"), id="channel-method"),
        pytest.param(raw_method(0, 10, 70, b"\0\0"), id="update-secret"),
    ],
)
def test_arguments_that_do_not_fit_on_channel_0_close_it_with_541(
    connection: Connection, data: bytes
) -> None:
    assert refusal(connection, data) == ("connection", 541, "INTERNAL_ERROR", 0, 0)


def test_a_short_string_must_be_utf8(connection: Connection) -> None:
    data = raw_method(1, 50, 10, b"\0\0\x02\xff\xfe\0\0\0\0\0")
    text = "FRAME_ERROR - Malformed UTF-8 in shortstr"
    assert refusal(connection, data) == ("connection", 501, text, 0, 0)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(raw_method(1, 999, 1), id="class"),
        pytest.param(raw_method(1, 60, 999), id="method"),
        pytest.param(raw_method(1, 70, 10), id="class-of-older-versions"),
        pytest.param(raw_method(0, 999, 1), id="channel-0"),
        pytest.param(raw_method(5, 60, 999), id="unopened-channel"),
    ],
)
def test_an_unknown_method_costs_the_connection_without_a_word(
    connection: Connection, data: bytes
) -> None:
    connection.wire.send(data)
    assert lost(connection.wire)


def test_a_broken_connection_leaves_the_others_alone(
    connect: Connect, connection: Connection
) -> None:
    other = connect().channel()
    connection.wire.send(raw_method(1, 999, 1))
    assert lost(connection.wire)
    refusal(connect(), raw(9, 0))
    other.sync()
