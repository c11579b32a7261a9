"""Whatever a publisher sends, its message becomes a row: one bad one must not stop a queue."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.spark.any_message import DEEPEST, MESSAGES, nested, taken
from tests.unit.spark.sink.sent import encoded, header_of, properties_of
from warren.amqp.properties import check_properties, decode_properties
from warren.client.message_values import header_text
from warren.spark.columns import ARROW_SCHEMA, WRITABLE
from warren.spark.deliveries import to_batch
from warren.spark.ledger.match import came_twice, keys_of
from warren.spark.ledger.names import stem_of
from warren.spark.ledger.segment import Segment, decode_segment, encode_segments

#: As a quarantine sends a message.
SENT_ON = [name for name in WRITABLE if name not in ("exchange", "user_id", "expiration")]


@given(st.lists(MESSAGES, max_size=4))
@example([(b"\0\0", b"\x20\0" + nested(1_200), b"")])
@example([(b"\0\0", b"\x20\0\0\0\0\x08\x01\xfft\1\x01\xfet\0", b"")])
@example([(b"\0\0", b"\x00\x40" + b"\xff" * 8, b""), (b"\x01\xff\x01\xff", b"\0\0", b"")])
def test_any_message_is_a_row_of_the_ledger_and_can_be_compared(
    messages: list[tuple[bytes, bytes, bytes]],
) -> None:
    batch = to_batch(taken(messages), "q", 7, 1_000_000)

    file = encode_segments([Segment("q", 7, 7 + len(messages), batch)])
    kept = decode_segment(bytes(file), stem_of("q"), 7).batch

    batch.validate(full=True)
    assert batch.schema.equals(ARROW_SCHEMA)
    assert kept.equals(batch)
    assert kept.column("body").to_pylist() == [body for _, _, body in messages]
    assert keys_of(kept) == keys_of(batch)
    came_twice(batch)
    for headers in kept.column("headers").to_pylist():
        names = [name for name, _ in headers or ()]
        assert len(set(names)) == len(names)  # else Spark's functions of maps would fail


@given(MESSAGES, st.sampled_from([4096, 131_072]))
@example((b"\0\0", b"\x24\0" + nested(25_000) + b"\xff" + b"\xe9" * 255, b""), 131_072)
def test_any_message_that_was_read_can_be_sent_on(
    message: tuple[bytes, bytes, bytes], frame_max: int
) -> None:
    batch = to_batch(taken([message]), "q", 0, 0).select(SENT_ON)

    (octets,) = encoded(batch, frame_max, routingKey="q", onTooLong="shorten")

    assert len(header_of(octets)) <= frame_max
    check_properties(properties_of(octets))
    for text in decode_properties(properties_of(octets)).headers or ():
        text.encode()


# -- headers ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("depth", [1, 1_200, DEEPEST])
def test_a_header_is_read_however_deep_it_is_nested(depth: int) -> None:
    took = taken([(b"\0\0", b"\x20\0" + nested(depth), b"")])

    (row,) = to_batch(took, "q", 0, 0).to_pylist()

    assert row["headers"] == [("h", "[" * (depth + 1) + "]" * (depth + 1))]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(st.lists(PLAIN) | st.dictionaries(st.text(max_size=9), PLAIN))
def test_what_is_no_text_is_in_its_json_form(value: Any) -> None:
    assert header_text(value) == json.dumps(value, ensure_ascii=False)
