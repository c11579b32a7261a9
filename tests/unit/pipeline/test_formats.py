from __future__ import annotations

import base64
import io
import json
import math
import pickle
import struct
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import msgpack
import pytest
import zstandard
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.struct_pb2 import DESCRIPTOR as STRUCT_FILE
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE
from google.protobuf.wrappers_pb2 import DESCRIPTOR as WRAPPERS_FILE
from hypothesis import given
from hypothesis import strategies as st

from warren.content_encoding import MOST_BYTES
from warren.errors import PackageMissing
from warren.pipeline import avro_datum, protobuf_message
from warren.pipeline.formats import Avro, MessagePack, Protobuf, kind_of

LONGS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
MOMENTS = st.datetimes(timezones=st.just(UTC))


def base64_text(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def moment_text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


# -- content-types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        (None, (None, "utf-8")),
        ("", (None, "utf-8")),
        ("application/octet-stream", (None, "utf-8")),
        ("application/json", ("json", "utf-8")),
        ("Text/JSON; charset=Latin-1", ("json", "latin-1")),
        ("application/vnd.shop.order+json", ("json", "utf-8")),
        ("text/csv", ("csv", "utf-8")),
        ("application/csv;header=present", ("csv", "utf-8")),
        ("text/plain; charset=utf8", ("text", "utf-8")),
        ("text/html", ("text", "utf-8")),
        ("application/avro", ("avro", "utf-8")),
        ("avro/binary", ("avro", "utf-8")),
        ("application/vnd.apache.avro", ("avro", "utf-8")),
        ("application/x-avro", ("avro", "utf-8")),
        ("application/vnd.shop+avro", ("avro", "utf-8")),
        ("application/msgpack", ("msgpack", "utf-8")),
        ("application/x-msgpack", ("msgpack", "utf-8")),
        ("application/vnd.msgpack", ("msgpack", "utf-8")),
        ("application/vnd.shop+msgpack", ("msgpack", "utf-8")),
        ("application/protobuf", ("protobuf", "utf-8")),
        ("application/x-protobuf; messageType=a.B", ("protobuf", "utf-8")),
        ("APPLICATION/VND.GOOGLE.PROTOBUF", ("protobuf", "utf-8")),
        ("application/vnd.shop+protobuf", ("protobuf", "utf-8")),
        ("application/x+xml", (None, "utf-8")),
        ("json", (None, "utf-8")),
    ],
)
def test_a_content_type_stands_for_a_kind(
    content_type: str | None, kind: tuple[str | None, str]
) -> None:
    assert kind_of(content_type) == kind


# -- MessagePack -----------------------------------------------------------------------------------

PACKABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | FLOATS
    | st.text()
    | st.binary()
    | MOMENTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | LONGS | st.binary() | st.none(), inner, max_size=4)
    ),
    max_leaves=10,
)


def expected(value: Any) -> Any:
    """What is left of a value when it has been JSON."""
    if isinstance(value, bytes):
        return base64_text(value)
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, list):
        return [expected(each) for each in value]
    if isinstance(value, dict):
        return {
            "null" if key is None else str(expected(key)): expected(each)
            for key, each in value.items()
        }
    return value


@given(value=PACKABLE)
def test_messagepack_comes_through(value: Any) -> None:
    text = MessagePack().text(msgpack.packb(value, datetime=True))
    assert json.loads(text) == expected(value)


@given(value=PACKABLE)
def test_messagepack_cut_anywhere_is_refused(value: Any) -> None:
    body = msgpack.packb(value, datetime=True)
    for cut in range(len(body)):
        with pytest.raises(ValueError, match=r"."):
            MessagePack().text(body[:cut])


@given(body=st.binary(max_size=100))
def test_random_octets_are_messagepack_or_refused(body: bytes) -> None:
    only_value_error(MessagePack(), body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (msgpack.packb(1) + b"\x01\x02", "2 octets follow its end"),
        (b"\xa2\xff\xff", "not UTF-8"),
        (b"\xc1", "FormatError"),
        (b"\x91" * 2000, "nested too deeply"),
        (b"\x91" * 1010 + b"\x01", "nested too deeply"),
        (b"\xdd\xff\xff\xff\xff", "exceeds max_array_len"),
        (b"\xdf\xff\xff\xff\xff", "exceeds max_map_len"),
        (b"\xc6\xff\xff\xff\xff", "incomplete"),
        (b"\xdb\xff\xff\xff\xff", "incomplete"),
        (b"\xc9\xff\xff\xff\xff\x05", "exceeds max_ext_len"),
        (b"\x81\x90\x01", "unhashable"),
        (b"\xc7\x0c\xff" + b"\0" * 4 + b"\x7f" * 8, "."),
    ],
)
def test_what_is_wrong_with_messagepack_is_told(body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        MessagePack().text(body)


def test_messagepack_keys_and_extensions_become_text() -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 120_000, tzinfo=UTC)
    value = {b"\xff": 1, at: 2, True: 3, 7: 4, "inner": {b"k": msgpack.ExtType(5, b"ext")}}
    assert json.loads(MessagePack().text(msgpack.packb(value, datetime=True))) == {
        "/w==": 1,
        "2024-05-06T07:08:09.120000Z": 2,
        "true": 3,
        "7": 4,
        "inner": {"aw==": base64_text(b"ext")},
    }


def test_messagepack_has_numbers_that_json_has_not() -> None:
    assert MessagePack().text(msgpack.packb([math.inf, -math.inf, math.nan])) == (
        "[Infinity,-Infinity,NaN]"
    )


# -- Avro ------------------------------------------------------------------------------------------

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


# -- Protobuf --------------------------------------------------------------------------------------

FIELD = descriptor_pb2.FieldDescriptorProto


def order_file(syntax: str = "proto3") -> Any:
    """shop.proto: an Order with a field of every kind."""
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto",
        package="shop",
        syntax=syntax,
        dependency=[TIMESTAMP_FILE.name, STRUCT_FILE.name, WRAPPERS_FILE.name],
    )
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="SENT", number=1)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="StockEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=FIELD.TYPE_INT32, label=1)
    entry.field.add(name="value", number=2, type=FIELD.TYPE_SINT64, label=1)
    kinds: list[tuple[str, int, str]] = [
        ("order_id", FIELD.TYPE_INT64, ""),
        ("total", FIELD.TYPE_UINT64, ""),
        ("paid", FIELD.TYPE_BOOL, ""),
        ("weight", FIELD.TYPE_DOUBLE, ""),
        ("customer", FIELD.TYPE_STRING, ""),
        ("photo", FIELD.TYPE_BYTES, ""),
        ("state", FIELD.TYPE_ENUM, ".shop.State"),
        ("parent", FIELD.TYPE_MESSAGE, ".shop.Order"),
        ("placed", FIELD.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
        ("rest", FIELD.TYPE_MESSAGE, ".google.protobuf.Struct"),
        ("rebate", FIELD.TYPE_MESSAGE, ".google.protobuf.Int64Value"),
    ]
    for number, (name, kind, type_name) in enumerate(kinds, 1):
        order.field.add(name=name, number=number, type=kind, type_name=type_name or None, label=1)
    order.field.add(name="tags", number=20, type=FIELD.TYPE_STRING, label=3)
    order.field.add(
        name="stock",
        number=21,
        type=FIELD.TYPE_MESSAGE,
        type_name=".shop.Order.StockEntry",
        label=3,
    )
    if syntax == "proto3":
        order.oneof_decl.add(name="_note")
        note = order.field.add(name="note", number=22, type=FIELD.TYPE_STRING, label=1)
        note.oneof_index, note.proto3_optional = 0, True
    else:
        order.field.add(name="note", number=22, type=FIELD.TYPE_STRING, label=2)
    return file


def descriptor_set(*files: Any) -> bytes:
    found = descriptor_pb2.FileDescriptorSet()
    for each in (TIMESTAMP_FILE, STRUCT_FILE, WRAPPERS_FILE):
        each.CopyToProto(found.file.add())
    found.file.extend(files)
    return found.SerializeToString()


DESCRIPTORS = descriptor_set(order_file())
PROTOBUF = Protobuf(DESCRIPTORS, "shop.Order")


def order_class(descriptors: bytes = DESCRIPTORS) -> Any:
    pool = DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


Order = order_class()
EMPTY = {
    "order_id": 0,
    "total": 0,
    "paid": False,
    "weight": 0.0,
    "customer": "",
    "photo": "",
    "state": "NEW",
    "tags": [],
    "stock": {},
}
JSON = st.recursive(
    st.none() | st.booleans() | FLOATS.filter(math.isfinite) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PROTO_ORDERS = st.fixed_dictionaries(
    {
        "order_id": LONGS,
        "total": st.integers(0, 2**64 - 1),
        "paid": st.booleans(),
        "weight": FLOATS,
        "customer": st.text(),
        "photo": st.binary(max_size=20),
        "state": st.sampled_from(["NEW", "SENT"]),
        "tags": st.lists(st.text(), max_size=3),
        "stock": st.dictionaries(st.integers(-9, 9), LONGS, max_size=3),
    },
    optional={
        "note": st.text(),
        "placed": MOMENTS,
        "rest": st.dictionaries(st.text(), JSON, max_size=3),
        "rebate": LONGS,
    },
)


def order_message(values: dict[str, Any]) -> Any:
    plain = {k: v for k, v in values.items() if k not in ("placed", "rest", "rebate")}
    message = Order(**plain)
    if "placed" in values:
        message.placed.FromDatetime(values["placed"])
    if "rest" in values:
        message.rest.SetInParent()
        message.rest.update(values["rest"])
    if "rebate" in values:
        message.rebate.value = values["rebate"]
        message.rebate.SetInParent()
    return message


@given(values=PROTO_ORDERS, parent=st.none() | PROTO_ORDERS)
def test_protobuf_comes_through(values: dict[str, Any], parent: dict[str, Any] | None) -> None:
    message = order_message(values)
    if parent is not None:
        message.parent.CopyFrom(order_message(parent))
        values = {**values, "parent": parent}

    assert json.loads(PROTOBUF.text(message.SerializeToString())) == expected(values)


@given(values=PROTO_ORDERS)
def test_protobuf_cut_anywhere_is_refused_or_shorter(values: dict[str, Any]) -> None:
    body = order_message(values).SerializeToString()
    for cut in range(len(body)):
        only_value_error(PROTOBUF, body[:cut])


@given(body=st.binary(max_size=100))
def test_random_octets_are_protobuf_or_refused(body: bytes) -> None:
    only_value_error(PROTOBUF, body)


def test_a_protobuf_field_that_knows_no_absence_is_always_there() -> None:
    assert json.loads(PROTOBUF.text(b"")) == EMPTY


def test_a_protobuf_field_that_is_set_to_its_zero_is_there() -> None:
    assert json.loads(PROTOBUF.text(Order(note="").SerializeToString())) == EMPTY | {"note": ""}


def test_protobuf_integers_are_numbers() -> None:
    text = PROTOBUF.text(Order(order_id=-(2**63), total=2**64 - 1).SerializeToString())
    assert '"order_id":-9223372036854775808,"total":18446744073709551615,' in text


def test_an_unknown_protobuf_enum_is_its_number() -> None:
    assert json.loads(PROTOBUF.text(b"\x38\x07"))["state"] == 7


def test_unknown_protobuf_fields_are_left_out() -> None:
    assert json.loads(PROTOBUF.text(b"\xf8\x07\x01")) == EMPTY


def test_whole_numbers_in_a_struct_have_no_point() -> None:
    message = Order()
    message.rest.update({"a": 5, "b": 5.5, "c": 1e300})
    rest = json.loads(PROTOBUF.text(message.SerializeToString()), parse_float=str)["rest"]
    assert rest == {"a": 5, "b": "5.5", "c": "1e+300"}


def test_protobuf_has_numbers_that_json_has_not() -> None:
    for value, text in ((math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")):
        assert f'"weight":{text},' in PROTOBUF.text(Order(weight=value).SerializeToString())


def test_a_missing_required_field_is_told() -> None:
    descriptors = descriptor_set(order_file("proto2"))
    with pytest.raises(ValueError, match="required fields are missing: note"):
        Protobuf(descriptors, "shop.Order").text(b"")


def test_a_protobuf_string_that_is_not_utf_8_is_refused() -> None:
    for syntax, reason in (("proto2", "not UTF-8"), ("proto3", "no shop.Order")):
        with pytest.raises(ValueError, match=reason):
            Protobuf(descriptor_set(order_file(syntax)), "shop.Order").text(
                b"\x2a\x01\xff\xb2\x01\x00"
            )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x00", "no shop.Order"),
        (b"\x2a\xff\xff\xff\xff\x07x", "no shop.Order"),
        (b"\x4a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10", "no shop.Order"),
        (b"\x4a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "timestamp is out of range"),
        (b"\x4a\x06\x10\xff\xff\xff\xff\x0f", "timestamp is out of range"),
    ],
)
def test_what_is_wrong_with_protobuf_is_told(body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PROTOBUF.text(body)


def test_protobuf_nested_without_end_is_refused() -> None:
    body = b""
    for _ in range(500):
        size = len(body)
        body = b"\x42" + bytes([size & 0x7F | 0x80, size >> 7]) + body
    with pytest.raises(ValueError, match=r"no shop.Order|nested too deeply"):
        PROTOBUF.text(body)


@pytest.mark.parametrize(
    ("descriptors", "message", "reason"),
    [
        (b"", "shop.Order", "not a descriptor set"),
        (b"\xff\xff", "shop.Order", "not a descriptor set"),
        (DESCRIPTORS, "Order", "no message 'Order'; did you mean 'shop.Order'"),
        (DESCRIPTORS, "shop.Oder", "did you mean 'shop.Order'"),
        (DESCRIPTORS, "zzz", r"there are google.protobuf"),
        (
            descriptor_pb2.FileDescriptorSet(file=[order_file()]).SerializeToString(),
            "shop.Order",
            r"shop.proto can't be used; was it made with --include_imports",
        ),
    ],
)
def test_what_is_wrong_with_protobuf_descriptors_is_told(
    descriptors: bytes, message: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Protobuf(descriptors, message).check()


# -- all -------------------------------------------------------------------------------------------


def only_value_error(converter: Avro | MessagePack | Protobuf, body: bytes) -> None:
    try:
        json.loads(converter.text(body))
    except ValueError as error:
        assert not isinstance(error, json.JSONDecodeError)
        assert str(error)


@pytest.mark.parametrize("converter", [MessagePack(), ORDER_AVRO, PROTOBUF], ids=repr)
def test_a_converter_travels(converter: Avro | MessagePack | Protobuf) -> None:
    converter.check()
    assert pickle.loads(pickle.dumps(converter)) == converter


@pytest.mark.parametrize(
    ("converter", "body", "module"),
    [
        (MessagePack(), b"\x02", "msgpack"),
        (Avro('"int"'), b"\x02", "fastavro.schema"),
        (Avro(), container("int", [1]), "fastavro.schema"),
        (PROTOBUF, b"", "google.protobuf.message"),
    ],
    ids=["msgpack", "avro", "avro file", "protobuf"],
)
def test_a_missing_package_is_not_the_messages_fault(
    converter: Avro | MessagePack | Protobuf,
    body: bytes,
    module: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    avro_datum.compiled.cache_clear()
    protobuf_message.compiled.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)

    for use in (converter.check, lambda: converter.text(body)):
        with pytest.raises(PackageMissing, match=r"pip install 'warren\[run\]'"):
            use()
