"""The server's side of a connection: bytes in, bytes out, no socket.

Which code and text answers which mistake is the contract suite's business. Here: that nothing
depends on how the bytes were cut, that limits are judged before memory is taken, and the life of
a connection state by state.
"""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pika.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import spec

from warren.amqp import methods as m
from warren.amqp.content import body_of, header_of
from warren.amqp.frames import HEARTBEAT_FRAME, PROTOCOL_HEADER
from warren.amqp.handlers import PublishAgain
from warren.amqp.session import ServerSession
from warren.amqp.tables import Table
from warren.errors import AccessRefused, ConnectionForced, NotAllowed, PreconditionFailed


class FakeChannel:
    """Writes down what it is asked to do."""

    def __init__(self, number: int, log: list[Any]) -> None:
        self.number, self.log = number, log

    def method(self, method: m.Method) -> None:
        self.log.append((self.number, method))
        if isinstance(method, m.QueueDelete):
            raise PreconditionFailed("in use")

    def publish(
        self, arguments: bytes, content: bytes, header_size: int, body_size: int, flags: int
    ) -> None:
        header = header_of(content)
        assert (header_size, body_size) == (len(header) + 8, len(body_of(content)))
        assert flags == int.from_bytes(header[12:14], "big")
        self.log.append((self.number, "publish", arguments, header, body_of(content)))
        if b"refused" in arguments:
            raise PreconditionFailed("refused")

    def again(
        self, arguments: bytes, properties: bytes, header_size: int, flags: int
    ) -> PublishAgain | None:
        if b"looked at" in arguments:
            return None
        left = iter(range(3))

        def publish(content: bytes, body_size: int) -> bool:
            assert content[19 : header_size - 1] == properties
            self.publish(arguments, content, header_size, body_size, flags)
            return next(left, None) is not None  # such a run is over after some messages

        return publish

    def too_large(self, size: int) -> None:
        self.log.append((self.number, "too large", size))
        raise PreconditionFailed(f"{size} is too large")

    def ack(self, tag: int, multiple: int) -> None:
        self.log.append((self.number, "ack", tag, bool(multiple)))

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self.log.append((self.number, "close"))


class FakeHandler:
    """A connection's other half, which lets guest in and makes fake channels."""

    server_properties = Table({"product": "fake"})
    mechanisms = "PLAIN ASK"

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.half_bytes = 0

    def authenticate(self, mechanism: str, response: bytes) -> bytes | None:
        self.log.append(("authenticate", mechanism, response))
        if mechanism == "ASK" and not response:
            return b"who?"
        if response != b"\0guest\0guest":
            raise AccessRefused("no")
        return None

    def open(self, virtual_host: str) -> None:
        if virtual_host != "/":
            raise NotAllowed(f"vhost {virtual_host} not found")

    def opened(self) -> None:
        self.log.append("opened")

    def update_secret(self, secret: bytes) -> None:
        self.log.append(("secret", secret))

    def channel(self, number: int) -> FakeChannel:
        return FakeChannel(number, self.log)

    def published(self) -> None: ...

    def half_received(self, size: int) -> None:
        self.half_bytes += size

    def close(self) -> None:
        self.log.append("close")


# -- what the client says ------------------------------------------------------------------------
def method(value: Any, channel: int = 1) -> bytes:
    return pika.frame.Method(channel, value).marshal()


def start_ok(
    mechanism: str = "PLAIN", response: str = "\0guest\0guest", **capabilities: bool
) -> bytes:
    properties = {"product": "test", "capabilities": capabilities}
    return method(spec.Connection.StartOk(properties, mechanism, response, "en_US"), 0)


def tune_ok(channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 60) -> bytes:
    return method(spec.Connection.TuneOk(channel_max, frame_max, heartbeat), 0)


def publish(key: str, body: bytes, channel: int = 1, step: int = 4000, **properties: Any) -> bytes:
    octets = method(spec.Basic.Publish(exchange="ex", routing_key=key), channel)
    octets += pika.frame.Header(channel, len(body), spec.BasicProperties(**properties)).marshal()
    for at in range(0, len(body), step):
        octets += pika.frame.Body(channel, body[at : at + step]).marshal()
    return octets


OPEN = method(spec.Connection.Open("/"), 0)
HANDSHAKE = PROTOCOL_HEADER + start_ok() + tune_ok() + OPEN
CHANNEL = method(spec.Channel.Open())
CONVERSATION = b"".join(
    (
        HANDSHAKE,
        CHANNEL,
        method(spec.Queue.Declare(queue="q", durable=True, arguments={"x-max-length": 5})),
        HEARTBEAT_FRAME,
        publish("one", b"a body"),
        publish("two", b"b" * 40, step=9, delivery_mode=2, headers={"n": 1}),
        publish("three", b""),
        method(spec.Basic.Ack(7, True)),
        method(spec.Channel.Open(), 2),
        publish("refused", b"closes its channel", 2),
        publish("lost", b"is not heard", 2),
        method(spec.Channel.CloseOk(), 2),
        method(spec.Channel.Open(), 2),
        method(spec.Queue.Delete(queue="q")),
        method(spec.Channel.CloseOk()),
        method(spec.Channel.Close(200, "bye", 0, 0), 2),
        method(spec.Connection.Close(200, "bye", 0, 0), 0),
    )
)


# -- helpers -------------------------------------------------------------------------------------
def fed(*pieces: bytes, **options: Any) -> tuple[ServerSession, FakeHandler]:
    handler = FakeHandler()
    session = ServerSession(handler, **options)
    for piece in pieces:
        session.receive(piece)
    return session, handler


def running(**options: Any) -> tuple[ServerSession, FakeHandler]:
    """A session behind the handshake, with channel 1 open and nothing left to send."""
    session, handler = fed(HANDSHAKE + CHANNEL, **options)
    session.data_to_send()
    handler.log.clear()
    return session, handler


def answers(session: ServerSession) -> list[Any]:
    """The methods that the session wants to send."""
    data, found = session.data_to_send(), []
    while data:
        used, value = pika.frame.decode_frame(data)
        assert used, data
        found.append(value.method if isinstance(value, pika.frame.Method) else value)
        data = data[used:]
    return found


def effect(pieces: Iterable[bytes]) -> tuple[list[Any], bytes, str]:
    session, handler = fed(*pieces)
    return handler.log, session.data_to_send(), session.state


# -- however the bytes are cut -------------------------------------------------------------------
WHOLE = effect([CONVERSATION])


def test_the_conversation_does_what_it_says() -> None:
    log, sent, state = WHOLE
    published = [entry[4] for entry in log if entry[1:2] == ("publish",)]

    assert published == [b"a body", b"b" * 40, b"", b"closes its channel"]
    assert (1, "ack", 7, True) in log
    assert log[-1] == "close"
    assert b"PRECONDITION_FAILED - in use" in sent
    assert state == "closed"


def test_byte_by_byte_has_the_same_effect() -> None:
    assert effect(CONVERSATION[at : at + 1] for at in range(len(CONVERSATION))) == WHOLE


@pytest.mark.parametrize("start", range(0, len(CONVERSATION), 64))
def test_a_cut_at_any_byte_waits_for_the_rest(start: int) -> None:
    for cut in range(start, min(start + 64, len(CONVERSATION))):
        assert effect([CONVERSATION[:cut], CONVERSATION[cut:]]) == WHOLE


@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_any_split_has_the_same_effect(random: random.Random, pieces: int) -> None:
    cuts = sorted(random.randrange(len(CONVERSATION)) for _ in range(pieces))
    bounds = zip([0, *cuts], [*cuts, len(CONVERSATION)], strict=True)

    assert effect(CONVERSATION[start:stop] for start, stop in bounds) == WHOLE


def test_a_frame_without_its_last_octet_has_no_effect_yet() -> None:
    session, handler = running()
    declare = method(spec.Queue.Declare(queue="q"))
    session.receive(declare[:-1])
    assert handler.log == []

    session.receive(declare[-1:])
    assert [entry[1].queue for entry in handler.log] == ["q"]


def _broken(octets: bytes, *places: int) -> bytes:
    changed = bytearray(octets)
    for place in places:
        changed[place] ^= 0xFF
    return bytes(changed)


ALIKE = publish("run", b"a body of one size", delivery_mode=2)
IN_A_RUN = [
    ALIKE,
    ALIKE,
    ALIKE,
    publish("run", b"a longer body than the others", delivery_mode=2),
    publish("run", b"s", delivery_mode=2),
    publish("run", b"", delivery_mode=2),
    publish("run", b"x" * 90, delivery_mode=2, step=30),
    publish("run", b"other properties", delivery_mode=1),
    publish("run", b"no properties"),
    publish("looked at", b"one by one"),
    publish("other", b"another way"),
    publish("run", b"another channel", 2, delivery_mode=2),
    publish("refused", b"closes the channel"),
    method(spec.Basic.Ack(7, False)),
    method(spec.Channel.CloseOk()),
    method(spec.Channel.Close(200, "bye", 0, 0)),
    method(spec.Channel.Open()),
    HEARTBEAT_FRAME,
    _broken(ALIKE, -1),
    _broken(ALIKE, ALIKE.index(b"\xce\x03")),
]


@given(st.lists(st.sampled_from(IN_A_RUN), max_size=20), st.data())
def test_a_run_of_like_messages_has_the_effect_of_each_by_itself(
    frames: list[bytes], data: st.DataObject
) -> None:
    talk = b"".join((HANDSHAKE, CHANNEL, method(spec.Channel.Open(), 2), *frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(talk)), max_size=5)))
    pieces = [talk[a:b] for a, b in zip([0, *cuts], [*cuts, len(talk)], strict=True)]

    in_a_run, one_by_one = effect(pieces), effect(talk[at : at + 1] for at in range(len(talk)))
    # Channels that end with their connection end in any order.
    assert sorted(map(repr, in_a_run[0])) == sorted(map(repr, one_by_one[0]))
    assert _published(in_a_run[0]) == _published(one_by_one[0])
    assert in_a_run[1:] == one_by_one[1:]


def _published(log: list[Any]) -> list[Any]:
    return [entry for entry in log if entry[1] == "publish"]


def test_messages_that_differ_in_their_bodies_alone_are_a_run() -> None:
    session, handler = running()
    bodies = [b"one", b"two", b"three", b"four"]
    session.receive(b"".join(publish("run", body, delivery_mode=2) for body in bodies))

    assert session.run is not None
    assert [entry[4] for entry in handler.log] == bodies


def test_a_run_ends_with_its_channel() -> None:
    session, handler = running()
    session.receive(ALIKE * 3 + method(spec.Queue.Delete(queue="q")) + ALIKE)
    assert len(_published(handler.log)) == 3

    session.receive(method(spec.Channel.CloseOk()) + CHANNEL + ALIKE)
    assert len(_published(handler.log)) == 4


def test_messages_with_other_keys_are_none() -> None:
    session, _ = running()
    session.receive(b"".join(publish(key, b"body") for key in "abcabc"))

    assert session.run is None


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
