from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pipeline.values import (
    FLOATS,
    LONGS,
    MOMENTS,
    base64_text,
    expected,
    only_value_error,
)
from warren.pipeline.formats import MessagePack

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
