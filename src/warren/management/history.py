"""Counters as they were: samples over a span of time, thinner the older they are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warren.management.messages import bad_request

Counts = dict[str, int]

#: Older than this, a sample in so many milliseconds is enough; what is older than all goes.
GLOBAL = ((600_000, 5_000), (3_600_000, 60_000), (28_800_000, 600_000), (86_400_000, 1_800_000))
BASIC = GLOBAL[:1]
_MOST_SAMPLES = 500
_THIN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Span:
    """Which samples somebody wants: from ``last_ms`` back to ``first_ms``."""

    first_ms: int
    last_ms: int
    step_ms: int

    @classmethod
    def asked(
        cls, query: Mapping[str, str], prefix: str, now_ms: int, *, up: bool = False
    ) -> Span | None:
        """``PREFIX_age`` and ``PREFIX_incr``, in seconds, as RabbitMQ reads them."""
        try:
            age, step = int(query[f"{prefix}_age"]), int(query[f"{prefix}_incr"])
        except (KeyError, ValueError):
            return None
        if age <= 0 or step <= 0 or age // step > _MOST_SAMPLES:
            raise bad_request(f"Invalid range parameters: age {age}, incr {step}")
        step_ms = step * 1000
        last = now_ms // step_ms * step_ms
        if up and last != now_ms:
            last += step_ms
        return cls(last - age * 1000, last, step_ms)


class History:
    """The samples of one object's counters; one that is as the one before takes no room."""

    def __init__(self, tiers: tuple[tuple[int, int], ...] = BASIC) -> None:
        self._tiers = tiers
        self._times: list[int] = []
        self._counts: list[Counts] = []
        self._thinned_ms = 0

    def __len__(self) -> int:
        return len(self._times)

    def add(self, now_ms: int, counts: Counts) -> None:
        if not self._counts or self._counts[-1] != counts:
            self._times.append(now_ms)
            self._counts.append(counts)

    def thin(self, now_ms: int) -> None:
        """Forget what is too old, and of what is old, most. Once a minute is often enough."""
        if len(self._tiers) == 1:
            # What the counters were when the time began stays.
            old = bisect_right(self._times, now_ms - self._tiers[0][0]) - 1
            if old > 0:
                del self._times[:old], self._counts[:old]
        elif now_ms - self._thinned_ms >= _THIN_MS:
            self._thinned_ms = now_ms
            self._keep(self._worth_keeping(now_ms))

    def _worth_keeping(self, now_ms: int) -> list[int]:
        kept: list[int] = []
        taken: set[tuple[int, int]] = set()
        for at in range(len(self._times) - 1, -1, -1):
            age = now_ms - self._times[at]
            step = next((step for most, step in self._tiers if age <= most), None)
            if step is None:
                kept.append(at)  # what the counters were when the oldest tier began
                break
            place = (step, self._times[at] // step)
            if step == self._tiers[0][1] or place not in taken:
                taken.add(place)
                kept.append(at)
        return kept[::-1]

    def _keep(self, kept: list[int]) -> None:
        self._times = [self._times[at] for at in kept]
        self._counts = [self._counts[at] for at in kept]

    def details(self, name: str, span: Span) -> dict[str, Any]:
        """``samples``, newest first, and what they make on average."""
        samples = []
        for moment in range(span.last_ms, span.first_ms - 1, -span.step_ms):
            at = bisect_right(self._times, moment) - 1
            if at < 0:
                break
            samples.append({"sample": self._counts[at].get(name, 0), "timestamp": moment})
        details: dict[str, Any] = {"samples": samples}
        if len(samples) > 1:
            newest, oldest = samples[0], samples[-1]
            grown, took_ms = newest["sample"] - oldest["sample"], span.step_ms * (len(samples) - 1)
            details["avg_rate"] = grown * 1000 / took_ms
            details["avg"] = sum(each["sample"] for each in samples) / len(samples)
        return details
