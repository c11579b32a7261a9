from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking_reader import Deliveries
from warren.spark.columns import ARROW_SCHEMA, PROPERTIES
from warren.spark.deliveries import to_batch


def deliveries(*messages: tuple[bytes, dict[str, Any]]) -> Deliveries:
    took = Deliveries()
    for body, properties in messages:
        took.bodies.append(body)
        took.properties.append(encode_properties(Properties(**properties)))
        took.routes.append(b"\x02ex\x03key")
    return took


def rows(*messages: tuple[bytes, dict[str, Any]]) -> list[dict[str, Any]]:
    return to_batch(deliveries(*messages), "q", 7, 1_000_000).to_pylist()


def test_a_batch_has_the_schema_whatever_is_in_it() -> None:
    for took in (
        Deliveries(),
        deliveries((b"a", {})),
        deliveries((b"a", {}), (b"b", {"type": "t"})),
    ):
        assert to_batch(took, "q", 0, 0).schema.equals(ARROW_SCHEMA)


def test_messages_that_are_alike_and_those_that_differ_come_out_the_same() -> None:
    alike = rows(*[(b"x", {"type": "t", "headers": {"a": 1}})] * 3)
    mixed = rows((b"x", {"type": "t", "headers": {"a": 1}}), (b"y", {"priority": 2}))

    assert alike[0] | {"offset": 0} == mixed[0] | {"offset": 0}
    assert [row["offset"] for row in alike] == [7, 8, 9]
    assert (mixed[1]["type"], mixed[1]["priority"]) == (None, 2)


def test_routes_that_differ_are_told_apart() -> None:
    took = deliveries((b"a", {}), (b"b", {}))
    took.routes[1] = b"\x00\x05other"

    found = to_batch(took, "q", 0, 0).to_pylist()

    assert [(row["exchange"], row["routing_key"]) for row in found] == [
        ("ex", "key"),
        ("", "other"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ü", "ü"),
        (5, "5"),
        (True, "true"),
        (1.5, "1.5"),
        (None, None),
        (b"raw", "raw"),
        (b"\xff", "/w=="),
        ([1, "x", {"a": None}], '[1, "x", {"a": null}]'),
        ({"deep": {"er": b"x"}}, '{"deep": {"er": "x"}}'),
    ],
)
def test_a_header_is_text(value: Any, text: str | None) -> None:
    (row,) = rows((b"", {"headers": {"name": value}}))

    assert row["headers"] == [("name", text)]


def test_text_that_is_not_utf8_keeps_what_can_be_read() -> None:
    took = deliveries((b"", {"type": "t"}))
    took.properties[0] = took.properties[0][:-1] + b"\xff"

    assert to_batch(took, "q", 0, 0).to_pylist()[0]["type"] == "\N{REPLACEMENT CHARACTER}"


def test_a_property_list_that_can_not_be_read_costs_the_properties_only() -> None:
    took = deliveries((b"body", {"type": "t"}))
    took.properties[0] = took.properties[0][:2] + b"\xff"  # a text of 255 octets that has none
    took.properties.append(b"\x20\x00\x00\x00\x00\xff")  # headers that end too early
    took.bodies.append(b"b")
    took.routes.append(b"\0\0")

    found = to_batch(took, "q", 0, 0).to_pylist()

    assert [row["body"] for row in found] == [b"body", b"b"]


def test_a_time_that_nobody_can_show_is_none() -> None:
    now, never = rows((b"", {"timestamp": 1_700_000_000}), (b"", {"timestamp": 2**63}))

    assert now["timestamp"].timestamp() == 1_700_000_000
    assert never["timestamp"] is None


TEXT = st.none() | st.text(max_size=20)


@given(
    st.lists(
        st.fixed_dictionaries(
            {column.name: TEXT for column in PROPERTIES if column.sql == "STRING"}
            | {"priority": st.none() | st.integers(0, 255)}
        ),
        min_size=1,
        max_size=5,
    )
)
def test_properties_come_out_as_they_went_in(given_: list[dict[str, Any]]) -> None:
    found = rows(*((b"", properties) for properties in given_))

    for row, properties in zip(found, given_, strict=True):
        assert {name: row[name] for name in properties} == properties
