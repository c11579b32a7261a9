"""Who may come in, and what those hear who may not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import field, greet, lost, sized, start_ok
from tests.support.wire import Connection
from tests.support.wire_frames import Wire

Dial = Callable[[], Wire]
Connect = Callable[..., Connection]


def amqplain(user: bytes, password: bytes) -> bytes:
    return field("LOGIN", "S", sized(user)) + field("PASSWORD", "S", sized(password))


@pytest.mark.parametrize(
    "login",
    [
        pytest.param(start_ok(b"\0guest\0guest"), id="PLAIN"),
        pytest.param(start_ok(amqplain(b"guest", b"guest"), mechanism="AMQPLAIN"), id="AMQPLAIN"),
        pytest.param(start_ok(locale="xx_XX"), id="locale-not-offered"),
    ],
)
def test_guest_may_come_in(dial: Dial, login: bytes) -> None:
    wire = dial()
    greet(wire)
    wire.send(login)
    assert isinstance(wire.read().method, spec.Connection.Tune)


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        pytest.param("PLAIN", b"\0guest\0wrong", id="wrong-password"),
        pytest.param("PLAIN", b"\0guest\0", id="empty-password"),
        pytest.param("PLAIN", b"\0nobody\0guest", id="unknown-user"),
        pytest.param("AMQPLAIN", amqplain(b"guest", b"wrong"), id="AMQPLAIN"),
    ],
)
def test_a_client_that_announced_it_hears_403(dial: Dial, mechanism: str, response: bytes) -> None:
    wire = dial()
    greet(wire)
    wire.send(start_ok(response, mechanism=mechanism))
    close = wire.read().method
    assert isinstance(close, spec.Connection.Close)
    assert (close.reply_code, close.class_id, close.method_id) == (403, 0, 0)
    assert close.reply_text == (
        "ACCESS_REFUSED - Login was refused using authentication mechanism"
        f" {mechanism}. For details see the broker logfile."
    )


def test_the_socket_is_closed_after_a_refused_login(dial: Dial) -> None:
    wires = []
    for answer in (b"", b"\x01\0\0\0\0\0\4\0\x0a\0\x33\xce"):  # nothing, or close-ok
        wires.append(dial())
        greet(wires[-1])
        wires[-1].send(start_ok(b"\0guest\0wrong"))
        assert wires[-1].read().method.reply_code == 403
        wires[-1].send(answer)
    assert all(lost(wire) for wire in wires)


WRONG = b"\0guest\0wrong"
UNHEARD = {
    "announced nothing": start_ok(WRONG, client_properties={}),
    "announced it as false": start_ok(
        WRONG, client_properties={"capabilities": {"authentication_failure_close": False}}
    ),
    "unknown mechanism": start_ok(mechanism="NTLM"),
    "mechanism not offered": start_ok(mechanism="EXTERNAL"),
    "no mechanism": start_ok(mechanism=""),
    "PLAIN without zeros": start_ok(b"guest"),
    "PLAIN with an authorization id": start_ok(b"admin\0guest\0guest"),
    "PLAIN with too much": start_ok(b"\0guest\0guest\0more"),
    "PLAIN with nothing": start_ok(b""),
    "AMQPLAIN without a password": start_ok(
        field("LOGIN", "S", sized(b"guest")), mechanism="AMQPLAIN"
    ),
    "AMQPLAIN with garbage": start_ok(b"garbage", mechanism="AMQPLAIN"),
}


def test_all_other_failures_cost_the_connection_without_a_word(dial: Dial) -> None:
    wires = {}
    for reason, login in UNHEARD.items():
        wires[reason] = dial()
        greet(wires[reason])
        wires[reason].send(login)
    assert {reason: lost(wire) for reason, wire in wires.items()} == dict.fromkeys(UNHEARD, True)


@pytest.mark.parametrize("secret", ["another", ""])
def test_update_secret_is_answered_and_changes_nothing_for_guest(
    connect: Connect, secret: str
) -> None:
    connection = connect()
    channel = connection.channel()
    connection.wire.send_method(0, spec.Connection.UpdateSecret(secret, "it is time"))
    connection.expect(spec.Connection.UpdateSecretOk)
    channel.sync()
    connect().channel().sync()
