"""Whatever a peer sends, the broker lives, forgets it, and others notice nothing.

Bounded by ``WARREN_FUZZ_SECONDS`` (20 if it is not set), shared by the tests of this folder.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

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
    body,
    fuzz,
    header,
    memory_bytes,
    method,
    raw,
    read_frames,
    split,
)
from tests.fuzz.operations import Script, octets
from tests.unit.amqp.test_methods import ALL, made
from tests.unit.amqp.wire_values import sized
from warren.amqp.frames import METHOD, encode_frame

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


def talk(ring: Arena, pieces: list[bytes]) -> list[bytes]:
    """Say something; the answer must be AMQP, and the broker as before.

    Returns the methods of the answer.
    """
    answer = ring.say(pieces)
    if answer.startswith(b"AMQP"):
        assert answer == b"AMQP\x00\x00\x09\x01"
        answer = b""
    methods = [payload for kind, _, payload in read_frames(answer) if kind == METHOD]
    for payload in methods:
        if payload[:4] in CLOSES:
            assert int.from_bytes(payload[4:6], "big") in CODES
    ring.check()
    return methods


def test_a_conversation_without_mistakes_ends_as_it_should(ring: Arena) -> None:
    answers = talk(ring, CONVERSATION)

    assert answers[-1] == b"\x00\x0a\x00\x33"  # connection.close-ok
    assert not [payload for payload in answers if payload[:4] in CLOSES]


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
    fuzz(mutated(), lambda pieces: talk(ring, pieces), 0.2)


def test_half_a_conversation_and_then_the_end(ring: Arena) -> None:
    whole = b"".join(CONVERSATION)
    fuzz(st.integers(0, len(whole)), lambda cut: talk(ring, [whole[:cut]]), 0.1)


# -- frames --------------------------------------------------------------------------------------
any_method = st.sampled_from(ALL).flatmap(made).map(lambda value: value.encode())
any_frame = st.one_of(
    st.builds(encode_frame, st.just(METHOD), st.integers(0, 3), any_method),
    st.builds(raw, st.integers(0, 9), st.integers(0, 3), st.binary(max_size=30)),
    st.builds(header, st.integers(0, 2**64 - 1), st.integers(0, 3)),
    st.builds(body, st.binary(max_size=20), st.integers(0, 3)),
    st.sampled_from(CONVERSATION),
)


def test_frames_in_any_order(ring: Arena) -> None:
    def example(frames: list[bytes]) -> None:
        talk(ring, [*HANDSHAKE, *frames])

    fuzz(st.lists(any_frame, max_size=12), example, 0.15)


def test_busy_clients_that_make_mistakes(ring: Arena) -> None:
    def example(seed: int) -> None:
        steps = Script(seed, nonsense=0.2).steps(30)
        sent = [octets(step) for step in steps if step[0] in ("send", "publish")]
        talk(ring, [*HANDSHAKE, method(spec.Channel.Open(), 2), b"".join(sent)])

    fuzz(st.integers(0, 10**9), example, 0.15)


# -- sizes that lie ------------------------------------------------------------------------------
GIANT = 0xFFFFFFF0


def deep(levels: int, octet: bytes = b"F") -> bytes:
    """The entries of a table with tables (or arrays) inside each other."""
    inner = b""
    for _ in range(levels):
        inner = (b"\x01k" if octet == b"F" else b"") + octet + sized(inner)
    return inner if octet == b"F" else b"\x01k" + octet + sized(inner)


def with_arguments(ids: bytes, before: bytes, table: bytes) -> bytes:
    return raw(1, 1, ids + before + table)


PUBLISH = method(spec.Basic.Publish(routing_key="q"))
DECLARE = b"\x00\x32\x00\x0a", b"\x00\x00\x01q\x00"
BIND = b"\x00\x32\x00\x14", b"\x00\x00\x01q\x0bamq.headers\x00\x00"
QUEUE = method(spec.Queue.Declare(queue="q"))
LIES = {
    "frame of 4 GiB": raw(1, 1, b"x", GIANT),
    "body frame of 4 GiB": PUBLISH + header(5) + raw(3, 1, b"x", GIANT),
    "frame one octet too large": raw(3, 1, b"x", 131073),
    "content header of 4 GiB": PUBLISH + raw(2, 1, b"x", GIANT),
    "body of 16 EiB": PUBLISH + header(2**64 - 1) + body(b"x" * 1000),
    "body of 128 MiB and one octet": PUBLISH + header(2**27 + 1) + body(b"x" * 1000),
    "more body than announced": PUBLISH + header(3) + body(b"x" * 1000) * 50,
    "empty body frames": PUBLISH + header(3) + body(b"") * 10_000,
    "arguments of 4 GiB": with_arguments(*DECLARE, struct.pack(">I", GIANT)),
    "string of 4 GiB": with_arguments(*DECLARE, sized(b"\x01kS" + struct.pack(">I", GIANT))),
    "table of 4 GiB": with_arguments(*DECLARE, sized(b"\x01kF" + struct.pack(">I", GIANT))),
    "array of 4 GiB": with_arguments(*DECLARE, sized(b"\x01kA" + struct.pack(">I", GIANT))),
    "deep table": with_arguments(*DECLARE, sized(deep(15_000))),
    "deep array": with_arguments(*DECLARE, sized(deep(15_000, b"A"))),
    "deep binding": QUEUE + with_arguments(*BIND, sized(deep(15_000))),
    "headers of 4 GiB": PUBLISH
    + raw(2, 1, struct.pack(">HHQH", 60, 0, 1, 0x2000) + struct.pack(">I", GIANT))
    + body(b"x"),
    "deep headers": QUEUE
    + PUBLISH
    + raw(2, 1, struct.pack(">HHQH", 60, 0, 1, 0x2000) + sized(deep(15_000)))
    + body(b"x")
    + method(spec.Basic.Get(queue="q")),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_size_that_lies_costs_no_memory(ring: Arena, lie: bytes) -> None:
    before = memory_bytes()
    with ring.dial() as sock:  # stays open: the lie is not taken back
        sock.sendall(b"".join(HANDSHAKE) + lie)
        ring.works()
        assert memory_bytes() < before + (32 << 20)
    ring.check()


DEAD_LETTERING = method(
    spec.Queue.Declare(
        queue="q",
        arguments={
            "x-message-ttl": 0,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "q2",
        },
    )
) + method(spec.Queue.Declare(queue="q2"))


@pytest.mark.parametrize("levels", [10, 300, 1000, 15_000])
@pytest.mark.parametrize("octet", [b"F", b"A"])
@pytest.mark.parametrize("key", [b"x-death", b"CC", b"h"])
def test_deep_headers_are_dead_lettered(ring: Arena, key: bytes, octet: bytes, levels: int) -> None:
    table = bytes([len(key)]) + key + deep(levels, octet)[2:]
    if key == b"x-death":  # an entry of such a list is a table
        table = b"\x07x-deathA" + sized(b"F" + sized(deep(levels, octet)))
    headers = struct.pack(">HHQH", 60, 0, 1, 0x2000) + sized(table)
    talk(ring, [*HANDSHAKE, DEAD_LETTERING, PUBLISH + raw(2, 1, headers) + body(b"x")])
