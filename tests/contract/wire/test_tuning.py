"""channel-max, frame-max: what is offered, what a client may choose, what comes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import (
    BODY,
    body,
    greet,
    header,
    log_in,
    lost,
    method,
    open_vhost,
    publish,
    raw,
    refusal,
    start_ok,
    tune_ok,
)
from tests.support.wire import Connection
from tests.support.wire_frames import Wire

Dial = Callable[[], Wire]
Connect = Callable[..., Connection]


def test_tune_offers_2047_channels_frames_of_128_kib_and_a_heartbeat_a_minute(
    connect: Connect,
) -> None:
    tune = connect().tune
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)


@pytest.mark.parametrize(
    "choice",
    [
        pytest.param({"channel_max": 1, "frame_max": 4096}, id="smallest"),
        pytest.param({"channel_max": 2047, "frame_max": 131072}, id="as-offered"),
        pytest.param({"heartbeat": 65535}, id="longer-heartbeat"),
    ],
)
def test_a_client_may_choose_within_the_limits(connect: Connect, choice: dict[str, int]) -> None:
    connect(**choice).channel().sync()


def test_a_choice_beyond_the_limits_costs_the_connection_without_a_word(dial: Dial) -> None:
    wires = []
    for choice in (
        {"channel_max": 0},
        {"channel_max": 2048},
        {"channel_max": 65535},
        {"frame_max": 0},
        {"frame_max": 4095},
        {"frame_max": 131073},
    ):
        wires.append(dial())
        log_in(wires[-1])
        wires[-1].send(tune_ok(**choice) + open_vhost())
    assert all(lost(wire) for wire in wires)


def test_all_2047_channels_can_be_opened_and_not_one_more(connect: Connect) -> None:
    connection = connect()
    opened = connection.wire
    opened.send(b"".join(method(spec.Channel.Open(), number) for number in range(1, 2048)))
    answers = [opened.read() for _ in range(2047)]
    assert all(isinstance(answer.method, spec.Channel.OpenOk) for answer in answers)
    assert {answer.channel_number for answer in answers} == set(range(1, 2048))
    text = (
        "NOT_ALLOWED - number of channels opened (2047) has reached"
        " the negotiated channel_max (2047)"
    )
    refused = refusal(connection, method(spec.Channel.Open(), 2048))
    assert refused == ("connection", 530, text, 0, 0)


def test_channel_max_counts_channels_and_does_not_limit_their_numbers(connect: Connect) -> None:
    connection = connect(channel_max=2)
    connection.channel(7).sync()
    connection.channel(65535).sync()
    text = "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    assert refusal(connection, method(spec.Channel.Open(), 1)) == ("connection", 530, text, 0, 0)


def test_any_frame_on_one_channel_too_many_is_refused_with_530(connect: Connect) -> None:
    connection = connect(channel_max=1)
    connection.channel(1)
    text = "NOT_ALLOWED - number of channels opened (1) has reached the negotiated channel_max (1)"
    assert refusal(connection, method(spec.Basic.Qos(), 2)) == ("connection", 530, text, 0, 0)


def test_a_closed_channel_makes_room_for_another(connect: Connect) -> None:
    connection = connect(channel_max=1)
    connection.channel(1).close()
    channel = connection.channel(2)
    channel.refused(spec.Queue.Declare(queue="absent", passive=True))
    connection.channel(3).sync()


def test_deliveries_are_cut_to_the_frame_max_the_client_chose(
    connect: Connect, name: Callable[[str], str]
) -> None:
    queue = name("cut")
    publisher = connect().channel()
    publisher.declare(queue)
    publisher.publish(queue, b"x" * 10_000)
    publisher.sync()
    consumer = connect(frame_max=4096).channel()
    consumer.send(spec.Basic.Get(queue=queue, no_ack=True))
    frames = [consumer.connection.wire.read_raw() for _ in range(5)]
    assert [kind for kind, _, _ in frames] == [1, 2, BODY, BODY, BODY]
    assert [len(payload) for _, _, payload in frames[2:]] == [4088, 4088, 10_000 - 2 * 4088]


def test_a_frame_up_to_eight_bytes_over_frame_max_is_let_through(
    connect: Connect, name: Callable[[str], str]
) -> None:
    channel = connect(frame_max=4096).channel()
    channel.declare(queue := name("fudge"))
    channel.connection.wire.send(publish(queue) + header(4096) + body(b"x" * 4096))
    message = channel.get(queue)
    assert message is not None
    assert len(message.body) == 4096


@pytest.mark.parametrize("frame_max", [4096, 131072])
def test_a_frame_beyond_that_is_refused_with_501(connect: Connect, frame_max: int) -> None:
    connection = connect(frame_max=frame_max)
    connection.channel(1)
    too_large = publish() + header(frame_max + 1) + body(b"x" * (frame_max + 1))
    text = (
        "FRAME_ERROR - type 3, all octets = <<>>:"
        f" {{frame_too_large,{frame_max + 1},{frame_max - 8}}}"
    )
    assert refusal(connection, too_large) == ("connection", 501, text, 0, 0)


@pytest.mark.parametrize(("kind", "channel"), [(1, 0), (3, 5), (200, 9)])
def test_a_frame_too_large_is_refused_by_its_first_seven_bytes(
    connect: Connect, kind: int, channel: int
) -> None:
    announced = raw(kind, channel, b"")[:3] + b"\xff\xff\xff\xff"
    text = f"FRAME_ERROR - type {kind}, all octets = <<>>: {{frame_too_large,4294967295,131064}}"
    assert refusal(connect(), announced) == ("connection", 501, text, 0, 0)


def test_before_tune_frames_may_have_4096_bytes_and_no_more(dial: Dial) -> None:
    fits, too_large = dial(), dial()
    room = 4096 - (len(start_ok(client_properties={"filler": ""})) - 8)
    for wire, filler in ((fits, room), (too_large, room + 1)):
        greet(wire)
        wire.send(start_ok(client_properties={"filler": "x" * filler}))
    assert isinstance(fits.read().method, spec.Connection.Tune)
    assert lost(too_large)
