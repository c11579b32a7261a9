"""Frames made by hand, right or wrong, and the steps of a handshake one at a time."""

from __future__ import annotations

import struct
from typing import Any

from pika import frame, spec
from pika.amqp_object import Method

from tests.support.wire import CAPABILITIES, PROTOCOL_HEADER, Closed, Connection
from tests.support.wire_frames import Gone, Wire

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
LOGIN = b"\0guest\0guest"


def raw(kind: int, channel: int, payload: bytes = b"", end: int = 0xCE) -> bytes:
    """One frame, whatever is in it."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([end])


def raw_method(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    return raw(METHOD, channel, struct.pack(">HH", class_id, method_id) + arguments)


def header(
    size: int = 0,
    properties: bytes = b"\0\0",
    class_id: int = 60,
    weight: int = 0,
    channel: int = 1,
) -> bytes:
    """A content header frame; ``properties`` are its flags and values."""
    return raw(HEADER, channel, struct.pack(">HHQ", class_id, weight, size) + properties)


def body(data: bytes, channel: int = 1) -> bytes:
    return raw(BODY, channel, data)


def method(value: Method, channel: int = 1) -> bytes:
    return frame.Method(channel, value).marshal()


def publish(routing_key: str = "nowhere", exchange: str = "", channel: int = 1) -> bytes:
    """The method frame alone."""
    return method(spec.Basic.Publish(exchange=exchange, routing_key=routing_key), channel)


def field(key: str, kind: str, value: bytes) -> bytes:
    """One entry of a field table."""
    return bytes([len(key)]) + key.encode() + kind.encode() + value


def sized(data: bytes) -> bytes:
    """Bytes behind their 32-bit length, as tables, arrays and long strings have it."""
    return struct.pack(">I", len(data)) + data


def headers_property(*fields: bytes) -> bytes:
    """Property flags and values of a message that has only headers."""
    return b"\x20\0" + sized(b"".join(fields))


def start_ok(response: bytes = LOGIN, **fields: Any) -> bytes:
    given = {
        "client_properties": {"capabilities": CAPABILITIES},
        "mechanism": "PLAIN",
        "response": response.decode("latin-1"),
        "locale": "en_US",
    }
    return method(spec.Connection.StartOk(**{**given, **fields}), 0)


def tune_ok(channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 0) -> bytes:
    return method(spec.Connection.TuneOk(channel_max, frame_max, heartbeat), 0)


def open_vhost(vhost: str = "/") -> bytes:
    return method(spec.Connection.Open(virtual_host=vhost), 0)


def greet(wire: Wire) -> Any:
    """Send the protocol header and return connection.start."""
    wire.send(PROTOCOL_HEADER)
    return wire.read().method


def log_in(wire: Wire) -> Any:
    """Greet, log in as guest and return connection.tune."""
    greet(wire)
    wire.send(start_ok())
    return wire.read().method


def lost(wire: Wire) -> bool:
    """True if the peer closes the socket and has sent nothing before but heartbeats."""
    try:
        while True:
            kind, channel, payload = wire.read_raw()
            if kind != HEARTBEAT:
                raise AssertionError(f"a frame before the end: {kind} {channel} {payload!r}")
    except Gone:
        return True


def refusal(connection: Connection, data: bytes) -> tuple[Any, ...]:
    """Send bytes that must close something: (scope, code, text, class id, method id)."""
    connection.wire.send(data)
    try:
        while True:
            connection.pump()
    except Closed as closed:
        return closed.args
