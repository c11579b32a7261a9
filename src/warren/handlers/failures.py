"""What counts as a failure of a handler: nearly all that can be raised."""

from __future__ import annotations

import asyncio

from warren.handlers import letters


def as_failure(error: BaseException) -> Exception | None:
    """The error of work that failed; None if it is not its own, and has to go on its way.

    That is Ctrl-C, the end of a coroutine, and the cancellation of the task that runs this.
    """
    if isinstance(error, Exception):
        return error
    if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
        return None
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        return None
    return unusual(error)


def unusual(error: BaseException) -> Exception:
    """A handler must not end the process, or its own lane: that is a failure like another."""
    failure = RuntimeError(f"the handler raised {letters.describe(error)}")
    failure.__cause__ = error
    return failure
