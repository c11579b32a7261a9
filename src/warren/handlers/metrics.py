"""Counters of an app, and how Prometheus wants to read them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

#: Upper bounds of the histogram of handling times, in seconds.
BOUNDS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)


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
