from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.spark.sink.sent import encoded, routing_key_of, sent
from warren.errors import RowRefused


def headers(*rows: list[tuple[str, Any]] | None, of: pa.DataType | None = None) -> pa.Array:
    return pa.array(rows, pa.map_(pa.string(), of or pa.string()))


def test_headers_that_are_of_the_message_that_was_read_are_not_published() -> None:
    counted = [("x-delivery-count", "3"), ("mine", "1"), ("x-acquired-count", "4")]
    copied = [("CC", '["a", "b"]'), ("mine", "2"), ("BCC", "a")]

    found = sent({"headers": headers(counted, None, [("x-delivery-count", "3")], copied)})

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

    (found,) = sent(
        {
            "timestamp": micros.view(kind),
            "headers": pa.MapArray.from_arrays([0, 1], ["at"], micros.view(kind)),
        }
    )

    assert (found.timestamp, found.headers) == (1_767_225_600, {"at": 1_767_225_600})


def test_a_header_may_be_a_time_that_python_has_not() -> None:
    year_294247 = 9_223_372_036_854_000_000

    (found,) = sent(
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
        sent({"headers": headers([("a", 1)], [("b", value)], of=kind)})

    assert str(refused.value) == f"column 'headers', row 1 of its partition: {problem}"


# -- what is too long ------------------------------------------------------------------------------
def test_a_text_that_is_too_long_is_cut_where_a_character_ends() -> None:
    texts = ["\N{REPLACEMENT CHARACTER}" * 86, "x" * 256, "x" * 255, None]

    found = sent({"correlation_id": pa.array(texts)}, onTooLong="shorten")

    assert [each.correlation_id for each in found] == [texts[0][:85], texts[2], texts[2], None]


def test_a_routing_key_that_is_too_long_is_cut() -> None:
    rows = {"body": pa.array([b"x"]), "routing_key": pa.array(["é" * 128])}

    (message,) = encoded(pa.record_batch(rows), onTooLong="shorten")

    assert routing_key_of(message) == "é" * 127


def test_headers_that_leave_no_room_are_left_out_and_the_first_stay() -> None:
    first, large, last = ("reason", "not JSON"), ("large", "x" * 131_050), ("last", "y" * 50)
    rows = {"headers": headers([first, large, last], [first, last]), "type": pa.array(["t"] * 2)}

    found = sent(rows, onTooLong="shorten")

    assert [each.headers for each in found] == [dict([first, last])] * 2
    assert [each.type for each in found] == ["t"] * 2


def test_names_of_headers_are_cut_and_the_first_of_those_that_become_one_counts() -> None:
    given = [("n" * 256, "first"), ("n" * 255, "second"), ("m" * 256, "other")]

    (found,) = sent({"headers": headers(given)}, onTooLong="shorten")

    assert found.headers == {"n" * 255: "first", "m" * 255: "other"}


@pytest.mark.parametrize(
    ("column", "values", "remedy"),
    [
        ("type", pa.array(["x" * 256]), "255 is the most; option onTooLong=shorten makes it fit"),
        ("routing_key", pa.array(["x" * 256]), "the most; option onTooLong=shorten makes it fit"),
        ("headers", headers([("n" * 256, "v")]), "the most; option onTooLong=shorten makes it fit"),
        (
            "headers",
            headers([("n", "v" * 131_072)]),
            "takes 131052; option onTooLong=shorten makes",
        ),
        ("exchange", pa.array(["x" * 256]), "255 is the most$"),
        ("priority", pa.array([256]), "255$"),
    ],
)
def test_what_would_fit_if_it_were_shorter_is_refused_with_the_remedy(
    column: str, values: pa.Array, remedy: str
) -> None:
    with pytest.raises(RowRefused, match=remedy):
        sent({column: values})
