"""The client's session against a server written out by hand: no socket, no clock."""

from __future__ import annotations

from typing import Any

import pytest

from warren.amqp import methods as m
from warren.amqp.client import ClientSession
from warren.amqp.content import encode_content, encode_header
from warren.amqp.frames import HEARTBEAT_FRAME, METHOD, PROTOCOL_HEADER, encode_frame
from warren.amqp.login import Login, external, plain
from warren.amqp.tables import Table
from warren.errors import (
    AccessRefused,
    ConnectionForced,
    ConnectionLost,
    NoChannelLeft,
    NotAllowed,
    NotFound,
    ProtocolError,
    WarrenError,
)

NO_PROPERTIES = b"\x00\x00"


class Recorder:
    """A channel, or a connection, that notes what it is told."""

    run = None

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments: self.told.append((name, *arguments))


def said(method: m.Method, channel: int = 0) -> bytes:
    return encode_frame(METHOD, channel, method.encode())


def content(method: m.Method, body: bytes, channel: int = 1, frame_max: int = 131_072) -> bytes:
    header = encode_header(len(body), NO_PROPERTIES)
    return said(method, channel) + encode_content(channel, header, body, frame_max)


START = m.ConnectionStart(0, 9, Table({"product": "Test"}), b"PLAIN AMQPLAIN", b"en_US")
TUNE = m.ConnectionTune(100, 8192, 30)
OPEN_OK = m.ConnectionOpenOk()
DELIVER = m.BasicDeliver("tag", 7, True, "logs", "a.b")


def methods(data: bytes) -> list[m.Method]:
    """The methods in what a session sends."""
    found = []
    while data:
        size = int.from_bytes(data[3:7], "big")
        if data[0] == METHOD:
            found.append(m.decode_method(data[7 : 7 + size]))
        data = data[8 + size :]
    return found


def running(login: Login | None = None, **options: Any) -> ClientSession:
    session = ClientSession(login or plain("ann", "secret"), **options)
    session.receive(said(START) + said(TUNE) + said(OPEN_OK), 100.0)
    assert session.state == "running"
    session.data_to_send(100.0)
    return session


def opened(session: ClientSession) -> Recorder:
    channel = Recorder()
    number = session.open_channel(channel)  # type: ignore[arg-type]
    session.receive(said(m.ChannelOpenOk(), number))
    session.data_to_send()
    channel.told.clear()
    return channel


# -- the handshake -------------------------------------------------------------------------------
def test_the_handshake_says_who_we_are_and_takes_the_lower_limits() -> None:
    session = ClientSession(plain("ann", "secret"), vhost="shop", heartbeat_s=60)
    assert session.data_to_send() == PROTOCOL_HEADER

    session.receive(said(START))
    [start_ok] = methods(session.data_to_send())
    assert isinstance(start_ok, m.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.response) == ("PLAIN", b"\0ann\0secret")
    assert start_ok.client_properties["capabilities"]["authentication_failure_close"] is True

    session.receive(said(TUNE))
    tune_ok, open_ = methods(session.data_to_send())
    assert tune_ok == m.ConnectionTuneOk(100, 8192, 30)
    assert open_ == m.ConnectionOpen("shop")

    session.receive(said(OPEN_OK))
    assert session.state == "running"
    assert session.server_properties["product"] == "Test"


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_a_handshake_cut_anywhere_goes_on_with_the_rest(cut: int) -> None:
    session = ClientSession(plain("ann", "secret"))
    whole = said(START) + said(TUNE) + said(OPEN_OK)
    session.receive(whole[:cut])
    session.receive(whole[cut:])
    assert session.state == "running"


@pytest.mark.parametrize(
    ("ours", "theirs", "agreed"), [(60, 30, 30), (10, 60, 10), (0, 60, 0), (60, 0, 60)]
)
def test_the_lower_heartbeat_is_used_and_none_if_we_want_none(
    ours: int, theirs: int, agreed: int
) -> None:
    session = ClientSession(plain("a", "b"), heartbeat_s=ours)
    session.receive(said(START) + said(m.ConnectionTune(0, 0, theirs)))
    assert session.heartbeat_s == agreed


def test_external_says_nothing_but_that() -> None:
    session = ClientSession(external())
    session.receive(said(m.ConnectionStart(0, 9, Table(), b"EXTERNAL", b"en_US")))
    [start_ok] = methods(session.data_to_send()[8:])
    assert isinstance(start_ok, m.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.response) == ("EXTERNAL", b"")


def test_a_mechanism_that_is_not_offered_ends_it() -> None:
    session = ClientSession(external())
    session.receive(said(START))
    assert session.finished
    assert "EXTERNAL, only by PLAIN, AMQPLAIN" in str(session.failure)


@pytest.mark.parametrize(
    ("close", "state", "error"),
    [
        (m.ConnectionClose(403, "ACCESS_REFUSED - Login was refused"), "tuning", AccessRefused),
        (m.ConnectionClose(530, "NOT_ALLOWED - vhost x not found"), "opening", NotAllowed),
    ],
)
def test_a_refusal_names_the_state_it_came_in(
    close: m.Method, state: str, error: type[WarrenError]
) -> None:
    session = ClientSession(plain("ann", "wrong"))
    session.receive(said(START) + (said(TUNE) if state == "opening" else b"") + said(close))
    assert session.failed_in == state
    assert isinstance(session.failure, error)


def test_a_password_is_in_no_repr() -> None:
    assert "secret" not in repr(plain("ann", "secret"))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"AMQP\x00\x01\x00\x00", "1.0.0"),
        (b"\x15\x03\x03\x00\x02", "TLS"),
        (b"HTTP/1.1 400", "web server"),
        (b"whatever", "does not speak AMQP"),
    ],
)
def test_something_else_than_amqp_is_called_by_its_name(data: bytes, word: str) -> None:
    session = ClientSession(plain("a", "b"))
    session.receive(data[:3])
    session.receive(data[3:])
    assert word in str(session.failure)


# -- channels and contents -----------------------------------------------------------------------
@pytest.mark.parametrize("body", [b"", b"x", b"y" * 20_000], ids=len)
@pytest.mark.parametrize("step", [1, 10, 1_000_000])
def test_a_delivery_arrives_whole_however_it_is_cut(body: bytes, step: int) -> None:
    session = running()
    channel = opened(session)
    data = content(DELIVER, body, frame_max=8192)
    for at in range(0, len(data), step):
        session.receive(data[at : at + step])
    route = b"\x04logs\x03a.b"
    assert channel.told == [("deliver", b"tag", 7, True, route, NO_PROPERTIES, body)]


@pytest.mark.parametrize("step", [1000, 1_000_000])
def test_a_content_header_may_be_larger_than_a_frame(step: int) -> None:
    session = running()
    channel = opened(session)
    properties = NO_PROPERTIES + b"what the broker has added" * 1000
    data = said(DELIVER, 1) + encode_content(1, encode_header(1, properties), b"x", 8192)
    for at in range(0, len(data), step):
        session.receive(data[at : at + step])
    assert channel.told[0][-2:] == (properties, b"x")


def test_contents_of_two_channels_may_be_mixed() -> None:
    session = running()
    one, two = opened(session), opened(session)
    first = content(DELIVER, b"for one", 1)
    method = len(said(DELIVER, 1))
    session.receive(first[:method] + content(DELIVER, b"for two", 2) + first[method:])
    assert one.told[0][-1] == b"for one"
    assert two.told[0][-1] == b"for two"


def test_got_and_returned_messages_come_with_their_method() -> None:
    session = running()
    channel = opened(session)
    got = m.BasicGetOk(1, False, "", "q", 3)
    returned = m.BasicReturn(312, "NO_ROUTE", "", "q")
    session.receive(content(got, b"a") + content(returned, b"b"))
    assert channel.told == [
        ("content", got, NO_PROPERTIES, b"a"),
        ("content", returned, NO_PROPERTIES, b"b"),
    ]


def test_confirms_are_told_as_they_come() -> None:
    session = running()
    channel = opened(session)
    session.receive(said(m.BasicAck(5, True), 1) + said(m.BasicNack(6, False, False), 1))
    assert channel.told == [("confirm", 5, True, True), ("confirm", 6, False, False)]


def test_a_channel_s_refusal_costs_that_channel_only() -> None:
    session = running()
    one, two = opened(session), opened(session)
    close = m.ChannelClose(404, "NOT_FOUND - no queue 'x' in vhost '/'", 50, 10)
    session.receive(said(close, 1) + said(m.BasicQosOk(), 2))

    [(word, refusal)] = one.told
    assert word == "closed"
    assert isinstance(refusal, NotFound)
    assert (refusal.kind, refusal.name, refusal.vhost) == ("queue", "x", "/")
    assert methods(session.data_to_send()) == [m.ChannelCloseOk()]
    assert two.told == [("method", m.BasicQosOk())]


def test_what_still_comes_for_a_channel_that_we_close_is_thrown_away() -> None:
    session = running()
    channel = opened(session)
    whole = content(DELIVER, b"x" * 100)
    session.receive(whole[:50])
    session.close_channel(1)
    session.receive(whole[50:] + content(DELIVER, b"y"))
    assert channel.told == []
    session.receive(said(m.ChannelCloseOk(), 1))
    assert channel.told == [("closed", None)]
    assert session.state == "running"


def test_both_sides_closing_a_channel_at_once_is_no_quarrel() -> None:
    session = running()
    channel = opened(session)
    session.close_channel(1)
    session.data_to_send()
    session.receive(said(m.ChannelClose(404, "NOT_FOUND - x"), 1))
    assert methods(session.data_to_send()) == [m.ChannelCloseOk()]
    session.receive(said(m.ChannelCloseOk(), 1))
    assert channel.told == [("closed", None)]


def test_a_number_is_used_again_only_after_close_ok() -> None:
    session = running(channel_max=2)
    opened(session)
    opened(session)
    session.close_channel(1)
    with pytest.raises(NoChannelLeft):
        session.open_channel(Recorder())  # type: ignore[arg-type]
    session.receive(said(m.ChannelCloseOk(), 1))
    assert session.open_channel(Recorder()) == 1  # type: ignore[arg-type]


# -- the connection as a whole -------------------------------------------------------------------
def test_blocked_and_unblocked_are_told() -> None:
    handler = Recorder()
    session = running(handler=handler)
    session.receive(said(m.ConnectionBlocked("low on memory")) + said(m.ConnectionUnblocked()))
    assert handler.told[1:] == [("blocked", "low on memory"), ("unblocked",)]


def test_the_broker_s_close_is_answered_and_told_to_everybody() -> None:
    handler = Recorder()
    session = running(handler=handler)
    channel = opened(session)
    session.receive(said(m.ConnectionClose(320, "CONNECTION_FORCED - maintenance")))

    assert methods(session.data_to_send()) == [m.ConnectionCloseOk()]
    assert session.finished
    assert isinstance(session.failure, ConnectionForced)
    assert channel.told == [("lost", session.failure)]
    assert handler.told[-1] == ("closed", session.failure)


def test_our_close_waits_for_close_ok_and_ignores_the_rest() -> None:
    session = running()
    channel = opened(session)
    session.close()
    session.receive(content(DELIVER, b"late"))
    assert not session.finished
    session.receive(said(m.ConnectionCloseOk()))
    assert session.finished
    assert session.failure is None
    assert channel.told == [("lost", None)]


def test_a_lost_socket_is_told_once() -> None:
    handler = Recorder()
    session = running(handler=handler)
    error = ConnectionLost("here", "reset")
    session.lost(error)
    session.lost(error)
    session.receive(b"anything")
    assert handler.told == [("opened",), ("closed", error)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0b\x00",  # wrong end
        b"\x01\x00\x01\x00\x00\x20\x01",  # too large
        b"\x02\x00\x01\x00\x10\x20\x01",  # too large for a content header, too
        encode_frame(METHOD, 0, b"\x00\x63\x00\x01"),  # no such method
        encode_frame(METHOD, 1, b"\x00\x3c\x00\x0b\x01"),  # too long for its method
        encode_frame(METHOD, 9, m.BasicQosOk().encode()),  # channel not open
        encode_frame(3, 1, b"body"),  # body out of turn
        encode_frame(METHOD, 0, START.encode()),  # method out of turn
        said(DELIVER, 1) + said(DELIVER, 1),  # method inside a content
    ],
)
def test_a_broker_that_breaks_the_protocol_is_told_so_and_left(data: bytes) -> None:
    session = running()
    opened(session)
    session.receive(data)
    assert session.finished
    assert isinstance(session.failure, ProtocolError)
    [close] = methods(session.data_to_send())
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 505


# -- heartbeats ----------------------------------------------------------------------------------
def test_a_silent_client_beats_twice_an_interval() -> None:
    session = running()  # 30 s, all quiet since 100.0
    assert session.next_deadline() == 115.0
    assert session.tick(114.9)
    assert session.data_to_send(114.9) == b""
    assert session.tick(115.0)
    assert session.data_to_send(115.0) == HEARTBEAT_FRAME
    assert session.next_deadline() == 130.0


def test_a_silent_broker_is_given_up_after_two_intervals() -> None:
    session = running()
    session.receive(HEARTBEAT_FRAME, 120.0)
    assert session.tick(179.9)
    assert not session.tick(180.0)


def test_without_heartbeats_nothing_is_due() -> None:
    session = running(heartbeat_s=0)
    assert session.next_deadline() is None
    assert session.tick(1e9)
    assert session.data_to_send() == b""
