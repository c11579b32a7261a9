"""Field tables: every type, byte-exact, and nothing that a lying size could do."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pamqp.decode
import pika.data
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.amqp.wire_values import KIND_NAMES, Typed, entries, sized, tables, typed
from warren.amqp.tables import (
    Array,
    Table,
    TableError,
    Timestamp,
    decode_table,
    encode_table,
    encode_value,
    join_table,
    kind_of,
    raw,
    split_table,
    text,
)

EXAMPLES = [
    Typed("t", True),
    Typed("t", False),
    Typed("b", -128),
    Typed("B", 255),
    Typed("s", -32768),
    Typed("u", 65535),
    Typed("I", -(2**31)),
    Typed("i", 2**32 - 1),
    Typed("l", -(2**63)),
    Typed("L", 2**63 - 1),
    Typed("f", 1.5),
    Typed("d", 0.1),
    Typed("D", (2, 314)),
    Typed("D", (0, 2**32 - 1)),
    Typed("S", "grün"),
    Typed("S", ""),
    Typed("A", [Typed("s", 1), Typed("f", 2.5), Typed("A", [])]),
    Typed("T", 1_700_000_000),
    Typed("T", 2**64 - 1),
    Typed("F", {"in": Typed("u", 7), "": Typed("F", {})}),
    Typed("V", None),
    Typed("x", b"\x00\xff"),
]
each_type = pytest.mark.parametrize(
    "value", EXAMPLES, ids=[f"{example.octet}-{n}" for n, example in enumerate(EXAMPLES)]
)


# -- every type ----------------------------------------------------------------------------------
@each_type
def test_a_value_is_read_with_its_type(value: Typed) -> None:
    table = decode_table(entries({"key": value}))

    assert table == {"key": value.plain}
    assert table.kinds == {"key": KIND_NAMES[value.octet]}


@each_type
def test_a_value_that_was_read_is_written_with_the_same_octets(value: Typed) -> None:
    table = decode_table(entries({"key": value}))

    assert encode_table(table) == sized(entries({"key": value}, rewritten=True))


@each_type
def test_a_value_inside_an_array_keeps_its_type(value: Typed) -> None:
    array = Typed("A", [value, value])

    table = decode_table(entries({"key": array}))
    assert encode_table(table) == sized(entries({"key": array}, rewritten=True))


@each_type
def test_a_table_cut_anywhere_is_no_table(value: Typed) -> None:
    whole = entries({"key": value})

    for cut in range(1, len(whole)):
        with pytest.raises(TableError):
            decode_table(whole[:cut])
        with pytest.raises(TableError):  # the rest is there, but behind the table's end
            decode_table(whole, 0, cut)


@given(tables())
def test_any_table_goes_there_and_back(table: dict[str, Typed]) -> None:
    decoded = decode_table(entries(table))

    assert decoded == {key: value.plain for key, value in table.items()}
    assert decoded.kinds == {key: KIND_NAMES[value.octet] for key, value in table.items()}
    assert encode_table(decoded) == sized(entries(table, rewritten=True))


@given(tables())
def test_a_table_is_cut_into_raw_values_and_put_together_again(table: dict[str, Typed]) -> None:
    parts = split_table(entries(table))

    assert list(parts) == list(table)
    whole = {
        key: value.rewritten if value.octet == "L" else value.wire for key, value in table.items()
    }
    assert parts == whole
    body = b"".join(bytes([len(raw(key))]) + raw(key) + value for key, value in whole.items())
    assert join_table(parts) == sized(body)


@given(tables(), st.integers(0, 40), st.integers(0, 40))
def test_a_table_is_read_from_the_middle_of_a_frame(
    table: dict[str, Typed], before: int, behind: int
) -> None:
    octets = entries(table)
    data = b"\xaa" * before + octets + b"\xbb" * behind

    decoded = decode_table(data, before, before + len(octets))
    assert decoded == {key: value.plain for key, value in table.items()}


# -- other codecs --------------------------------------------------------------------------------
def _without_types(value: Any) -> Any:
    """As pamqp and pika show it: instants for timestamps."""
    if isinstance(value, Timestamp):
        return datetime.fromtimestamp(value, UTC)
    if isinstance(value, dict):
        return {key: _without_types(item) for key, item in value.items()}
    return [_without_types(item) for item in value] if isinstance(value, list) else value


instants = st.builds(Typed, st.just("T"), st.integers(0, 2**31))
decimals = st.builds(Typed, st.just("D"), st.tuples(st.integers(0, 20), st.integers(0, 2**31 - 1)))
text_keys = st.text(max_size=20)


@given(st.dictionaries(text_keys, typed("tbBsuIilLfdSVx") | instants | decimals, max_size=8))
def test_pamqp_reads_what_we_write(table: dict[str, Typed]) -> None:
    ours = decode_table(entries(table))

    assert pamqp.decode.field_table(encode_table(ours))[1] == _without_types(ours)


@given(st.dictionaries(text_keys, typed("tbBsuIilLSVx") | instants, max_size=8))
def test_pika_reads_what_we_write(table: dict[str, Typed]) -> None:
    ours = decode_table(entries(table))

    assert pika.data.decode_table(encode_table(ours), 0)[0] == _without_types(ours)


PIKA_WRITES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=10)
    | st.binary(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text_keys, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(text_keys, PIKA_WRITES, max_size=6))
def test_plain_values_are_written_as_pika_writes_them(values: dict[str, Any]) -> None:
    pieces: list[bytes] = []
    pika.data.encode_table(pieces, values)
    written = b"".join(pieces)

    assert encode_table(values) == written
    assert decode_table(written, 4) == values


# -- what is not a table -------------------------------------------------------------------------
@pytest.mark.parametrize("octet", "SxFA")
def test_a_size_beyond_the_table_is_refused_before_memory_is_taken(octet: str) -> None:
    lie = b"\x01k" + octet.encode() + struct.pack(">I", 0xFFFFFFF0) + b"little"

    tracemalloc.start()
    with pytest.raises(TableError):
        decode_table(lie)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_an_inner_table_can_not_reach_into_what_follows_its_outer_one() -> None:
    inner = Typed("F", {"a": Typed("I", 1)}).wire
    longer = inner[:1] + struct.pack(">I", len(inner) - 5 + 6) + inner[5:]
    outer = b"\x01o" + b"F" + sized(b"\x01i" + longer) + b"\x01nt\x01" + b"\x01mt\x01"

    with pytest.raises(TableError):
        decode_table(outer)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(TableError):
        decode_table(b"\x01kZ1234")
    with pytest.raises(TableError):
        split_table(b"\x01kZ1234")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=str)
@pytest.mark.parametrize("octet", "fd")
def test_what_erlang_can_not_hold_is_refused(octet: str, number: float) -> None:
    with pytest.raises(TableError):
        decode_table(entries({"k": Typed(octet, number)}))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_table_or_a_table_error(data: bytes) -> None:
    for read in (decode_table, split_table):
        try:
            read(data)
        except TableError:
            continue


def test_tables_may_be_nested_as_deep_as_a_frame_allows() -> None:
    octets = b""
    for _ in range(5000):
        octets = b"\x00F" + sized(octets)

    table = decode_table(octets)
    depth = 0
    while table:
        table = table[""]
        depth += 1
    assert depth == 5000


# -- rules ---------------------------------------------------------------------------------------
def test_the_first_of_two_equal_keys_counts() -> None:
    twice = entries({"k": Typed("S", "first")}) + entries({"k": Typed("I", 2)})

    assert decode_table(twice) == {"k": "first"}
    assert decode_table(twice).kinds == {"k": "longstr"}
    assert split_table(twice) == {"k": Typed("S", "first").wire}


def test_any_octet_but_zero_is_true() -> None:
    assert decode_table(b"\x01kt\x7f") == {"k": True}


@given(st.binary(max_size=30))
def test_text_that_is_not_utf8_survives(octets: bytes) -> None:
    assert raw(text(octets)) == octets
    table = decode_table(b"\x01kS" + sized(octets))
    assert encode_table(table) == sized(b"\x01kS" + sized(octets))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "void"),
        (True, "bool"),
        (5, "signedint"),
        (-(2**31), "signedint"),
        (2**31, "long"),
        (Timestamp(5), "timestamp"),
        (1.5, "double"),
        (Decimal("1.5"), "decimal"),
        ("five", "longstr"),
        (b"five", "binary"),
        (bytearray(b"five"), "binary"),
        ({"a": 1}, "table"),
        ([1], "array"),
        ((1,), "array"),
    ],
)
def test_a_plain_value_has_a_wire_type(value: Any, kind: str) -> None:
    assert kind_of(value) == kind
    assert Table({"k": value}).kinds == {"k": kind}
    assert KIND_NAMES[chr(encode_value(value)[0])] == kind


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j], ids=lambda value: type(value).__name__)
def test_other_objects_are_refused_by_name(value: Any) -> None:
    with pytest.raises(TableError, match=type(value).__name__):
        encode_table({"k": value})


@pytest.mark.parametrize("value", [Decimal(-1), Decimal("NaN"), Decimal("Infinity")], ids=str)
def test_a_decimal_without_a_form_on_the_wire_is_refused(value: Decimal) -> None:
    with pytest.raises(TableError, match="no form on the wire"):
        encode_table({"k": value})


@pytest.mark.parametrize(
    ("value", "octets"),
    [("1.50", b"D\x02\x00\x00\x00\x96"), ("1E+2", b"D\x00\x00\x00\x00d"), ("0", b"D" + bytes(5))],
)
def test_a_decimal_is_written_with_its_scale(value: str, octets: bytes) -> None:
    assert encode_value(Decimal(value)) == octets


def test_a_key_has_at_most_255_octets() -> None:
    assert encode_table({"é" * 127 + "e": 1})
    with pytest.raises(TableError, match="256 octets"):
        encode_table({"é" * 128: 1})


def test_tables_and_arrays_survive_pickling_with_their_types() -> None:
    table = decode_table(entries({"k": Typed("A", [Typed("s", 1), Typed("F", {})])}))

    copy = pickle.loads(pickle.dumps(table))
    assert copy == table
    assert copy.kinds == table.kinds
    assert isinstance(copy["k"], Array)
    assert copy["k"].kinds == ["short", "table"]
