"""Deliveries taken many at a time are those that come one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.amqp.test_client_session import running, said
from warren.amqp import methods as m
from warren.amqp.client import ClientSession
from warren.amqp.client_runs import Run
from warren.amqp.content import encode_content, encode_header
from warren.amqp.properties import Properties, encode_properties

Told = tuple[int, bool, bytes, bytes, bytes]


class Inbox:
    """A channel that notes its messages; with ``many``, it takes them in runs."""

    def __init__(self, *, many: bool) -> None:
        self.run = Run(self._take) if many else None
        self.came: list[Told] = []
        self.runs: list[int] = []

    def deliver(self, consumer: bytes, tag: int, redelivered: bool, *message: bytes) -> None:
        self.came.append((tag, redelivered, *message))  # type: ignore[arg-type]

    def _take(self, run: Run) -> None:
        count = len(run.bodies)
        self.runs.append(count)
        first = run.last_tag - count + 1
        for tag, properties, body in zip(
            range(first, first + count), run.properties, run.bodies, strict=True
        ):
            self.came.append((tag, run.redelivered, run.route, properties, body))

    def method(self, method: m.Method) -> None: ...

    def lost(self, error: Any) -> None: ...


@dataclass(frozen=True)
class Sent:
    """A delivery; equal ones in a row look alike on the wire."""

    channel: int = 1
    consumer: str = "warren"
    redelivered: bool = False
    key: str = "orders"
    message_id: str = "00"
    body: bytes = b"one pizza"
    #: Tags left out before it.
    gap: int = 0


def wire(sent: list[Sent], frame_max: int = 4096) -> bytes:
    tags = {1: 0, 2: 0}
    data = b""
    for each in sent:
        tags[each.channel] += 1 + each.gap
        deliver = m.BasicDeliver(
            each.consumer, tags[each.channel], each.redelivered, "shop", each.key
        )
        properties = encode_properties(Properties(message_id=each.message_id))
        header = encode_header(len(each.body), properties)
        data += said(deliver, each.channel)
        data += encode_content(each.channel, header, each.body, frame_max)
    return data


def read(data: bytes, cuts: list[int], *, many: bool) -> tuple[ClientSession, list[Inbox]]:
    session = running()
    inboxes = [Inbox(many=many) for _ in range(2)]
    for inbox in inboxes:
        session.open_channel(inbox)  # type: ignore[arg-type]
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for first, last in pairwise(edges):
        session.receive(data[first:last])
    return session, inboxes


a_delivery = st.builds(
    Sent,
    channel=st.sampled_from([1, 1, 1, 2]),
    consumer=st.sampled_from(["warren", "warren", "w"]),
    redelivered=st.sampled_from([False, False, True]),
    key=st.sampled_from(["orders", "orders", "refund", "x"]),
    message_id=st.sampled_from(["00", "01", "", "long"]),
    body=st.sampled_from([b"", b"x", b"one pizza", b"\xce" * 9, b"long" * 1500]),
    gap=st.sampled_from([0, 0, 0, 3]),
)
#: Each a few times in a row, or there would hardly be a run.
deliveries = st.lists(st.tuples(a_delivery, st.integers(1, 6)), max_size=12).map(
    lambda groups: [each for each, times in groups for _ in range(times)]
)


@given(deliveries, st.lists(st.integers(0, 1 << 20), max_size=5))
def test_what_is_taken_in_runs_is_what_comes_one_by_one(sent: list[Sent], cuts: list[int]) -> None:
    data = wire(sent)

    _, alone = read(data, cuts, many=False)
    _, together = read(data, cuts, many=True)

    assert [inbox.came for inbox in together] == [inbox.came for inbox in alone]
    assert sum(len(inbox.came) for inbox in together) == len(sent)


@given(deliveries, st.integers(0, 1 << 20), st.integers(1, 255))
def test_a_damaged_octet_is_seen_in_runs_as_it_is_one_by_one(
    sent: list[Sent], at: int, change: int
) -> None:
    data = bytearray(wire(sent) or b"\0")
    data[at % len(data)] ^= change

    one, alone = read(bytes(data), [], many=False)
    other, together = read(bytes(data), [], many=True)

    assert [inbox.came for inbox in together] == [inbox.came for inbox in alone]
    assert (other.state, str(other.failure)) == (one.state, str(one.failure))


def test_messages_that_look_alike_are_one_run_behind_the_two_it_is_learnt_from() -> None:
    _, [inbox, _] = read(wire([Sent(message_id=f"{n:02}") for n in range(50)]), [], many=True)

    assert inbox.runs == [48]
    assert [tag for tag, *_ in inbox.came] == list(range(1, 51))


@pytest.mark.parametrize(
    "other",
    [Sent(channel=2), Sent(consumer="w"), Sent(key="x"), Sent(redelivered=True), Sent(body=b"")],
    ids=["channel", "consumer", "key", "redelivered", "empty"],
)
def test_a_message_that_is_different_ends_a_run(other: Sent) -> None:
    _, [inbox, _] = read(wire([Sent()] * 6 + [other] + [Sent()] * 6), [], many=True)

    assert inbox.runs[0] == 4
    assert len(inbox.came) == 13 - (other.channel == 2)


def test_a_run_may_have_bodies_of_any_size() -> None:
    sent = [Sent(body=b"x" * (1 + n * 37 % 900)) for n in range(30)]

    _, [inbox, _] = read(wire(sent), [], many=True)

    assert inbox.runs == [28]
    assert [body for *_, body in inbox.came] == [each.body for each in sent]
