"""What becomes of a message after an attempt: a table, and nothing else.

    outcome of the attempt        ordered                    unordered
    returned                      acknowledge                acknowledge
    Reject                        dead-letter (rejected)     dead-letter (rejected)
    DecodeFailed                  dead-letter (undecodable)  dead-letter (undecodable)
    failed, attempts left         wait here, again           delay queue, acknowledge
    failed, no attempts left      dead-letter (failed)       dead-letter (failed)

``Retry`` is a failure that names its own wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from warren.errors import DecodeFailed, Reject, Retry
from warren.handlers import letters
from warren.handlers.policy import AT_ONCE, Handling


@dataclass(frozen=True, slots=True)
class DeadLetter:
    reason: str


@dataclass(frozen=True, slots=True)
class TryAgain:
    after_s: float
    here: bool
    """True: in place, the queue waits. False: through a delay queue."""


def after_failure(
    handling: Handling, attempt: int, error: Exception, chance: float | None = None
) -> DeadLetter | TryAgain:
    """What to do with a message whose attempt number ``attempt`` ended in ``error``."""
    if isinstance(error, Reject):
        return DeadLetter(letters.REJECTED)
    if isinstance(error, DecodeFailed):
        return DeadLetter(letters.UNDECODABLE)
    if attempt > handling.retries:
        return DeadLetter(letters.FAILED)
    if isinstance(error, Retry) and handling.backoff is not AT_ONCE:
        return TryAgain(max(0.0, error.after_s), handling.ordered)
    return TryAgain(handling.backoff.delay_s(attempt, chance), handling.ordered)
