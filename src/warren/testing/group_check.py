"""What a group promises, as a judgement over the lines that its members wrote."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

Phase = Literal[
    "sent", "confirmed", "begin", "end", "killed", "stopped", "continued", "cut", "over"
]


@dataclass(frozen=True)
class Line:
    """One line of the log. ``number`` grows by the order of publishing in its queue."""

    at: float
    phase: Phase
    member: str = ""
    queue: str = ""
    number: int = -1
    redelivered: bool = False


@dataclass(frozen=True)
class Fault:
    """A promise that was broken, where, and how."""

    kind: Literal["together", "lost", "order", "twice", "stranger"]
    queue: str
    number: int
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.queue} #{self.number}: {self.what}"


class GroupFaults(AssertionError):
    """A group broke its promises."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        shown = [str(fault) for fault in self.faults[:20]]
        more = len(self.faults) - len(shown)
        return "\n".join([*shown, *([f"and {more} more"] if more else [])])


@dataclass(frozen=True)
class Verdict:
    """What a log shows: figures, and the promises that were broken."""

    messages: int
    """Confirmed by the broker."""
    handled: int
    """Worked on to the end, each counted once."""
    doubled: int
    """Worked on to the end more than once, as crashes may bring about."""
    unfinished: int
    """Begun by a member that was disturbed before it ended."""
    longest_gap_s: float
    """The longest time that a queue with messages was not worked on."""
    handovers: int
    """How often a queue went from one member to another."""
    faults: tuple[Fault, ...] = ()

    def count(self, kind: str) -> int:
        return sum(fault.kind == kind for fault in self.faults)

    def raise_for_faults(self) -> None:
        """Raise ``GroupFaults`` if any promise was broken."""
        if self.faults:
            raise GroupFaults(self.faults)


@dataclass
class _Attempt:
    """One member's work on one message."""

    member: str
    number: int
    begin: float
    redelivered: bool
    end: float | None = None


@dataclass
class _Queue:
    name: str
    sent: set[int] = field(default_factory=set)
    confirmed: dict[int, float] = field(default_factory=dict)
    attempts: list[_Attempt] = field(default_factory=list)


@dataclass(frozen=True)
class _Span:
    start: float
    end: float
    phase: Phase


class _Disturbances:
    """Whom something was done to, from when to when."""

    def __init__(self) -> None:
        self._spans: dict[str, list[_Span]] = defaultdict(list)

    def add(self, line: Line) -> None:
        spans = self._spans[line.member]
        if line.phase != "over":
            spans.append(_Span(line.at, line.at, line.phase))
        elif spans:
            spans[-1] = replace(spans[-1], end=line.at)

    def between(self, member: str, start: float, end: float) -> float | None:
        """The first moment within a time at which something was done to a member, or to all."""
        return min(
            (max(span.start, start) for span in self._within(member, start, end)), default=None
        )

    def is_cut_off(self, member: str, at: float) -> bool:
        """Whether it may not know yet that its connection is gone."""
        return any(span.phase == "cut" for span in self._within(member, at, at))

    def _within(self, member: str, start: float, end: float) -> Iterator[_Span]:
        for spans in (self._spans.get(member, ()), self._spans.get("", ())):
            # One that began before may last until now; those of one member don't overlap.
            at = max(0, bisect_left(spans, start, key=lambda span: span.start) - 1)
            for span in spans[at:]:
                if span.start > end:
                    break
                if span.end >= start:
                    yield span


def check_group(lines: Iterable[Line]) -> Verdict:
    """Judge a log, whose lines are in the order of their times.

    - together: two members worked on one queue at once. Work that was disturbed counts up to that
      moment, though the member may go on with it; what a member begins while it is being cut off
      does not count, for it can't know.
    - lost: confirmed, and nobody worked on it to the end.
    - order: a message was begun before one that was published earlier had ended.
    - twice: begun again without the redelivered flag, or though nothing had disturbed the member
      that had ended it.
    - stranger: nobody published it.
    """
    queues, disturbances = _read(lines)
    faults: list[Fault] = []
    for queue in queues.values():
        queue.attempts.sort(key=lambda attempt: attempt.begin)
        faults += _together(queue, disturbances)
        faults += _lost(queue)
        faults += _order(queue)
        faults += _twice(queue, disturbances)
        faults += _strangers(queue)
    return _verdict(list(queues.values()), faults)


def _read(lines: Iterable[Line]) -> tuple[dict[str, _Queue], _Disturbances]:
    queues: dict[str, _Queue] = {}
    disturbances = _Disturbances()
    running: dict[tuple[str, str, int], _Attempt] = {}
    for line in lines:
        if not line.queue:
            disturbances.add(line)
            continue
        queue = queues.get(line.queue) or queues.setdefault(line.queue, _Queue(line.queue))
        key = (line.member, line.queue, line.number)
        if line.phase == "sent":
            queue.sent.add(line.number)
        elif line.phase == "confirmed":
            queue.confirmed[line.number] = line.at
        elif line.phase == "begin":
            running[key] = _Attempt(line.member, line.number, line.at, line.redelivered)
            queue.attempts.append(running[key])
        elif line.phase == "end" and key in running:
            running.pop(key).end = line.at
    return queues, disturbances


def _together(queue: _Queue, disturbances: _Disturbances) -> Iterator[Fault]:
    busy_until: dict[str, tuple[float, int]] = {}
    for attempt in queue.attempts:
        if disturbances.is_cut_off(attempt.member, attempt.begin):
            continue
        for member, (until, number) in busy_until.items():
            if member != attempt.member and attempt.begin < until:
                what = (
                    f"{attempt.member} began at {attempt.begin:.6f}, {member} worked on "
                    f"#{number} until {until:.6f}"
                )
                yield Fault("together", queue.name, attempt.number, what)
        until = _until(attempt, disturbances)
        if until > busy_until.get(attempt.member, (0.0, 0))[0]:
            busy_until[attempt.member] = (until, attempt.number)


def _until(attempt: _Attempt, disturbances: _Disturbances) -> float:
    """Until when the attempt kept others from the queue."""
    end = float("inf") if attempt.end is None else attempt.end
    hit = disturbances.between(attempt.member, attempt.begin, end)
    if hit is not None:
        return hit
    return attempt.begin if attempt.end is None else attempt.end


def _lost(queue: _Queue) -> Iterator[Fault]:
    ended = {attempt.number for attempt in queue.attempts if attempt.end is not None}
    for number in sorted(set(queue.confirmed) - ended):
        yield Fault("lost", queue.name, number, "confirmed, and never worked on to the end")


def _order(queue: _Queue) -> Iterator[Fault]:
    wanted = sorted(queue.confirmed)
    ends: list[tuple[float, int]] = sorted(
        (attempt.end, attempt.number) for attempt in queue.attempts if attempt.end is not None
    )
    ended: set[int] = set()
    at_end = at_wanted = 0
    highest = -1
    begun: set[int] = set()
    for attempt in queue.attempts:
        while at_end < len(ends) and ends[at_end][0] <= attempt.begin:
            ended.add(ends[at_end][1])
            at_end += 1
        while at_wanted < len(wanted) and wanted[at_wanted] in ended:
            at_wanted += 1
        first_open = wanted[at_wanted] if at_wanted < len(wanted) else attempt.number
        if attempt.number > first_open:
            what = f"{attempt.member} began it before #{first_open} had ended"
            yield Fault("order", queue.name, attempt.number, what)
        elif attempt.number not in begun and attempt.number < highest:
            what = f"{attempt.member} began it after #{highest}"
            yield Fault("order", queue.name, attempt.number, what)
        begun.add(attempt.number)
        highest = max(highest, attempt.number)


def _twice(queue: _Queue, disturbances: _Disturbances) -> Iterator[Fault]:
    before: dict[int, _Attempt] = {}
    for attempt in queue.attempts:
        former = before.get(attempt.number)
        before[attempt.number] = attempt
        if former is None:
            continue
        if not attempt.redelivered:
            what = f"{attempt.member} got it after {former.member} had, not flagged redelivered"
            yield Fault("twice", queue.name, attempt.number, what)
        elif disturbances.between(former.member, former.begin, attempt.begin) is None:
            what = f"{attempt.member} got it though {former.member} was not disturbed"
            yield Fault("twice", queue.name, attempt.number, what)


def _strangers(queue: _Queue) -> Iterator[Fault]:
    known = queue.sent | set(queue.confirmed)
    for number in sorted({attempt.number for attempt in queue.attempts} - known):
        yield Fault("stranger", queue.name, number, "nobody published it")


def _verdict(queues: Sequence[_Queue], faults: Sequence[Fault]) -> Verdict:
    ends: dict[tuple[str, int], int] = defaultdict(int)
    unfinished = handovers = 0
    gap_s = 0.0
    for queue in queues:
        for attempt in queue.attempts:
            if attempt.end is None:
                unfinished += 1
            else:
                ends[queue.name, attempt.number] += 1
        members = [attempt.member for attempt in queue.attempts]
        handovers += sum(one != two for one, two in pairwise(members))
        gap_s = max(gap_s, _longest_gap(queue))
    return Verdict(
        messages=sum(len(queue.confirmed) for queue in queues),
        handled=len(ends),
        doubled=sum(times > 1 for times in ends.values()),
        unfinished=unfinished,
        longest_gap_s=gap_s,
        handovers=handovers,
        faults=tuple(faults),
    )


def _longest_gap(queue: _Queue) -> float:
    """The longest wait of a message that was at its turn."""
    longest = 0.0
    last_end = 0.0
    for attempt in queue.attempts:
        since = max(last_end, queue.confirmed.get(attempt.number, attempt.begin))
        longest = max(longest, attempt.begin - since)
        last_end = max(last_end, attempt.begin if attempt.end is None else attempt.end)
    return longest
