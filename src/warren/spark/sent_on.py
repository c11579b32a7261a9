"""What was read as it can be sent on: without what is of the message that was read only.

A text of 255 octets that are not UTF-8 has 765 when it was read, and headers have a longer form as
text, so not all that a broker gave out could go back. ``cut`` and ``within`` see to that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warren.client.publish_columns import encode_column
from warren.spark.columns import COUNTED

#: Headers that have the broker send copies, to each of a list of routing keys. It has done so for
#: the message that was read; and as text, which the column ``headers`` makes of it, it refuses one.
_COPIES = frozenset(("CC", "BCC"))
_LEFT_OUT = COUNTED | _COPIES

_MOST = 255
#: Octets of a table with nothing in it.
_EMPTY = 4

Headers = list[tuple[str, Any]]


def sent_on(headers: Iterable[tuple[str, Any]] | None) -> Headers | None:
    """Headers of a message that was read, for one that is published."""
    if headers is None:
        return None
    return [header for header in headers if header[0] not in _LEFT_OUT]


def cut(text: str | None) -> str | None:
    """The beginning of a text, as much as a short string holds."""
    if text is None or len(text) * 4 <= _MOST:
        return text
    octets = text.encode()
    return text if len(octets) <= _MOST else octets[:_MOST].decode(errors="ignore")


def with_names_cut(headers: Headers | None) -> Headers | None:
    """Headers whose names fit; of those that become the same, the first."""
    if headers is None:
        return None
    found: dict[str, Any] = {}
    for name, value in headers:
        found.setdefault(cut(name) or "", value)
    return list(found.items())


def within(headers: Iterable[tuple[str, Any]], octets: int) -> Headers:
    """Those of them, from the first on, that find room in a table of so many octets."""
    kept: Headers = []
    left = octets - _EMPTY
    for header in headers:
        size = len(encode_column("headers", [[header]])[0]) - _EMPTY
        if size <= left:
            kept.append(header)
            left -= size
    return kept
