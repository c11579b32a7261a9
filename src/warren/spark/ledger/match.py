"""Which redelivered messages a ledger holds already: the in-doubt rule, pure.

Messages are compared by what the broker does not change when it gives them out again: exchange,
routing key, properties and body, without the count of deliveries that quorum queues put into the
headers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from warren.spark.columns import COLUMNS, COUNTED

_COMPARED = [column.name for column in COLUMNS if column.writable]

Key = Hashable
_MESSAGE_ID, _PRIORITY = _COMPARED.index("message_id"), _COMPARED.index("priority")
#: Bodies of more octets are known by a digest: a hundred queues may be compared at the same time.
_LONG, _DIGEST = 32, 20


def keys_of(batch: pa.RecordBatch) -> list[Key]:
    """What each row is compared by."""
    columns = [batch.column(name).to_pylist() for name in _COMPARED]
    at = _COMPARED.index("headers")
    columns[at] = [_headers(headers) for headers in columns[at]]
    at = _COMPARED.index("body")
    columns[at] = [_body(body) for body in columns[at]]
    return list(zip(*columns, strict=True))


def _body(body: bytes) -> Key:
    # A pair is no body: what looks like a digest is not taken for one.
    return body if len(body) <= _LONG else (len(body), blake2b(body, digest_size=_DIGEST).digest())


def came_twice(batch: pa.RecordBatch) -> bool:
    """True if rows of one window look like a message that was taken back and given out again.

    Equal messages alone do not: the second row must have been given out more often than the first,
    by the counts of quorum queues, which alone do such a thing on a channel that lives.
    """
    seen: dict[Key, int] = {}
    for key, count in zip(keys_of(batch), delivery_counts(batch), strict=True):
        if count > seen.get(key, count):
            return True
        seen[key] = count
    return False


def delivery_counts(batch: pa.RecordBatch) -> list[int]:
    """How often each row was given out before, by the word of a quorum queue; 0 by others'.

    A publisher may have set such a header himself. But a quorum queue sets its own on whatever it
    gives out again: one that is not on all of that is not the queue's.
    """
    flags = batch.column("redelivered").to_pylist()
    headers = batch.column("headers").to_pylist()
    again = [dict(given or ()) for flag, given in zip(flags, headers, strict=True) if flag]
    by_queue = [name for name in COUNTED if all(_is_count(given.get(name)) for given in again)]
    counts = iter([sum(int(given[name]) for name in by_queue) for given in again])
    return [next(counts) if flag else 0 for flag in flags]


def _is_count(value: str | None) -> bool:
    return value is not None and len(value) < 20 and value.isascii() and value.isdigit()


def with_ids(keys: Sequence[Key]) -> list[Key]:
    """Those that nobody can take for another one."""
    return [key for key in keys if key[_MESSAGE_ID] is not None]  # type: ignore[index]


def _headers(headers: list[tuple[str, Any]] | None) -> Key:
    kept = [(name, value) for name, value in headers or () if name not in COUNTED]
    return tuple(sorted(kept, key=lambda item: item[0])) or None


@dataclass(frozen=True, slots=True)
class Match:
    """Which of the returned messages to drop, and which segments in doubt came back whole."""

    dropped: frozenset[int]
    returned_whole: tuple[bool, ...]
    #: Something came that stands behind all that these segments hold.
    passed: bool


def match_in_doubt(
    returned: Sequence[Key],
    in_doubt: Sequence[Sequence[Key]],
    *,
    in_place: bool = False,
    forgotten: Sequence[Key] = (),
) -> Match:
    """Compare redelivered messages, in the order they came, with segments, oldest first.

    Acknowledgements that were not read give back all messages of the segments concerned, in
    order: such a run is dropped as it is, equal messages or not. Of anything else a message is
    dropped only if one single row looks like it.

    What was taken last stands in front of all that is left, but for what was ``forgotten``: what
    stands behind any other message was published since. So a single message without an id is
    dropped only in front of that; and a run, too, where the queue puts things back ``in_place``.
    (Where messages have priorities, others may overtake.)
    """
    rows = [key for segment in in_doubt for key in segment]
    may_overtake = any(key[_PRIORITY] is not None for key in (*rows, *returned))  # type: ignore[index]
    head = len(returned) if may_overtake else _head(rows, returned, set(forgotten))
    dropped: set[int] = set()
    whole = [not segment for segment in in_doubt]
    for first in range(len(in_doubt)):
        run = [key for segment in in_doubt[first:] for key in segment]
        found = _subsequence(run, returned[:head] if in_place else returned)
        if found is not None:
            dropped.update(found)
            whole[first:] = [True] * (len(in_doubt) - first)
            break
    left = {place: Counter(in_doubt[place]) for place, done in enumerate(whole) if not done}
    alike: Counter[Key] = Counter()
    for counter in left.values():
        alike.update(counter)
    for index, key in enumerate(returned):
        is_known = index < head or key[_MESSAGE_ID] is not None  # type: ignore[index]
        if index not in dropped and alike[key] == 1 and is_known:
            alike[key] = 0
            dropped.add(index)
            for counter in left.values():
                counter.pop(key, None)
    for place, counter in left.items():
        whole[place] = not counter
    return Match(frozenset(dropped), tuple(whole), in_place and head < len(returned))


def _head(rows: Sequence[Key], returned: Sequence[Key], forgotten: Collection[Key]) -> int:
    """How many of the first that came back are among these rows, in their order."""
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(rows):
        places.setdefault(key, []).append(place)
    at = 0
    for index, key in enumerate(returned):
        ahead = places.get(key, [])
        next_one = bisect_left(ahead, at)
        if next_one < len(ahead):
            at = ahead[next_one] + 1
        elif key not in forgotten:
            return index
    return len(returned)


def _subsequence(rows: Sequence[Key], returned: Sequence[Key]) -> list[int] | None:
    """Where all of ``rows`` stand in ``returned``, in order; None if not all do."""
    if not rows:
        return None
    found: list[int] = []
    for index, key in enumerate(returned):
        if key == rows[len(found)]:
            found.append(index)
            if len(found) == len(rows):
                return found
    return None


def match_settled(
    returned: Sequence[Key], recent: Sequence[Key], *, shortest: int = 1
) -> frozenset[int]:
    """Which messages a broker gives out again that forgot acknowledgements when it was killed.

    It forgets the last ones: what comes back is the end of what was ever taken, in order, in
    front of all else. That run is dropped if none of its messages looks like another one, taken or
    returned, and if there are as many as ``shortest``; and, wherever it stands, a message with an
    id of its own. Two equal messages are never taken for one: doubling one is better than losing
    one.
    """
    alike, back = Counter(recent), Counter(returned)
    first = {key: index for index, key in reversed(list(enumerate(returned)))}
    dropped = {
        index
        for key, index in first.items()  # a row stands for one message only
        if alike[key] == 1 and key[_MESSAGE_ID] is not None  # type: ignore[index]
    }
    length = _forgotten(returned, recent, alike, back)
    if length >= shortest:
        dropped.update(range(length))
    return frozenset(dropped)


def _forgotten(
    returned: Sequence[Key], recent: Sequence[Key], alike: Counter[Key], back: Counter[Key]
) -> int:
    """How many of the first that came back are, in order, the last that were taken."""
    if len(recent) < 2 or not returned:
        return 0
    # None of the run looks like another, so where the first one stands says how long it must be.
    head = returned[0]
    if alike[head] != 1 or back[head] != 1:
        return 0
    length = len(recent) - recent.index(head)
    run = recent[-length:]
    same = length <= len(returned) and list(returned[:length]) == list(run)
    return length if same and all(alike[key] == back[key] == 1 for key in run) else 0
