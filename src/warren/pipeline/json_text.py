"""Values as the JSON text that Spark's ``from_json`` reads."""

from __future__ import annotations

from binascii import b2a_base64
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring
from math import isfinite

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Text in quotes.
quoted = encode_basestring


def binary(octets: bytes) -> str:
    """What a BINARY column reads: base64."""
    return f'"{b2a_base64(octets, newline=False).decode("ascii")}"'


def boolean(value: object) -> str:
    return "true" if value else "false"


def real(value: float) -> str:
    """A float; NaN and Infinity without quotes, as Spark and Python read them."""
    if isfinite(value):
        return repr(value)
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def instant(micros: int) -> str:
    """What a TIMESTAMP column reads, from microseconds since 1970. In quotes.

    Raises:
        OverflowError: it is not in the years 1 to 9999.
    """
    return f'"{moment(_EPOCH + timedelta(microseconds=micros))}"'


def moment(at: datetime) -> str:
    """A time with a zone, as text in UTC."""
    return f"{at.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"


def decimal(unscaled: int, scale: int) -> str:
    """What a DECIMAL column reads: all its digits, no exponent."""
    if not scale:
        return str(unscaled)
    digits = str(abs(unscaled)).zfill(scale + 1)
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
