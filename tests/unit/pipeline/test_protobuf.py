from __future__ import annotations

import json
import math
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.struct_pb2 import DESCRIPTOR as STRUCT_FILE
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE
from google.protobuf.wrappers_pb2 import DESCRIPTOR as WRAPPERS_FILE
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pipeline.values import (
    FLOATS,
    LONGS,
    MOMENTS,
    expected,
    only_value_error,
)
from warren.pipeline.formats import Protobuf

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
