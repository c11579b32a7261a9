"""How long to wait before the next try."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Backoff:
    """Delays that double, each drawn at random: a thousand clients don't come back at once."""

    first_s: float = 0.1
    most_s: float = 15.0
    rng: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delay_s(self, attempt: int) -> float:
        """Before try number ``attempt`` (from 0): between half of the step and all of it."""
        step = min(self.most_s, self.first_s * 2.0 ** min(attempt, 30))
        return step * self.rng.uniform(0.5, 1.0)
