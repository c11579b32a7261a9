"""The server's side of a connection: bytes in, bytes out, no socket.

Which code and text answers which mistake is the contract suite's business. Here: that limits are
judged before memory is taken, and the life of a connection state by state.
"""

from __future__ import annotations

import struct
import tracemalloc

import pika.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import spec

from tests.unit.amqp.talk import (
    CHANNEL,
    OPEN,
    answers,
    fed,
    method,
    publish,
    running,
    start_ok,
    tune_ok,
)
from warren.amqp.frames import HEARTBEAT_FRAME, PROTOCOL_HEADER
from warren.amqp.session import ServerSession
from warren.errors import ConnectionForced


# -- limits are judged before memory is taken ----------------------------------------------------
def peak_of(session: ServerSession, data: bytes) -> int:
    tracemalloc.start()
    session.receive(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("kind", [1, 2, 3, 8, 99])
def test_an_announced_frame_over_the_limit_ends_the_connection_at_its_head(kind: int) -> None:
    session, _ = running()

    assert peak_of(session, struct.pack(">BHI", kind, 1, 0xFFFFFFFF) + b"x") < 1 << 16
    assert session.finished
    assert answers(session)[0].reply_code == 501


def test_before_it_has_logged_in_a_peer_may_send_4096_octets_a_frame() -> None:
    inside, _ = fed(PROTOCOL_HEADER, struct.pack(">BHI", 1, 0, 4096) + b"x")
    beyond, _ = fed(PROTOCOL_HEADER, struct.pack(">BHI", 1, 0, 4097) + b"x")

    assert not inside.finished
    assert beyond.finished


def test_a_smaller_frame_max_that_the_client_asked_for_binds_the_client_too() -> None:
    handshake = PROTOCOL_HEADER + start_ok() + tune_ok(frame_max=5000) + OPEN + CHANNEL
    session, _ = fed(handshake)
    session.receive(struct.pack(">BHI", 3, 1, 5001) + b"x")

    assert session.finished


def test_a_body_announced_with_exabytes_takes_no_memory() -> None:
    session, handler = running()
    octets = method(spec.Basic.Publish(routing_key="q"))
    octets += pika.frame.Header(1, 2**62, spec.BasicProperties()).marshal()

    assert peak_of(session, octets) < 1 << 16
    assert handler.log == []


def test_a_body_over_the_limit_is_read_and_not_kept() -> None:
    session, handler = running(max_message_bytes=10_000)
    data = publish("q", bytes(1_000_000), step=100_000)
    peak = 0
    for at in range(0, len(data), 10_000):
        peak = max(peak, peak_of(session, data[at : at + 10_000]))

    assert handler.log == [(1, "too large", 1_000_000), (1, "close")]
    assert peak < 500_000


def test_a_body_at_the_limit_is_taken() -> None:
    session, handler = running(max_message_bytes=10_000)
    session.receive(publish("q", b"x" * 10_000, step=3000))

    assert [entry[4] for entry in handler.log] == [b"x" * 10_000]


def test_empty_body_frames_leave_nothing_behind() -> None:
    session, _ = running()
    session.receive(method(spec.Basic.Publish(routing_key="q")))
    session.receive(pika.frame.Header(1, 5, spec.BasicProperties()).marshal())
    empty = pika.frame.Body(1, b"").marshal() * 1000
    session.receive(empty)

    tracemalloc.start()
    for _ in range(10):
        session.receive(empty)
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < 20_000


def test_a_channel_more_than_allowed_ends_the_connection() -> None:
    session, _ = fed(PROTOCOL_HEADER + start_ok() + tune_ok(channel_max=2) + OPEN)
    session.receive(b"".join(method(spec.Channel.Open(), number) for number in (1, 2, 3)))

    last = answers(session)[-1]
    assert (last.reply_code, session.state) == (530, "closing")


# -- the life of a connection --------------------------------------------------------------------
def test_the_handshake_step_by_step() -> None:
    session, handler = fed(PROTOCOL_HEADER)
    (start,) = answers(session)
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.server_properties == {"product": "fake"}
    assert start.mechanisms == b"PLAIN ASK"

    session.receive(start_ok())
    (tune,) = answers(session)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)

    session.receive(tune_ok(100, 8192, 7))
    assert answers(session) == []
    assert (session.channel_max, session.frame_max, session.heartbeat_s) == (100, 8192, 7)

    session.receive(OPEN)
    assert isinstance(answers(session)[0], spec.Connection.OpenOk)
    assert handler.log[-1] == "opened"


@pytest.mark.parametrize(
    "header", [b"AMQP\x00\x01\x00\x00", b"GET / HT", b"\x00" * 8, b"AMQP\x03\x01\x00\x00"]
)
def test_another_protocol_is_answered_with_ours_and_the_end(header: bytes) -> None:
    session, _ = fed(header + b"and more")

    assert session.data_to_send() == PROTOCOL_HEADER
    assert session.finished


def test_a_mechanism_may_ask_back() -> None:
    session, handler = fed(PROTOCOL_HEADER, start_ok("ASK", ""))
    assert answers(session)[1].challenge == b"who?"

    session.receive(method(spec.Connection.SecureOk("\0guest\0guest"), 0))
    assert isinstance(answers(session)[0], spec.Connection.Tune)
    assert len(handler.log) == 2


@pytest.mark.parametrize("told", [True, False])
def test_a_failed_login_is_told_only_to_those_who_asked_to_be_told(told: bool) -> None:
    wrong = start_ok("PLAIN", "\0guest\0wrong", authentication_failure_close=told)
    session, _ = fed(PROTOCOL_HEADER, wrong)

    _, *rest = answers(session)
    assert [answer.reply_code for answer in rest] == [403] * told
    assert session.finished
    assert session.silent_close


def test_after_a_close_of_ours_everything_but_its_answer_is_ignored() -> None:
    session, handler = running()
    session.close(ConnectionForced("enough"))
    assert answers(session)[0].reply_code == 320
    assert handler.log == [(1, "close"), "close"]

    session.receive(publish("q", b"late") + method(spec.Queue.Declare(queue="late")))
    assert session.state == "closing"
    session.receive(method(spec.Connection.CloseOk(), 0))
    assert session.finished
    assert handler.log == [(1, "close"), "close"]


def test_two_closes_that_cross_are_both_answered() -> None:
    session, _ = running()
    session.close(ConnectionForced("enough"))
    session.receive(method(spec.Connection.Close(200, "bye", 0, 0), 0))

    kinds = [type(answer) for answer in answers(session)]
    assert kinds == [spec.Connection.Close, spec.Connection.CloseOk]


def test_a_lost_socket_closes_channels_first() -> None:
    session, handler = running()
    session.receive(method(spec.Channel.Open(), 2))
    session.lost()

    assert sorted(handler.log[:2]) == [(1, "close"), (2, "close")]
    assert handler.log[2:] == ["close"]
    assert session.finished


def test_a_lost_socket_closes_a_channel_that_waits_for_content() -> None:
    session, handler = running()
    session.receive(method(spec.Basic.Publish(routing_key="q")))
    session.lost()

    assert handler.log == [(1, "close"), "close"]


# -- channels ------------------------------------------------------------------------------------
def test_a_refusal_closes_the_channel_and_says_for_what() -> None:
    session, handler = running()
    session.receive(method(spec.Queue.Delete(queue="q")))

    (close,) = answers(session)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 50, 40)
    assert close.reply_text == "PRECONDITION_FAILED - in use"
    assert handler.log[-1] == (1, "close")


def test_a_closed_channel_hears_nothing_until_its_close_is_answered() -> None:
    session, handler = running()
    session.receive(method(spec.Queue.Delete(queue="q")))
    handler.log.clear()
    session.receive(publish("q", b"unheard") + method(spec.Queue.Declare(queue="unheard")))
    assert handler.log == []

    session.receive(method(spec.Channel.CloseOk()) + CHANNEL)
    session.receive(publish("q", b"heard"))
    assert [entry[4] for entry in handler.log] == [b"heard"]


def test_contents_of_different_channels_may_be_interleaved() -> None:
    session, handler = running()
    session.receive(method(spec.Channel.Open(), 2))
    first, second = publish("a", b"first"), publish("b", b"second", 2)
    cut = len(method(spec.Basic.Publish(exchange="ex", routing_key="a")))
    session.receive(first[:cut] + second[:cut] + first[cut:] + second[cut:])

    assert [(entry[0], entry[4]) for entry in handler.log] == [(1, b"first"), (2, b"second")]


# -- heartbeats ----------------------------------------------------------------------------------
def test_a_heartbeat_is_sent_when_nothing_else_was() -> None:
    session, _ = running()

    session.beat(wrote=True)
    assert session.data_to_send() == b""
    session.beat(wrote=False)
    assert session.data_to_send() == HEARTBEAT_FRAME


def test_a_peer_that_is_silent_for_two_intervals_is_given_up() -> None:
    session, _ = running()
    session.beat(wrote=True)  # of what came before

    assert [session.beat(wrote=True) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("data", [HEARTBEAT_FRAME, HEARTBEAT_FRAME[:1]], ids=["whole", "octet"])
def test_any_octet_shows_that_the_peer_lives(data: bytes) -> None:
    session, _ = running()
    for _ in range(4):
        session.receive(data)
        assert all(session.beat(wrote=True) for _ in range(3))


# -- no mistake goes unanswered ------------------------------------------------------------------
@given(st.binary(max_size=200))
def test_any_bytes_behind_the_handshake_are_survived(data: bytes) -> None:
    session, _ = running()
    session.receive(data)
    session.receive(data)
    session.lost()

    assert session.finished


@given(st.binary(max_size=60))
def test_any_bytes_before_the_login_are_survived(data: bytes) -> None:
    session, handler = fed(PROTOCOL_HEADER, data, start_ok())
    session.lost()

    assert handler.log[-1] == "close"
