"""A token bucket: at most so many a second, small bursts allowed."""

from __future__ import annotations


class TokenBucket:
    """Says when the next one may go.

    Knows numbers and the time it is told; does not wait. A rate can change while it runs: a
    member's share of the group's rate changes with every rebalance.
    """

    def __init__(self, rate_per_s: float, now_s: float, burst: float | None = None) -> None:
        self._rate = rate_per_s
        self._burst = burst
        self._tokens = self._most()
        self._at = now_s

    def set_rate(self, rate_per_s: float, now_s: float) -> None:
        self._refill(now_s)
        self._rate = rate_per_s
        self._tokens = min(self._tokens, self._most())

    def take(self, now_s: float) -> float:
        """Take one and say how long to wait before using it (0: at once)."""
        self._refill(now_s)
        self._tokens -= 1
        if self._tokens >= 0:
            return 0.0
        return -self._tokens / self._rate if self._rate > 0 else float("inf")

    def wait_s(self, now_s: float) -> float:
        """How long until one may be taken and used at once."""
        self._refill(now_s)
        if self._tokens >= 1 - 1e-9:
            return 0.0
        return (1 - self._tokens) / self._rate if self._rate > 0 else float("inf")

    def _refill(self, now_s: float) -> None:
        self._tokens = min(self._most(), self._tokens + (now_s - self._at) * self._rate)
        self._at = now_s

    def _most(self) -> float:
        # A tenth of a second's worth: smooth enough for whoever asked for the limit.
        return self._burst if self._burst is not None else max(1.0, self._rate / 10)
