"""What a micro-batch takes, and how its queues are spread over tasks: pure, no clock, no sockets.

An offset is ``{"ledger": id, "queues": {name: position}, "source": id}``. The end of a batch is an
upper bound: a queue may turn out to hold less. ``source`` tells two sources of one query apart.
Another key, ``begin``, says where streams begin that do so in the batch that ends there: when it is
run again, they may begin elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warren.groups.assign import pack

Offset = dict[str, Any]
Positions = dict[str, int]


def offset_of(
    ledger: str,
    positions: Mapping[str, int],
    source: str = "",
    begin: Mapping[str, int] | None = None,
) -> Offset:
    offset = {"ledger": ledger, "queues": dict(sorted(positions.items())), "source": source}
    return {**offset, "begin": dict(sorted(begin.items()))} if begin else offset


def positions_of(offset: Mapping[str, Any]) -> Positions:
    return {name: int(position) for name, position in offset["queues"].items()}


def begin_of(offset: Mapping[str, Any]) -> Positions:
    """Where streams begin in the batch that ends there."""
    return {name: int(position) for name, position in offset.get("begin", {}).items()}


def still_to_begin(offset: Mapping[str, Any]) -> Positions:
    """Streams of which nothing was read up to there."""
    positions = positions_of(offset)
    return {name: at for name, at in begin_of(offset).items() if positions.get(name) == at}


def first_of(start: Mapping[str, Any], end: Mapping[str, Any], new: Positions) -> Positions:
    """Where each queue of a batch begins; ``new`` are those that came since ``start`` was made."""
    known = positions_of(start)
    read = known.keys() - still_to_begin(start).keys()
    begin = {name: at for name, at in begin_of(end).items() if name not in read}
    return {**known, **new, **begin}


def source_of(offset: Mapping[str, Any]) -> str:
    """Which source's it is; "" in checkpoints from before there was a word of it."""
    return str(offset.get("source", ""))


def shares(ready: Mapping[str, int], limit: int | None, turn: int = 0) -> dict[str, int]:
    """How many messages each queue gives: all, or the same number each until the limit is reached.

    A queue with few messages gives them all and leaves its share to the others. Where there is less
    than one for each, ``turn``, how many they have given before, says whose turn it is.
    """
    if limit is None or sum(ready.values()) <= limit:
        return dict(ready)
    some = sorted(queue for queue, count in ready.items() if count)
    if limit < len(some):
        taking = [some[(turn + place) % len(some)] for place in range(limit)]
        return dict.fromkeys(ready, 0) | dict.fromkeys(taking, 1)
    given: dict[str, int] = {}
    left = limit
    waiting = sorted(ready.items(), key=lambda item: (item[1], item[0]))
    for place, (queue, count) in enumerate(waiting):
        fair = left // (len(waiting) - place)
        # What doesn't divide goes to the fullest queues, which come last.
        given[queue] = min(count, fair)
        left -= given[queue]
    return given


def shares_of_octets(
    ready: Mapping[str, int], means: Mapping[str, int], limit: int
) -> dict[str, int]:
    """The same for a limit of octets, by what a message of each queue weighs.

    At least one message of a queue that has any: a heavy one must not wait for ever.
    """
    given: dict[str, int] = {}
    left = limit
    waiting = sorted(ready.items(), key=lambda item: (item[1] * means[item[0]], item[0]))
    for place, (queue, count) in enumerate(waiting):
        fair = left // (len(waiting) - place)
        given[queue] = min(count, max(1, fair // means[queue]))
        left = max(0, left - given[queue] * means[queue])
    return given


def latest(
    start: Mapping[str, int],
    ready: Mapping[str, int],
    *,
    limit: int | None,
    octets: int | None = None,
    means: Mapping[str, int] | None = None,
    target: Mapping[str, int] | None = None,
) -> Positions:
    """Where the next batch ends. ``target``: where the whole query ends (AvailableNow).

    ``octets``: a limit that goes by ``means``, what a message of each queue weighs.
    """
    there = dict(ready)
    if target is not None:
        there = {
            queue: min(count, target.get(queue, 0) - start.get(queue, 0))
            for queue, count in ready.items()
        }
    given = {queue: max(0, count) for queue, count in there.items()}
    if octets is not None and means is not None:
        given = shares_of_octets(given, means, octets)
    given = shares(given, limit, sum(start.values()))
    ends = {queue: start.get(queue, 0) + count for queue, count in given.items()}
    # A queue that is not read any more keeps its place: it may come back.
    return {**start, **ends}


def spread(
    start: Mapping[str, int], end: Mapping[str, int], tasks: int
) -> list[list[tuple[str, int, int]]]:
    """Ranges (queue, start, end) for each task: by backlog, a queue in one task only."""
    loads = {
        queue: float(position - start.get(queue, 0))
        for queue, position in end.items()
        if position > start.get(queue, 0)
    }
    if not loads:
        return []
    bins = pack(loads, min(max(1, tasks), len(loads)))
    return [
        [(queue, start.get(queue, 0), end[queue]) for queue in sorted(queues)]
        for queues in bins
        if queues
    ]


def is_pattern(name: str) -> bool:
    return any(mark in name for mark in "*?[")
