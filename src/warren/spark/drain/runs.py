"""Who made a segment: a run, and whose segments a run may read as its own."""

from __future__ import annotations

import time
import uuid

from warren.errors import LoadedTwice, ReadByAnother
from warren.spark.ledger.segment import Segment

_BETWEEN = "/"


def new_source() -> str:
    """An id that begins with when it was made, in milliseconds since 1970."""
    return f"{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}"


def run_of(query: str, source: str) -> str:
    """A source of a streaming query; "" outside of one."""
    return f"{query}{_BETWEEN}{source}" if query else ""


def require_ours(segment: Segment, run: str, place: str, *, own_only: bool) -> None:
    """Raises ReadByAnother or LoadedTwice if a segment is not for this run to read.

    A query takes over what an earlier one left in its ledger, and what it has written itself
    before its first offsets were lost. What another source of the same query has made since is
    that one's: each would get a part of the messages.
    """
    if segment.run == run:
        return
    if own_only:
        raise ReadByAnother(place, segment.queue, segment.start)
    query, _, source = run.partition(_BETWEEN)
    theirs, _, other = segment.run.partition(_BETWEEN)
    if source and other and query == theirs and segment.written_at >= _made_at(source):
        raise LoadedTwice(place, segment.queue)


def _made_at(source: str) -> float:
    return int(source.partition("-")[0]) / 1000
