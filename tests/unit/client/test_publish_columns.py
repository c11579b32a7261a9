"""Columns to messages: the same octets as one message at a time."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.amqp.client_hot import encode_message, publish_frame
from warren.amqp.properties import Properties, decode_properties, encode_properties
from warren.amqp.tables import Table
from warren.client.publish_columns import (
    Routes,
    Seconds,
    ValueRefused,
    encode_column,
    encode_messages,
    join_properties,
    numbered_ids,
    require_room,
    route_of,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "content_type": st.none() | TEXT,
            "headers": st.none() | st.dictionaries(TEXT, TEXT, max_size=3),
            "delivery_mode": st.none() | st.integers(0, 255),
            "message_id": TEXT,
            "timestamp": st.none() | st.integers(0, 2**40),
            "app_id": st.none() | TEXT,
        }
    ),
    min_size=1,
    max_size=8,
)


@given(rows=ROWS)
def test_columns_make_the_same_octets_as_single_messages(rows: list[dict[str, Any]]) -> None:
    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name == "headers":
            values = [None if each is None else list(each.items()) for each in values]
        columns[name] = encode_column(name, values)
    bodies = [row["message_id"].encode() for row in rows]

    listed = join_properties(columns, {}, len(rows))
    messages = encode_messages(repeat(Routes(mandatory=False).frame("e", "k")), listed, bodies, 64)

    publish = publish_frame(1, "e", "k", mandatory=False)
    for row, message, body in zip(rows, messages, bodies, strict=True):
        headers = None if row["headers"] is None else Table(row["headers"])
        alone = encode_properties(Properties(**(row | {"headers": headers})))
        assert message == encode_message(publish, 1, alone, body, 64)


def test_a_constant_stands_where_a_column_has_nothing() -> None:
    columns = {"type": encode_column("type", ["order", None])}
    constants = {"type": encode_column("type", ["other"])[0], "delivery_mode": b"\x02"}
    listed = [decode_properties(each) for each in join_properties(columns, constants, 2)]
    assert [(each.type, each.delivery_mode) for each in listed] == [("order", 2), ("other", 2)]


def test_headers_keep_their_types() -> None:
    pairs = [("n", 5), ("t", Seconds(1767225600)), ("b", True), ("x", b"\xff")]
    (listed,) = join_properties({"headers": encode_column("headers", [pairs])}, {}, 1)
    headers = decode_properties(listed).headers
    assert headers == {"n": 5, "t": 1767225600, "b": True, "x": b"\xff"}
    assert isinstance(headers, Table)
    assert headers.kinds["t"] == "timestamp"


def test_ids_count_the_rows() -> None:
    listed = join_properties({"message_id": numbered_ids("q-0-", 9, 2)}, {}, 2)
    assert [decode_properties(each).message_id for each in listed] == ["q-0-9", "q-0-10"]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("type", "é" * 128, "256 octets; 255 is the most"),
        ("priority", 256, "256 is not between 0 and 255"),
        ("priority", -1, "-1 is not between 0 and 255"),
        ("timestamp", -1, "before 1970"),
        ("headers", [("k" * 256, "v")], "a key of 256 octets"),
        ("headers", [("a", 1.5), ("b", float("nan"))], "'b' is nan, and a header holds finite"),
        ("headers", [("b", float("-inf"))], "'b' is -inf, and a header holds finite numbers"),
        ("headers", [("b", Seconds(-1))], "'b' is a time before 1970"),
        ("headers", [("b", 2**63)], "int too large to convert"),
    ],
)
def test_a_value_that_has_no_form_on_the_wire_is_refused_with_its_row(
    name: str, value: Any, problem: str
) -> None:
    with pytest.raises(ValueRefused, match=problem) as refused:
        encode_column(name, [None, value])
    assert refused.value.row == 1


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="256 octets"):
        Routes(mandatory=True).frame("", "k" * 256)


def test_a_message_tells_where_it_goes() -> None:
    (message,) = encode_messages([Routes(mandatory=True).frame("e", "kéy")], [b"\0\0"], [b""], 0)
    assert route_of(message) == ("e", "kéy")


def test_properties_that_do_not_fit_into_a_frame_are_named_with_their_row() -> None:
    most = 4096 - 8 - 12
    require_room([bytes(most), b""], 4096)
    require_room([bytes(1 << 20)], 0)  # no limit

    with pytest.raises(ValueRefused, match=f"properties are {most + 1} octets") as refused:
        require_room([b"", bytes(most + 1)], 4096)
    assert refused.value.row == 1
