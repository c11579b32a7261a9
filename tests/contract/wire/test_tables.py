"""Field tables and properties, down to the byte."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import (
    field,
    greet,
    header,
    headers_property,
    lost,
    publish,
    raw,
    raw_method,
    refusal,
    sized,
)
from tests.support.wire import Channel, Connection
from tests.support.wire_frames import Wire

Connect = Callable[..., Connection]
Name = Callable[[str], str]

NESTED = field("deep", "F", sized(field("list", "A", sized(b"b\x80V" + b"S" + sized(b"end")))))

VALUES = {
    "t-true": ("t", b"\x01"),
    "t-false": ("t", b"\x00"),
    "b": ("b", b"\x80"),
    "B": ("B", b"\xff"),
    "s": ("s", b"\x80\x00"),
    "u": ("u", b"\xff\xff"),
    "I": ("I", b"\x80\x00\x00\x00"),
    "i": ("i", b"\xff\xff\xff\xff"),
    "l": ("l", b"\x80" + bytes(7)),
    "L": ("L", b"\x80" + bytes(7)),
    "f": ("f", struct.pack(">f", -1.5)),
    "d": ("d", struct.pack(">d", 1e300)),
    "D": ("D", b"\x02\x00\x00\x01\x3a"),
    "S": ("S", sized("naïve".encode())),
    "S-empty": ("S", sized(b"")),
    "S-not-text": ("S", sized(b"\xff\x00\xfe")),
    "A": ("A", sized(b"I\x00\x00\x00\x01" + b"t\x01" + b"A" + sized(b"V"))),
    "A-empty": ("A", sized(b"")),
    "T": ("T", b"\x00\x00\x00\x00\xff\xff\xff\xff"),
    "F": ("F", sized(NESTED)),
    "F-empty": ("F", sized(b"")),
    "V": ("V", b""),
    "x": ("x", sized(b"\x00\xff")),
}
every_type = pytest.mark.parametrize(("kind", "value"), VALUES.values(), ids=VALUES)


def send(channel: Channel, queue: str, properties: bytes) -> None:
    channel.connection.wire.send(publish(queue) + header(properties=properties))


def received(channel: Channel, queue: str) -> bytes:
    """Get a message and return its properties as they came."""
    channel.send(spec.Basic.Get(queue=queue, no_ack=True))
    channel.connection.wire.read_raw()
    _, _, payload = channel.connection.wire.read_raw()
    return payload[12:]


@every_type
def test_a_header_of_any_type_comes_back_byte_for_byte(
    channel: Channel, name: Name, kind: str, value: bytes
) -> None:
    channel.declare(queue := name("table"))
    sent = headers_property(field("key", kind, value))
    send(channel, queue, sent)
    assert received(channel, queue) == sent


def test_all_of_them_together_come_back_in_order(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("table"))
    sent = headers_property(*(field(key, *VALUES[key]) for key in VALUES))
    send(channel, queue, sent)
    assert received(channel, queue) == sent


@every_type
def test_a_header_of_any_type_survives_being_dead_lettered(
    channel: Channel, name: Name, kind: str, value: bytes
) -> None:
    channel.declare(end := name("end"))
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": end}
    channel.declare(begin := name("begin"), arguments=arguments)
    send(channel, begin, headers_property(field("key", kind, value)))
    message = channel.call(spec.Basic.Get(queue=begin))
    channel.reject(message.tag, requeue=False)
    channel.sync()
    rewritten = "l" if kind == "L" else kind  # both are signed 64-bit integers
    assert field("key", rewritten, value) in received(channel, end)


def test_a_table_may_be_nested_a_thousand_deep(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("deep"))
    inner = b""
    for _ in range(1000):
        inner = b"A" + sized(inner)
    sent = headers_property(field("key", "A", sized(inner)))
    send(channel, queue, sent)
    assert received(channel, queue) == sent


def test_a_key_may_occur_twice(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("twice"))
    sent = headers_property(field("key", "t", b"\1"), field("key", "t", b"\0"))
    send(channel, queue, sent)
    assert received(channel, queue) == sent


def test_all_fourteen_properties_come_back_byte_for_byte(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("properties"))
    sent = spec.BasicProperties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"a": 1},
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=2**40,
        type="t",
        user_id="guest",
        app_id="app",
        cluster_id="cluster",
    )
    encoded = b"".join(sent.encode())
    assert encoded[:2] == b"\xff\xfc"
    send(channel, queue, encoded)
    assert received(channel, queue) == encoded


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param(b"\x80\0\x02\xff\xfe", id="content-type-not-utf8"),
        pytest.param(headers_property(b"\x01\xfft\x01"), id="key-not-utf8"),
        pytest.param(headers_property(b"\x00t\x01"), id="empty-key"),
        pytest.param(headers_property(field("key", "t", b"\x02")), id="odd-true"),
        pytest.param(b"\x00\x02", id="unused-flag"),
    ],
)
def test_odd_but_readable_properties_come_back_byte_for_byte(
    channel: Channel, name: Name, properties: bytes
) -> None:
    channel.declare(queue := name("odd"))
    send(channel, queue, properties)
    assert received(channel, queue) == properties


UNREADABLE = {
    "no-flags": b"",
    "half-the-flags": b"\0",
    "too-much": b"\0\0more",
    "flag-without-value": b"\x80\0",
    "value-too-short": b"\x80\0\x05ab",
    "more-flags": b"\0\x01\0\0",
    "table-too-short": b"\x20\0\0\0\0\x05\x01a",
    "table-cut": headers_property(b"\x01aI\0\0"),
    "unknown-type": headers_property(b"\x01aZ"),
    "no-type": headers_property(b"\x01a"),
    "array-of-unknown-type": headers_property(field("a", "A", sized(b"Z"))),
    "nested-table-cut": headers_property(field("a", "F", sized(b"\x01bI\0"))),
    "float-nan": headers_property(field("a", "f", struct.pack(">f", float("nan")))),
    "double-nan": headers_property(field("a", "d", struct.pack(">d", float("nan")))),
    "double-infinity": headers_property(field("a", "d", struct.pack(">d", float("-inf")))),
}


@pytest.mark.parametrize("properties", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_properties_close_the_connection_with_541(
    channel: Channel, properties: bytes
) -> None:
    data = publish() + header(properties=properties)
    assert refusal(channel.connection, data) == ("connection", 541, "INTERNAL_ERROR", 0, 0)


@pytest.mark.parametrize("mode", [0, 3, 255])
def test_a_delivery_mode_other_than_1_and_2_closes_the_channel_with_406(
    channel: Channel, mode: int
) -> None:
    data = publish() + header(properties=b"\x10\0" + bytes([mode]))
    text = f"PRECONDITION_FAILED - invalid message: {{delivery_mode_unknown,{mode}}}"
    assert refusal(channel.connection, data) == ("channel", 406, text, 60, 40)


def test_unreadable_properties_for_an_absent_exchange_are_not_looked_at(channel: Channel) -> None:
    data = publish(exchange="absent") + header(properties=b"")
    text = "NOT_FOUND - no exchange 'absent' in vhost '/'"
    assert refusal(channel.connection, data) == ("channel", 404, text, 60, 40)


# -- arguments -----------------------------------------------------------------------------------
def declare(queue: str, *arguments: bytes) -> bytes:
    """queue.declare, nothing but its arguments set."""
    named = bytes([len(queue)]) + queue.encode()
    return raw_method(1, 50, 10, b"\0\0" + named + b"\0" + sized(b"".join(arguments)))


@every_type
def test_an_argument_of_any_type_is_read(
    channel: Channel, name: Name, kind: str, value: bytes
) -> None:
    channel.connection.wire.send(declare(name("argument"), field("x-mine", kind, value)))
    channel.expect(spec.Queue.DeclareOk)


@pytest.mark.parametrize("kind", "bBsuIilLT")
def test_integers_of_all_widths_and_timestamps_are_the_same_argument(
    channel: Channel, name: Name, kind: str
) -> None:
    size = {"b": 1, "B": 1, "s": 2, "u": 2, "I": 4, "i": 4}.get(kind, 8)
    channel.declare(queue := name("widths"), arguments={"x-message-ttl": 101})
    ttl = field("x-message-ttl", kind, (101).to_bytes(size, "big"))
    channel.connection.wire.send(declare(queue, ttl))
    channel.expect(spec.Queue.DeclareOk)


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        pytest.param("b", b"\x80", "'-128'", id="b"),
        pytest.param("B", b"\xff", "'255'", id="B"),
        pytest.param("s", b"\x80\x00", "'-32768'", id="s"),
        pytest.param("u", b"\xff\xff", "'65535'", id="u"),
        pytest.param("I", b"\xff\xff\xff\xff", "'-1'", id="I"),
        pytest.param("i", b"\xff\xff\xff\xff", "'4294967295'", id="i"),
        pytest.param("l", b"\xff" * 8, "'-1'", id="l"),
        pytest.param("L", b"\xff" * 8, "'-1'", id="L"),
        pytest.param("T", b"\xff" * 8, "'18446744073709551615'", id="T"),
        pytest.param("f", struct.pack(">f", 1.5), "'1.5'", id="f"),
        pytest.param("d", struct.pack(">d", 101.0), "'101.0'", id="d"),
        pytest.param("t", b"\x01", "'true'", id="t"),
        pytest.param("S", sized(b"101"), "'101'", id="S"),
        pytest.param("x", sized(b"101"), "'101'", id="x"),
        pytest.param("V", b"", "none", id="V"),
        pytest.param("A", sized(b"b\x05V"), "'[{byte,5},{void,undefined}]'", id="A"),
        pytest.param(
            "F", sized(field("a", "S", sized(b"b"))), '\'[{<<"a">>,longstr,<<"b">>}]\'', id="F"
        ),
    ],
)
def test_a_differing_argument_is_told_by_its_value(
    channel: Channel, name: Name, kind: str, value: bytes, read: str
) -> None:
    channel.declare(queue := name("differing"), arguments={"x-message-ttl": 101})
    text = (
        f"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '{queue}'"
        f" in vhost '/': received {read} but current is '101'"
    )
    data = declare(queue, field("x-message-ttl", kind, value))
    assert refusal(channel.connection, data) == ("channel", 406, text, 50, 10)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        pytest.param("t", b"\x01", "bool", id="t"),
        pytest.param("f", bytes(4), "float", id="f"),
        pytest.param("d", bytes(8), "double", id="d"),
        pytest.param("D", bytes(5), "decimal", id="D"),
        pytest.param("S", sized(b"1"), "longstr", id="S"),
        pytest.param("A", sized(b""), "array", id="A"),
        pytest.param("T", bytes(8), "timestamp", id="T"),
        pytest.param("F", sized(b""), "table", id="F"),
        pytest.param("V", b"", "void", id="V"),
        pytest.param("x", sized(b""), "binary", id="x"),
    ],
)
def test_an_argument_of_the_wrong_type_is_told_by_its_type(
    channel: Channel, name: Name, kind: str, value: bytes, said: str
) -> None:
    queue = name("wrong-type")
    text = (
        f"PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue '{queue}'"
        f" in vhost '/': \"expected integer, got {said}\""
    )
    data = declare(queue, field("x-message-ttl", kind, value))
    assert refusal(channel.connection, data) == ("channel", 406, text, 50, 10)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(b"\x01aZ", id="unknown-type"),
        pytest.param(b"\x01aI\0", id="cut"),
        pytest.param(field("a", "A", sized(b"Z")), id="array"),
        pytest.param(field("a", "d", struct.pack(">d", float("nan"))), id="nan"),
    ],
)
def test_an_unreadable_argument_table_costs_the_connection_without_a_word(
    channel: Channel, entry: bytes
) -> None:
    channel.connection.wire.send(declare("unreadable", entry))
    assert lost(channel.connection.wire)


def test_client_properties_may_be_of_any_type(dial: Callable[[], Wire]) -> None:
    wire = dial()
    greet(wire)
    table = sized(b"".join(field(key, *VALUES[key]) for key in VALUES))
    login = b"\x05PLAIN" + sized(b"\0guest\0guest") + b"\x05en_US"
    wire.send(raw(1, 0, struct.pack(">HH", 10, 11) + table + login))
    assert isinstance(wire.read().method, spec.Connection.Tune)
