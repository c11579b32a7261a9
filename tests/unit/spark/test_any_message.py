"""Whatever a publisher sends, its message becomes a row: one bad one must not stop a queue."""

from __future__ import annotations

import json
from decimal import Decimal
from struct import Struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warren.amqp.properties import FIELDS, join_properties
from warren.amqp.tables import Table, Timestamp, encode_table, text
from warren.client.blocking_reader import Deliveries
from warren.client.message_values import header_text
from warren.spark.columns import ARROW_SCHEMA
from warren.spark.deliveries import to_batch
from warren.spark.ledger.match import came_twice, keys_of
from warren.spark.ledger.names import stem_of
from warren.spark.ledger.segment import Segment, decode_segment, encode_segments

LONG = Struct(">I")
#: A header of as many arrays in each other as a frame of 128 KiB has room for.
DEEPEST = 26_000


def nested(depth: int) -> bytes:
    """Headers with one that has arrays in arrays."""
    arrays = b"".join(b"A" + LONG.pack(5 * left) for left in range(depth, -1, -1))
    entries = b"\x01h" + arrays
    return LONG.pack(len(entries)) + entries


# -- what publishers send --------------------------------------------------------------------------
OCTETS = st.binary(max_size=255) | st.integers(1, 255).map(lambda size: b"\xe9" * size)
NAMES = OCTETS.map(text)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.builds(lambda digits, scale: Decimal(digits).scaleb(-scale), *[st.integers(0, 255)] * 2)
    | st.integers(0, 2**64 - 1).map(Timestamp)
    | st.binary(max_size=300)
    | NAMES
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
HEADERS = st.dictionaries(NAMES, VALUES, max_size=5).map(lambda each: encode_table(Table(each)))
BY_DOMAIN = {
    "shortstr": OCTETS.map(lambda octets: bytes((len(octets),)) + octets),
    "octet": st.binary(min_size=1, max_size=1),
    "timestamp": st.binary(min_size=8, max_size=8),
    "table": HEADERS | st.integers(0, 1_200).map(nested),
}
PROPERTIES = st.fixed_dictionaries(
    {}, optional={name: BY_DOMAIN[domain] for name, _, domain in FIELDS}
).map(join_properties)
ROUTES = st.tuples(*[BY_DOMAIN["shortstr"]] * 2).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A property list in which octets are others, or which ends too early."""
    octets = bytearray(draw(PROPERTIES))
    for at in draw(st.lists(st.integers(0, len(octets) - 1), max_size=4)):
        octets[at] = draw(st.integers(0, 255))
    return bytes(octets[: draw(st.integers(2, len(octets)))])


def taken(messages: list[tuple[bytes, bytes, bytes]]) -> Deliveries:
    took = Deliveries()
    for route, properties, body in messages:
        took.routes.append(route)
        took.properties.append(properties)
        took.bodies.append(body)
    took.redelivered = list(range(0, len(messages), 2))
    return took


@given(st.lists(st.tuples(ROUTES, PROPERTIES | damaged(), st.binary(max_size=20)), max_size=4))
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
