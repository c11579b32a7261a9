"""Basic properties: any of the fourteen, as pika and pamqp write them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pamqp.commands
import pamqp.header
import pika.spec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.amqp.wire_values import Typed, entries, sized, tables
from warren.amqp.properties import (
    FIELDS,
    Properties,
    PropertiesError,
    check_properties,
    decode_properties,
    decode_property,
    encode_properties,
    encode_property,
    join_properties,
    split_properties,
)
from warren.amqp.tables import Table, decode_table

NAMES = [name for name, _, _ in FIELDS]
words = st.text(max_size=60).filter(lambda value: len(value.encode()) <= 255)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "shortstr": words,
    "octet": st.integers(0, 255),
    "timestamp": st.integers(0, 2**64 - 1),
    "table": tables().map(lambda table: decode_table(entries(table))),
}
#: Pika reads and writes these header types without a loss.
PIKA_HEADERS = tables("tSVxAF").map(lambda table: decode_table(entries(table)))
FULL = Properties(
    content_type="text/plain",
    content_encoding="gzip",
    headers=Table({"tries": 3, "from": "here"}),
    delivery_mode=2,
    priority=9,
    correlation_id="c-1",
    reply_to="answers",
    expiration="60000",
    message_id="m-1",
    timestamp=1_700_000_000,
    type="order",
    user_id="guest",
    app_id="shop",
    cluster_id="old",
)


def properties(**other: st.SearchStrategy[Any]) -> st.SearchStrategy[Properties]:
    """Any of the properties, in any company."""
    given_ones = {name: other.get(name, VALUES[domain]) for name, _, domain in FIELDS}
    return st.fixed_dictionaries({}, optional=given_ones).map(lambda values: Properties(**values))


def pika_octets(values: pika.spec.BasicProperties) -> bytes:
    return b"".join(values.encode())


# -- there and back ------------------------------------------------------------------------------
@given(properties())
def test_properties_go_there_and_back(values: Properties) -> None:
    octets = encode_properties(values)

    assert decode_properties(octets) == values
    check_properties(octets)


@given(properties())
def test_properties_are_cut_into_raw_values_and_put_together_again(values: Properties) -> None:
    octets = encode_properties(values)
    parts = split_properties(octets)

    assert join_properties(parts) == octets
    assert {name: decode_property(name, part) for name, part in parts.items()} == {
        name: value for name in NAMES if (value := getattr(values, name)) is not None
    }


@given(properties(), st.sampled_from(["expiration", "reply_to", "headers"]))
def test_one_property_is_taken_off_and_the_others_keep_their_octets(
    values: Properties, name: str
) -> None:
    parts = split_properties(encode_properties(values))
    parts.pop(name, None)

    assert decode_properties(join_properties(parts)) == Properties(**{**_given(values), name: None})


def _given(values: Properties) -> dict[str, Any]:
    return {name: getattr(values, name) for name in NAMES}


def test_properties_are_put_together_in_the_order_of_the_wire() -> None:
    late_first = {
        "app_id": encode_property("app_id", "a"),
        "content_type": encode_property("content_type", "c"),
    }

    assert join_properties(late_first) == b"\x80\x08\x01c\x01a"


# -- other codecs --------------------------------------------------------------------------------
@given(properties(headers=PIKA_HEADERS, timestamp=st.integers(0, 2**63)))
def test_pika_writes_the_same_octets(values: Properties) -> None:
    theirs = pika.spec.BasicProperties(**_given(values))

    assert encode_properties(values) == pika_octets(theirs)


@given(properties(headers=PIKA_HEADERS, timestamp=st.integers(0, 2**63)))
def test_pika_reads_what_we_write(values: Properties) -> None:
    theirs = pika.spec.BasicProperties()
    theirs.decode(encode_properties(values))

    assert {name: getattr(theirs, name) for name in NAMES if name != "headers"} == {
        name: value for name, value in _given(values).items() if name != "headers"
    }
    assert (theirs.headers is None) == (values.headers is None)


def test_pamqp_writes_and_reads_the_same_octets() -> None:
    values = _given(FULL) | {
        "timestamp": datetime.fromtimestamp(1_700_000_000, UTC),
        "message_type": FULL.type,
        "headers": {"tries": 70_000, "from": "here"},
        "cluster_id": "",
    }
    del values["type"]
    theirs = pamqp.header.ContentHeader(0, 5, pamqp.commands.Basic.Properties(**values)).marshal()

    ours = decode_properties(theirs[12:])
    wanted = _given(FULL) | {"headers": {"tries": 70_000, "from": "here"}, "cluster_id": None}
    assert _given(ours) | {"cluster_id": ours.cluster_id or None} == wanted
    assert encode_properties(ours) == theirs[12:]


# -- what can't be read --------------------------------------------------------------------------
def test_a_property_list_cut_anywhere_is_an_error() -> None:
    whole = encode_properties(FULL)

    for cut in range(len(whole)):
        with pytest.raises(PropertiesError):
            check_properties(whole[:cut])


@pytest.mark.parametrize("name", NAMES)
def test_octets_behind_the_last_property_are_an_error(name: str) -> None:
    octets = encode_properties(Properties(**{name: getattr(FULL, name)}))

    with pytest.raises(PropertiesError, match="behind the last property"):
        split_properties(octets + b"\x00")


def test_flags_that_announce_more_flags_are_an_error() -> None:
    with pytest.raises(PropertiesError, match="0x0001"):
        split_properties(b"\x00\x01\x00\x00")


def test_headers_that_are_no_table_are_an_error_although_their_length_is_right() -> None:
    octets = b"\x20\x00" + sized(b"\x01kZ")

    assert split_properties(octets) == {"headers": sized(b"\x01kZ")}
    with pytest.raises(PropertiesError):
        check_properties(octets)
    with pytest.raises(PropertiesError):
        decode_properties(octets)


@given(st.binary(max_size=60))
def test_any_bytes_are_properties_or_a_properties_error(data: bytes) -> None:
    try:
        decode_properties(data)
    except PropertiesError:
        with pytest.raises(PropertiesError):
            check_properties(data)


def test_a_short_property_has_at_most_255_octets() -> None:
    assert encode_property("type", "x" * 255)
    with pytest.raises(PropertiesError, match="type of 256 octets"):
        encode_property("type", "x" * 256)


# -- rules ---------------------------------------------------------------------------------------
def test_nothing_set_is_two_octets() -> None:
    assert encode_properties(Properties()) == b"\x00\x00"
    assert decode_properties(b"\x00\x00") == Properties()


def test_an_empty_value_is_not_the_same_as_none() -> None:
    values = Properties(content_type="", headers=Table(), priority=0)

    assert decode_properties(encode_properties(values)) == values
    assert encode_properties(values) == b"\xa8\x00\x00\x00\x00\x00\x00\x00"


def test_headers_may_be_given_as_a_plain_dict() -> None:
    octets = encode_properties(Properties(headers={"n": 1}))

    assert octets == b"\x20\x00" + sized(entries({"n": Typed("I", 1)}))


def test_properties_are_values() -> None:
    assert asdict(Properties(type="a")) == asdict(Properties()) | {"type": "a"}
    assert len({Properties(type="a"), Properties(type="a"), Properties(type="b")}) == 2
