"""Nothing depends on how the bytes were cut, nor on what came before in the same read."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import spec

from tests.unit.amqp.talk import (
    CHANNEL,
    CONVERSATION,
    HANDSHAKE,
    effect,
    method,
    publish,
    running,
)
from warren.amqp.frames import HEARTBEAT_FRAME

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
