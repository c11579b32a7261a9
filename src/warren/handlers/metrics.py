"""Counters of an app, and how Prometheus wants to read them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from warren.groups.coordination.base import GroupState, MemberState, QueueState

#: Upper bounds of the histogram of handling times, in seconds.
BOUNDS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
#: Backlogs are told one by one for so many queues, the longest; their sum counts all.
MOST_BACKLOGS = 1_000


@dataclass(slots=True)
class QueueCounters:
    """What happened to the messages of one queue in this process."""

    handled: int = 0
    failed: int = 0
    retried: int = 0
    dead_lettered: int = 0
    replied: int = 0
    seconds: float = 0.0
    times: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))

    def took(self, seconds: float) -> None:
        self.seconds += seconds
        self.times[bisect_left(BOUNDS_S, seconds)] += 1


_COUNTERS = (
    ("handled", "Messages whose handler returned."),
    ("failed", "Attempts that ended in an error."),
    ("retried", "Attempts that were made again, in place or through a delay queue."),
    ("dead_lettered", "Messages given up."),
    ("replied", "Replies sent."),
)


def exposition(
    group: str, counters: dict[str, QueueCounters], gauges: Iterable[tuple[str, str, float]] = ()
) -> str:
    """The text that a Prometheus server reads. ``gauges``: name, help, value."""
    return "\n".join(_lines(group, counters, gauges)) + "\n"


def group_exposition(state: GroupState) -> str:
    """The whole group, as its dispatcher knows it; the other members say nothing of it."""
    group = f'group="{_escaped(state.group)}"'
    lines: list[str] = []
    for name, text, value in _of_group(state):
        lines += [f"# HELP warren_group_{name} {text}", f"# TYPE warren_group_{name} gauge"]
        lines.append(f"warren_group_{name}{{{group}}} {value:.15g}")
    backlog = _backlogs(state)
    for name, text, of in _OF_MEMBER:
        lines += [f"# HELP warren_group_{name} {text}", f"# TYPE warren_group_{name} gauge"]
        for each in state.members:
            labels = f'{group},member="{_escaped(each.member)}"'
            lines.append(f"warren_group_{name}{{{labels}}} {of(each, backlog):g}")
    return "\n".join([*lines, *_of_queues(state, group)]) + "\n"


def rebalance_exposition(group: str, counts: Mapping[str, int]) -> str:
    """Rebalances that one process decided, by cause: those of all members are the group's."""
    name, label = "warren_group_rebalances_total", f'group="{_escaped(group)}"'
    lines = [
        f"# HELP {name} Rebalances that this member decided as the dispatcher, by cause.",
        f"# TYPE {name} counter",
        *(f'{name}{{{label},reason="{cause}"}} {count}' for cause, count in counts.items()),
    ]
    return "\n".join(lines) + "\n"


def _of_group(state: GroupState) -> Iterator[tuple[str, str, float]]:
    idle = sum(each.member is None or each.problem is not None for each in state.queues)
    backlog = [each.messages for each in state.queues if each.messages is not None]
    yield "members", "Members that are there.", sum(each.present for each in state.members)
    yield "queues", "Queues of the group.", len(state.queues)
    yield "queues_idle", "Queues that nobody can work on.", idle
    yield "queues_paused", "Queues that were paused.", sum(each.paused for each in state.queues)
    if backlog:
        yield "backlog", "Messages in its queues, as the broker counts them.", sum(backlog)
    rate = sum(each.rate for each in state.members)
    yield "rate", "Messages a second that were handled lately.", rate
    yield "generation", "Grows by one with every rebalance.", state.generation
    if state.rebalances:
        last = state.rebalances[-1]
        yield "last_rebalance_timestamp_seconds", "When the last rebalance was.", last.at
        yield "last_rebalance_moved", "Queues that the last rebalance moved.", last.moved


def _of_queues(state: GroupState, group: str) -> Iterator[str]:
    known = [each for each in state.queues if each.messages is not None]
    if len(known) > MOST_BACKLOGS:
        known = nsmallest(
            MOST_BACKLOGS, known, key=lambda each: (-(each.messages or 0), each.queue)
        )
    for name, text, of in _OF_QUEUE:
        told = [(each.queue, of(each)) for each in known]
        if any(value is not None for _, value in told):
            yield f"# HELP warren_group_{name} {text}"
            yield f"# TYPE warren_group_{name} gauge"
        for queue, value in told:
            if value is not None:
                labels = f'{group},queue="{_escaped(queue)}"'
                yield f"warren_group_{name}{{{labels}}} {value:.15g}"


def _backlogs(state: GroupState) -> Counter[str | None]:
    backlog: Counter[str | None] = Counter()
    for each in state.queues:
        backlog[each.member] += each.messages or 0
    return backlog


_OF_QUEUE: tuple[tuple[str, str, Callable[[QueueState], float | None]], ...] = (
    (
        "queue_backlog",
        "Messages in a queue, as the broker counts them.",
        lambda each: each.messages,
    ),
    (
        "queue_oldest_timestamp_seconds",
        "When the first message of a queue was published, where it says so.",
        lambda each: each.oldest,
    ),
)
_OF_MEMBER: tuple[tuple[str, str, Callable[[MemberState, Counter[str | None]], float]], ...] = (
    ("member_quota", "Queues a member shall hold.", lambda each, _: each.quota),
    (
        "member_queues",
        "Queues a member holds.",
        lambda each, _: len(each.queues) if each.present else 0,
    ),
    ("member_backlog", "Messages in its queues.", lambda each, backlog: backlog[each.member]),
    ("member_rate", "Messages a second it handled lately.", lambda each, _: each.rate),
    ("member_present", "0: it has gone and may come back.", lambda each, _: int(each.present)),
    ("member_drained", "1: it is drained.", lambda each, _: int(each.drained)),
)


def _lines(
    group: str, counters: dict[str, QueueCounters], gauges: Iterable[tuple[str, str, float]]
) -> Iterator[str]:
    group_label = f'group="{_escaped(group)}"'
    for name, text, value in gauges:
        yield f"# HELP warren_group_{name} {text}"
        yield f"# TYPE warren_group_{name} gauge"
        yield f"warren_group_{name}{{{group_label}}} {value:g}"
    labels = {queue: f'{group_label},queue="{_escaped(queue)}"' for queue in counters}
    for name, text in _COUNTERS:
        yield f"# HELP warren_messages_{name}_total {text}"
        yield f"# TYPE warren_messages_{name}_total counter"
        for queue, found in counters.items():
            yield f"warren_messages_{name}_total{{{labels[queue]}}} {getattr(found, name)}"
    yield "# HELP warren_handler_seconds Time of one attempt."
    yield "# TYPE warren_handler_seconds histogram"
    for queue, found in counters.items():
        yield from _histogram(labels[queue], found)


def _histogram(labels: str, found: QueueCounters) -> Iterator[str]:
    total = 0
    for bound, count in zip((*BOUNDS_S, float("inf")), found.times, strict=True):
        total += count
        edge = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f'warren_handler_seconds_bucket{{{labels},le="{edge}"}} {total}'
    yield f"warren_handler_seconds_sum{{{labels}}} {found.seconds:.6f}"
    yield f"warren_handler_seconds_count{{{labels}}} {total}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
