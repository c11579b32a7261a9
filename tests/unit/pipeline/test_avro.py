from __future__ import annotations

import io
import json
import math
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pipeline.values import (
    FLOATS,
    LONGS,
    expected,
    only_value_error,
)
from warren.content_encoding import MOST_BYTES
from warren.pipeline import avro_datum
from warren.pipeline.formats import Avro

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "count", "type": "int"},
        {"name": "customer", "type": ["null", "string"]},
        {"name": "paid", "type": "boolean"},
        {"name": "weight", "type": "double"},
        {"name": "photo", "type": "bytes"},
        {"name": "key", "type": {"type": "fixed", "name": "Key", "size": 3}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "before", "type": ["null", "State"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "stock", "type": {"type": "map", "values": "int"}},
        {"name": "parent", "type": ["null", "Order"]},
    ],
}
ORDERS = st.deferred(
    lambda: st.fixed_dictionaries(
        {
            "id": LONGS,
            "count": st.integers(-(2**31), 2**31 - 1),
            "customer": st.none() | st.text(),
            "paid": st.booleans(),
            "weight": FLOATS,
            "photo": st.binary(max_size=20),
            "key": st.binary(min_size=3, max_size=3),
            "state": st.sampled_from(["NEW", "SENT"]),
            "before": st.none() | st.sampled_from(["NEW", "SENT"]),
            "tags": st.lists(st.text(), max_size=3),
            "stock": st.dictionaries(st.text(), st.integers(-99, 99), max_size=3),
            "parent": st.none() | ORDERS,
        }
    )
)
ORDER_AVRO = Avro(json.dumps(ORDER))


def datum(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def container(schema: Any, values: list[Any], codec: str = "null") -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, values, codec=codec)
    return out.getvalue()


def zstd_container(schema: Any, value: Any) -> bytes:
    """By hand: fastavro writes it with another package than ours only."""
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": b"zstandard"}
    head = b"Obj\x01" + datum({"type": "map", "values": "bytes"}, meta) + b"sync" * 4
    return head + b"\x02" + datum("bytes", zstandard.compress(datum(schema, value))) + b"sync" * 4


def avro_value(schema: Any, value: Any) -> str:
    return Avro(json.dumps(schema)).text(datum(schema, value))


@given(order=ORDERS)
def test_avro_comes_through(order: dict[str, Any]) -> None:
    assert json.loads(ORDER_AVRO.text(datum(ORDER, order))) == expected(order)


@given(order=ORDERS)
def test_avro_cut_anywhere_is_refused(order: dict[str, Any]) -> None:
    body = datum(ORDER, order)
    for cut in range(len(body)):
        with pytest.raises(ValueError, match=r"too early|another schema"):
            ORDER_AVRO.text(body[:cut])


@given(body=st.binary(max_size=100))
def test_random_octets_are_avro_or_refused(body: bytes) -> None:
    only_value_error(ORDER_AVRO, body)


@given(body=st.binary(max_size=100))
def test_a_random_avro_file_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Avro().text(b"Obj\x01" + body)


@given(order=ORDERS, place=st.integers(0, 2000), octet=st.integers(0, 255))
def test_a_damaged_avro_file_is_read_or_refused(
    order: dict[str, Any], place: int, octet: int
) -> None:
    body = bytearray(container(ORDER, [order], "deflate"))
    body[place % len(body)] = octet
    only_value_error(Avro(), bytes(body))


@pytest.mark.parametrize(
    ("logical", "value", "text"),
    [
        ({"type": "int", "logicalType": "date"}, date(2024, 2, 29), '"2024-02-29"'),
        ({"type": "int", "logicalType": "date"}, date.max, '"9999-12-31"'),
        ({"type": "int", "logicalType": "time-millis"}, time(23, 5, 6, 7000), '"23:05:06.007000"'),
        ({"type": "long", "logicalType": "time-micros"}, time(0, 0, 0, 7), '"00:00:00.000007"'),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime(2024, 5, 6, 7, 8, 9, 123_000, tzinfo=UTC),
            '"2024-05-06T07:08:09.123000Z"',
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime(1, 1, 1, tzinfo=UTC),
            '"0001-01-01T00:00:00.000000Z"',
        ),
        (
            {"type": "long", "logicalType": "timestamp-nanos"},
            1_700_000_000_123_456_789,
            '"2023-11-14T22:13:20.123456Z"',
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            datetime(2024, 5, 6, 7, 8, 9, 1),  # noqa: DTZ001
            '"2024-05-06T07:08:09.000001"',
        ),
        (
            {"type": "string", "logicalType": "uuid"},
            UUID(int=7),
            '"00000000-0000-0000-0000-000000000007"',
        ),
        ({"type": "int", "logicalType": "furlongs"}, 5, "5"),
        ("float", 0.5, "0.5"),
        ("double", math.inf, "Infinity"),
        ("double", -math.inf, "-Infinity"),
        ("double", math.nan, "NaN"),
        ("null", None, "null"),
    ],
)
def test_an_avro_value_has_the_form_that_from_json_reads(
    logical: Any, value: Any, text: str
) -> None:
    assert avro_value(logical, value) == text


def test_a_fixed_uuid_is_text() -> None:
    schema = {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}
    body = UUID(int=7).bytes
    assert Avro(json.dumps(schema)).text(body) == '"00000000-0000-0000-0000-000000000007"'


@given(unscaled=st.integers(-(10**38) + 1, 10**38 - 1), scale=st.integers(0, 38))
def test_an_avro_decimal_keeps_every_digit(unscaled: int, scale: int) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": scale}
    body = unscaled.to_bytes(17, signed=True)

    text = Avro(json.dumps(schema)).text(b"\x22" + body)

    assert "e" not in text.lower()
    assert Decimal(text) == Decimal(
        (int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale)
    )


@pytest.mark.parametrize("codec", ["null", "deflate", "zstd"])
def test_an_avro_file_brings_its_schema(codec: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "s", "type": "string"}]}
    value = {"s": "x" * 2000}
    body = zstd_container(schema, value) if codec == "zstd" else container(schema, [value], codec)
    assert json.loads(Avro().text(body)) == {"s": "x" * 2000}
    assert json.loads(ORDER_AVRO.text(body)) == {"s": "x" * 2000}


@pytest.mark.parametrize("records", [0, 2, 3])
def test_an_avro_file_holds_one_record(records: int) -> None:
    with pytest.raises(ValueError, match=rf"holds {records or 'no'} records, a message is one"):
        Avro().text(container("int", [1] * records))


def test_an_avro_file_cut_anywhere_is_refused() -> None:
    body = container("string", ["some text"], "deflate")
    for cut in range(len(body)):
        with pytest.raises(ValueError, match=r"."):
            Avro().text(body[:cut])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((b"deflate", b"snappy!"), "codec 'snappy!' is not known"),
        ((b"avro.schema", b"avro.schemb"), "has no schema"),
        ((b'"string"', b'"strinq"'), "schema is not good"),
    ],
)
def test_what_is_wrong_with_an_avro_file_is_told(change: tuple[bytes, bytes], reason: str) -> None:
    body = container("string", ["some text"], "deflate").replace(*change)
    with pytest.raises(ValueError, match=reason):
        Avro().text(body)


def test_an_avro_file_that_is_packed_too_well_is_refused() -> None:
    body = zstd_container("bytes", bytes(MOST_BYTES))
    assert len(body) < 100_000
    with pytest.raises(ValueError, match="grows beyond"):
        Avro().text(body)


def test_single_object_encoding_is_read_by_its_fingerprint() -> None:
    # The fingerprint of "int", from the Avro project's own tests: 7275d51a3f395c8f.
    head = b"\xc3\x01" + struct.pack("<Q", 0x7275D51A3F395C8F)
    assert Avro('"int"').text(head + b"\x06") == "3"
    with pytest.raises(ValueError, match=r"another schema \(8f5c393f1ad57572\)"):
        Avro('"string"').text(head + b"\x06")


def test_a_bare_datum_may_begin_like_single_object_encoding() -> None:
    assert Avro('"int"').text(b"\xc3\x01") == "-98"


def test_avro_without_a_schema_must_be_a_file() -> None:
    with pytest.raises(ValueError, match="no Avro file, and its table has no schema"):
        Avro().text(b"\x06")


HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"  # 2**62 - 1
NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        ("string", HUGE + b"x", "ends too early"),
        ("bytes", HUGE, "ends too early"),
        ("string", b"\x01abc", "length is negative"),
        ("string", b"\x02\xff", "not UTF-8"),
        ({"type": "array", "items": "int"}, HUGE + b"\x02", "ends too early"),
        ({"type": "array", "items": "int"}, b"\x03\x02", "ends too early"),
        ({"type": "map", "values": "null"}, HUGE + b"\x00", "ends too early"),
        ("int", b"\x02\x02", "1 octets follow its end"),
        ("int", HUGE, "more than 32 bits"),
        ("long", b"\xff" * 9 + b"\x02", "more than 64 bits"),
        ("long", b"\xff" * 99, "more than 64 bits"),
        ("boolean", b"\x02", "neither 0 nor 1"),
        (["null", "int"], b"\x01\x02", "no such branch"),
        (["null", "int"], b"\x04", "no such branch"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01", "no such symbol"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "no such symbol"),
        ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f", "out of range"),
        ({"type": "int", "logicalType": "time-millis"}, b"\x01", "out of range"),
        ({"type": "long", "logicalType": "timestamp-millis"}, HUGE, "out of range"),
        (DECIMAL, b"\x04\x7f\xff", "more than 4 digits"),
        (NODE, b"\x02" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_with_avro_is_told(schema: Any, body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Avro(json.dumps(schema)).text(body)


def test_an_avro_decimal_of_a_megabyte_is_refused_at_once() -> None:
    body = datum("bytes", b"\x7f" * 1_000_000)
    with pytest.raises(ValueError, match="more than 4 digits"):
        Avro(json.dumps(DECIMAL)).text(body)


def test_a_long_name_in_an_avro_file_can_not_be_repeated_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(avro_datum, "MOST_BYTES", 100_000)
    item = {"type": "record", "name": "R", "fields": [{"name": "n" * 900, "type": "boolean"}]}
    items = {"type": "array", "items": item}
    assert len(Avro().text(container(items, [[{"n" * 900: True}] * 100]))) > 90_000
    with pytest.raises(ValueError, match="grows beyond"):
        Avro().text(container(items, [[{"n" * 900: True}] * 112]))


def nulls(levels: int) -> dict[str, Any]:
    """A record of records of ... of null: 2**levels of them, in no octets."""
    inner: Any = "null"
    for level in range(levels):
        fields = [
            {"name": "a", "type": inner},
            {"name": "b", "type": inner["name"] if isinstance(inner, dict) else inner},
        ]
        inner = {"type": "record", "name": f"R{level}", "fields": fields}
    assert isinstance(inner, dict)
    return inner


def deep(levels: int) -> Any:
    schema: Any = "int"
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"type": "record", "fields": []}', "not good: .*name"),
        ('"strng"', "not good: .*strng"),
        ("5", "not good"),
        ('{"type": "fixed", "name": "F", "size": -1}', "fixed 'F' has size -1"),
        ('{"type": "array", "items": "null"}', "items of an array take no octets"),
        (
            '{"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}',
            "items of an array take no octets",
        ),
        (json.dumps({"type": "array", "items": nulls(2)}), "items of an array take no octets"),
        (json.dumps(nulls(30)), "values of no octets"),
        (json.dumps(deep(200)), "nested too deeply"),
        (
            '{"type": "bytes", "logicalType": "decimal", "precision": 9999999, "scale": 9999999}',
            "a decimal of 9999999 digits",
        ),
    ],
)
def test_what_is_wrong_with_an_avro_schema_is_told(schema: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Avro(schema).check()


def test_a_good_avro_schema_passes() -> None:
    ORDER_AVRO.check()
    Avro().check()
    assert Avro(json.dumps(nulls(2))).text(b"") == (
        '{"a":{"a":null,"b":null},"b":{"a":null,"b":null}}'
    )
