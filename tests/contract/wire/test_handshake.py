"""From the first byte to connection.open-ok."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import (
    HEADER,
    greet,
    log_in,
    lost,
    method,
    open_vhost,
    raw,
    refusal,
    start_ok,
    tune_ok,
)
from tests.support.brokers import TestBroker
from tests.support.wire import PROTOCOL_HEADER, Connection
from tests.support.wire_frames import Gone, Wire

Dial = Callable[[], Wire]
Connect = Callable[..., Connection]

WHOLE_HANDSHAKE = (
    PROTOCOL_HEADER
    + start_ok()
    + tune_ok()
    + open_vhost()
    + method(spec.Channel.Open())
    + method(spec.Basic.Qos())
)
ANSWERS = [
    spec.Connection.Start,
    spec.Connection.Tune,
    spec.Connection.OpenOk,
    spec.Channel.OpenOk,
    spec.Basic.QosOk,
]


def test_start_offers_version_0_9_two_mechanisms_and_one_locale(dial: Dial) -> None:
    start = greet(dial())
    assert (start.version_major, start.version_minor) == (0, 9)
    # RabbitMQ names them in the order of a hash table: one node so, another the other way round.
    assert sorted(start.mechanisms.split()) == [b"AMQPLAIN", b"PLAIN"]
    assert start.locales == b"en_US"


def test_server_properties_name_the_product_and_version_clients_look_for(dial: Dial) -> None:
    properties = greet(dial()).server_properties
    assert (properties["product"], properties["version"]) == ("RabbitMQ", "3.10.8")
    for key in ("platform", "cluster_name", "copyright", "information"):
        assert isinstance(properties[key], str), key
        assert properties[key], key


def test_our_server_properties_name_us_in_a_field_of_our_own(
    broker: TestBroker, dial: Dial
) -> None:
    extra = set(greet(dial()).server_properties) - {
        *("capabilities", "cluster_name", "copyright", "information"),
        *("platform", "product", "version"),
    }
    assert extra == ({"warren"} if broker.name == "warren" else set())


def test_server_capabilities_are_these_nine(dial: Dial) -> None:
    assert greet(dial()).server_properties["capabilities"] == {
        "publisher_confirms": True,
        "exchange_exchange_bindings": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "consumer_priorities": True,
        "authentication_failure_close": True,
        "per_consumer_qos": True,
        "direct_reply_to": True,
    }


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param(b"AMQP\x00\x00\x09\x02", id="0-9-2"),
        pytest.param(b"AMQP\x00\x00\x08\x00", id="0-8-0"),
        pytest.param(b"AMQP\x00\x01\x00\x00", id="1.0"),
        pytest.param(b"AMQP\x03\x01\x00\x00", id="1.0-sasl"),
        pytest.param(b"amqp\x00\x00\x09\x01", id="lower-case"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="http"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="tls"),
        pytest.param(bytes(64), id="zeros"),
    ],
)
def test_any_other_protocol_header_is_answered_with_ours_and_closed(
    dial: Dial, greeting: bytes
) -> None:
    wire = dial()
    wire.send(greeting)
    answer = b""
    with pytest.raises((ConnectionError, Gone)):
        while True:
            data = wire.sock.recv(4096)
            if not data:
                raise Gone
            answer += data
    assert answer == PROTOCOL_HEADER


def test_the_header_of_amqp_0_9_is_accepted_as_0_9_1(dial: Dial) -> None:
    wire = dial()
    wire.send(b"AMQP\x01\x01\x00\x09")
    assert isinstance(wire.read().method, spec.Connection.Start)


def test_a_handshake_sent_at_once_is_answered_in_order(dial: Dial) -> None:
    wire = dial()
    wire.send(WHOLE_HANDSHAKE)
    assert [type(wire.read().method) for _ in ANSWERS] == ANSWERS


def test_a_handshake_sent_byte_by_byte_is_answered_in_order(dial: Dial) -> None:
    wire = dial()
    for at in range(len(WHOLE_HANDSHAKE)):
        wire.send(WHOLE_HANDSHAKE[at : at + 1])
    assert [type(wire.read().method) for _ in ANSWERS] == ANSWERS


def test_open_ok_has_no_known_hosts(dial: Dial) -> None:
    wire = dial()
    log_in(wire)
    wire.send(tune_ok() + open_vhost())
    assert wire.read().method.known_hosts == ""


@pytest.mark.parametrize("client_properties", [{}, {"product": "x", "connection_name": "mine"}])
def test_client_properties_are_the_clients_own_business(
    connect: Connect, client_properties: dict[str, str]
) -> None:
    connect(properties=client_properties).channel().sync()


@pytest.mark.parametrize("vhost", ["no-such-vhost", ""])
def test_an_unknown_vhost_is_refused_with_530(dial: Dial, vhost: str) -> None:
    wire = dial()
    log_in(wire)
    wire.send(tune_ok())
    text = f"NOT_ALLOWED - vhost {vhost} not found"
    assert refusal(Connection(wire), open_vhost(vhost)) == ("connection", 530, text, 10, 40)
    with pytest.raises(Gone):
        wire.read()


def test_a_reply_text_over_255_bytes_is_cut_and_ends_with_dots(dial: Dial) -> None:
    wire = dial()
    log_in(wire)
    wire.send(tune_ok() + open_vhost("v" * 255))
    text = f"NOT_ALLOWED - vhost {'v' * 255} not found"
    assert wire.read().method.reply_text == text[:252] + "..."


def test_a_vhost_that_exists_is_opened(
    broker: TestBroker, connect: Connect, name: Callable[[str], str]
) -> None:
    vhost = name("vhost")
    broker.add_vhost(vhost)
    try:
        channel = connect(vhost=vhost).channel()
        refused = channel.refused(spec.Queue.Declare(queue="absent", passive=True))
        assert refused.text == f"NOT_FOUND - no queue 'absent' in vhost '{vhost}'"
    finally:
        broker.delete_vhost(vhost)


def test_what_comes_before_its_turn_costs_the_connection_without_a_word(dial: Dial) -> None:
    wires = {}
    for too_early in (
        open_vhost(),
        tune_ok(),
        method(spec.Connection.Close(200, "bye", 0, 0), 0),
        method(spec.Channel.Open(), 1),
        raw(HEADER, 0, bytes(14)),
        raw(9, 0, b"what"),
    ):
        wires[too_early] = dial()
        greet(wires[too_early])
        wires[too_early].send(too_early)
    assert all(lost(wire) for wire in wires.values())


@pytest.mark.parametrize(
    ("again", "method_id"),
    [
        pytest.param(start_ok(), 11, id="start-ok"),
        pytest.param(method(spec.Connection.SecureOk("x"), 0), 21, id="secure-ok"),
        pytest.param(tune_ok(), 31, id="tune-ok"),
        pytest.param(open_vhost(), 40, id="open"),
        pytest.param(method(spec.Connection.CloseOk(), 0), 51, id="close-ok"),
        pytest.param(method(spec.Connection.Blocked("x"), 0), 60, id="blocked"),
    ],
)
def test_a_connection_method_out_of_place_closes_the_connection(
    connect: Connect, again: bytes, method_id: int
) -> None:
    text = "CHANNEL_ERROR - unexpected method in connection state running"
    assert refusal(connect(), again) == ("connection", 504, text, 10, method_id)


def test_a_heartbeat_is_welcome_before_the_login(dial: Dial) -> None:
    wire = dial()
    greet(wire)
    wire.send(raw(8, 0) + start_ok())
    assert isinstance(wire.read().method, spec.Connection.Tune)


def test_a_socket_that_says_nothing_and_goes_is_forgotten(dial: Dial, connect: Connect) -> None:
    for said in (b"", b"AMQ", PROTOCOL_HEADER, PROTOCOL_HEADER + start_ok()[:20]):
        wire = dial()
        wire.send(said)
        wire.close()
    assert re.match(r"amq\.gen-", connect().channel().declare(exclusive=True).queue)
