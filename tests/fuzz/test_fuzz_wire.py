"""Whatever a peer sends, the broker lives, forgets it, and others notice nothing.

Bounded by ``WARREN_FUZZ_SECONDS`` (20 if it is not set), shared by the tests here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pika.frame
import pytest
from hypothesis import strategies as st
from pika import spec

from tests.fuzz.arena import (
    CODES,
    CONVERSATION,
    HANDSHAKE,
    SECONDS,
    Arena,
    arena,
    fuzz,
    memory_bytes,
    read_frames,
    split,
)
from tests.fuzz.operations import senseless, sensible

pytestmark = [pytest.mark.timeout(60 + 4 * SECONDS)]
#: What a broker may grow by while it is ill-treated, and hypothesis with it.
GROWTH_BYTES = 128 << 20
#: connection.close and channel.close.
CLOSES = (b"\x00\x0a\x00\x32", b"\x00\x14\x00\x28")


@pytest.fixture(scope="module")
def ring() -> Iterator[Arena]:
    before = memory_bytes()
    with arena() as ring:
        yield ring
    assert memory_bytes() < before + GROWTH_BYTES


def talk(ring: Arena, pieces: list[bytes]) -> None:
    """Say something; the answer must be AMQP, and the broker as before."""
    answer = ring.say(pieces)
    if answer.startswith(b"AMQP"):
        assert answer == b"AMQP\x00\x00\x09\x01"
        answer = b""
    for kind, _, payload in read_frames(answer):
        if kind == 1 and payload[:4] in CLOSES:
            assert int.from_bytes(payload[4:6], "big") in CODES
    ring.check()


# -- bytes ---------------------------------------------------------------------------------------
def test_random_bytes_at_any_stage_of_a_connection(ring: Arena) -> None:
    def example(given: tuple[int, bytes]) -> None:
        stage, data = given
        talk(ring, [*HANDSHAKE[:stage], data])

    fuzz(st.tuples(st.integers(0, len(HANDSHAKE)), st.binary(max_size=400)), example, 0.1)


@st.composite
def mutated(draw: st.DrawFn) -> list[bytes]:
    """A real conversation with a few things wrong in it, cut into pieces anew."""
    frames = list(CONVERSATION)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(frames) - 1))
        how = draw(st.sampled_from(["flip", "cut", "insert", "double", "drop", "swap", "channel"]))
        frame = frames[at]
        if how == "flip" and frame:
            place = draw(st.integers(0, len(frame) - 1))
            octet = draw(st.integers(0, 255))
            frames[at] = frame[:place] + bytes([octet]) + frame[place + 1 :]
        elif how == "cut" and frame:
            frames[at] = frame[: draw(st.integers(0, len(frame) - 1))]
        elif how == "insert":
            place = draw(st.integers(0, len(frame)))
            frames[at] = frame[:place] + draw(st.binary(max_size=9)) + frame[place:]
        elif how == "double":
            frames.insert(at, frame)
        elif how == "drop" and len(frames) > 1:
            del frames[at]
        elif how == "swap":
            other = draw(st.integers(0, len(frames) - 1))
            frames[at], frames[other] = frames[other], frame
        elif how == "channel" and len(frame) > 3:
            frames[at] = frame[:1] + draw(st.binary(min_size=2, max_size=2)) + frame[3:]
    pieces = draw(st.integers(1, 6))
    return split(b"".join(frames), random.Random(draw(st.integers(0, 999))), pieces)


def test_conversations_with_mistakes_in_them(ring: Arena) -> None:
    fuzz(mutated(), lambda pieces: talk(ring, pieces), 0.3)


def test_half_frames_and_then_the_end(ring: Arena) -> None:
    whole = b"".join(CONVERSATION)
    fuzz(st.integers(0, len(whole)), lambda cut: talk(ring, [whole[:cut]]), 0.1)


# -- frames --------------------------------------------------------------------------------------
def test_frames_in_any_order(ring: Arena) -> None:
    def example(frames: list[bytes]) -> None:
        talk(ring, [*HANDSHAKE, *frames])

    fuzz(st.lists(senseless, max_size=12), example, 0.2)


def test_methods_with_any_arguments(ring: Arena) -> None:
    def example(frames: list[bytes]) -> None:
        talk(ring, [b"".join([*HANDSHAKE, pika.frame.Method(2, spec.Channel.Open()).marshal(), *frames])])

    fuzz(st.lists(sensible, max_size=25), example, 0.3)
