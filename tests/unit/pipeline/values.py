"""What the tests of several formats share."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from warren.pipeline.formats import Avro, MessagePack, Protobuf

LONGS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
MOMENTS = st.datetimes(timezones=st.just(UTC))


def base64_text(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def moment_text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


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


def only_value_error(converter: Avro | MessagePack | Protobuf, body: bytes) -> None:
    try:
        json.loads(converter.text(body))
    except ValueError as error:
        assert not isinstance(error, json.JSONDecodeError)
        assert str(error)
