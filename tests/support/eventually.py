"""Wait for something to become true, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T], within_s: float = 30.0, every_s: float = 0.02) -> T:
    """Call ``check`` until its answer is true, and return the answer.

    A check may also use ``assert``: an AssertionError means "not yet", and the last one is
    raised when the time is up.
    """
    deadline = time.monotonic() + within_s
    while True:
        failure: AssertionError | None = None
        try:
            answer = check()
            if answer:
                return answer
        except AssertionError as error:
            failure = error
        if time.monotonic() >= deadline:
            if failure is not None:
                raise failure
            raise AssertionError(f"not true within {within_s} s: last answer {answer!r}")
        time.sleep(every_s)
