from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from warren.amqp.properties import Properties, decode_properties
from warren.errors import RowRefused
from warren.spark.sink.options import SinkOptions
from warren.spark.sink.rows import RowEncoder

#: Behind the frame of basic.publish, the head of a frame, class, weight and size of the body.
_PROPERTIES_AT = 7 + 12


def encoded(rows: dict[str, pa.Array], **options: str) -> list[Properties]:
    """The properties of the messages that rows become."""
    given = SinkOptions.parse({"uri": "amqp://localhost", "exchange": "shop", **options})
    batch = pa.record_batch({"body": pa.array([b"body"] * len(next(iter(rows.values())))), **rows})
    places = {name: place for place, name in enumerate(batch.schema.names)}
    (messages,) = RowEncoder(given, places, "id-").encode(batch, 131_072)
    return [_properties(message) for message in messages]


def _properties(message: bytes) -> Properties:
    publish = 8 + int.from_bytes(message[3:7], "big")
    size = int.from_bytes(message[publish + 3 : publish + 7], "big")
    start = publish + _PROPERTIES_AT
    return decode_properties(message[start : start + size - 12])


def headers(*rows: list[tuple[str, Any]] | None, of: pa.DataType | None = None) -> pa.Array:
    return pa.array(rows, pa.map_(pa.string(), of or pa.string()))


def test_headers_that_are_of_the_message_that_was_read_are_not_published() -> None:
    counted = [("x-delivery-count", "3"), ("mine", "1"), ("x-acquired-count", "4")]
    copied = [("CC", '["a", "b"]'), ("mine", "2"), ("BCC", "a")]

    found = encoded({"headers": headers(counted, None, [("x-delivery-count", "3")], copied)})

    assert [each.headers for each in found] == [{"mine": "1"}, None, {}, {"mine": "2"}]


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ-5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.parametrize("zone", [None, "UTC", "GMT+8", "+08:00", "America/New_York"])
def test_a_time_is_the_same_in_any_zone_of_session_and_worker(zone: str | None) -> None:
    kind = pa.timestamp("us", tz=zone)
    micros = pa.array([1_767_225_600_999_999], pa.int64())

    (found,) = encoded(
        {
            "timestamp": micros.view(kind),
            "headers": pa.MapArray.from_arrays([0, 1], ["at"], micros.view(kind)),
        }
    )

    assert (found.timestamp, found.headers) == (1_767_225_600, {"at": 1_767_225_600})


def test_a_header_may_be_a_time_that_python_has_not() -> None:
    year_294247 = 9_223_372_036_854_000_000

    (found,) = encoded(
        {"headers": headers([("at", year_294247), ("never", None)], of=pa.timestamp("us", "UTC"))}
    )

    assert found.headers == {"at": year_294247 // 1_000_000, "never": None}


@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        (float("nan"), pa.float64(), "'b' is nan, and a header holds finite numbers only"),
        (float("inf"), pa.float32(), "'b' is inf, and a header holds finite numbers only"),
        (-1, pa.timestamp("us", "UTC"), "'b' is a time before 1970"),
        (-1, pa.timestamp("us"), "'b' is a time before 1970"),
    ],
)
def test_a_header_that_no_message_can_have_is_named_with_its_row(
    value: Any, kind: pa.DataType, problem: str
) -> None:
    with pytest.raises(RowRefused) as refused:
        encoded({"headers": headers([("a", 1)], [("b", value)], of=kind)})

    assert str(refused.value) == f"column 'headers', row 1 of its partition: {problem}"
