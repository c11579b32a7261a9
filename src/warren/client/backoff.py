"""How long to wait before the next try: of a connection, of a channel, of a message."""

from __future__ import annotations

import random
from dataclasses import dataclass

from warren.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before attempt 2, 3, …: a growing time, with some chance in it.

    ``jitter`` is the share of the time that is left to chance: without it, a hundred workers that
    failed on the same database come back to it in the same millisecond.
    """

    first_s: float = 0.5
    factor: float = 2.0
    most_s: float = 60.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        for name in ("first_s", "most_s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"Backoff {name}", "can't be negative")
        if self.factor < 1:
            raise ConfigError("Backoff factor", "must be 1 or more: the waits may not shrink")
        if not 0 <= self.jitter <= 1:
            raise ConfigError("Backoff jitter", "is a share of the wait, from 0 to 1")

    def delay_s(self, failures: int, chance: float | None = None) -> float:
        """The wait after the given number of failures; the first wait is that of 1, and of 0."""
        # The exponent is bounded: 2.0 ** 1100 is an OverflowError, not a long wait.
        full = min(self.most_s, self.first_s * self.factor ** min(max(failures - 1, 0), 64))
        drawn = random.random() if chance is None else chance
        return full * (1 - self.jitter * drawn)


#: For connections: half of it is chance, a thousand clients don't come back at once.
COMING_BACK = Backoff(first_s=0.1, most_s=15.0, jitter=0.5)
