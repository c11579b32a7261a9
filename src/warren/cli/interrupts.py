"""Ctrl-C and SIGTERM, for commands that have something to tidy up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block, once: what tidies up after it is not interrupted."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in ENDS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
