"""What was read as it can be sent on: without what is of the message that was read only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warren.spark.columns import COUNTED

#: Headers that have the broker send copies, to each of a list of routing keys. It has done so for
#: the message that was read; and as text, which the column ``headers`` makes of it, it refuses one.
_COPIES = frozenset(("CC", "BCC"))
_LEFT_OUT = COUNTED | _COPIES

Headers = list[tuple[str, Any]]


def sent_on(headers: Iterable[tuple[str, Any]] | None) -> Headers | None:
    """Headers of a message that was read, for one that is published."""
    if headers is None:
        return None
    return [header for header in headers if header[0] not in _LEFT_OUT]
