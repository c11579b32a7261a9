"""Working ahead: the next batch is made while Spark is busy with the one before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
_END = object()
#: Batches of a drain that may wait for Spark: about 8 MiB each.
AHEAD = 6
#: How often a thread that can't go on looks whether anybody still wants its work.
_LOOK_S = 0.5


class _Failed:
    """An error on its way to who reads."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _nothing() -> None:
    """There is nothing to keep alive."""


def ahead(items: Iterator[T], depth: int, keep_alive: Callable[[], None] = _nothing) -> Iterator[T]:
    """The same items, made by a thread of their own that is at most ``depth`` items ahead.

    While there is no room for one more, that same thread calls ``keep_alive`` every half second:
    a broker hangs up on who is silent, however long Spark takes.
    """
    done: queue.Queue[object] = queue.Queue(depth)
    unwanted = threading.Event()
    thread = threading.Thread(
        target=_work, args=(items, done, unwanted, keep_alive), name="warren drain", daemon=True
    )
    thread.start()
    try:
        while (item := done.get()) is not _END:
            if isinstance(item, _Failed):
                raise item.error
            yield item  # type: ignore[misc]
    finally:
        unwanted.set()
        thread.join()


def _work(
    items: Iterator[T],
    done: queue.Queue[object],
    unwanted: threading.Event,
    keep_alive: Callable[[], None],
) -> None:
    last: object = _END
    try:
        for item in items:
            if not _put(done, item, unwanted, keep_alive):
                break
    except BaseException as error:  # noqa: BLE001 - whatever it is, the reader raises it
        last = _Failed(error)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
    _put(done, last, unwanted, _nothing)


def _put(
    done: queue.Queue[object],
    item: object,
    unwanted: threading.Event,
    keep_alive: Callable[[], None],
) -> bool:
    while not unwanted.is_set():
        try:
            done.put(item, timeout=_LOOK_S)
        except queue.Full:
            keep_alive()
            continue
        return True
    return False
