"""Ctrl-C in a program that waits for its streaming queries: they are stopped, and it goes on.

PySpark's own handler speaks to Java from within the wait, over the connection that waits. That
fails with pages of stacks, and the query ends as it would by a crash.
"""

from __future__ import annotations

import atexit
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_WAITING = ("awaitTermination", "awaitAnyTermination")
#: How long the batch that runs may take to end, and what is cut off after it.
PATIENCE_S = 30.0
_EVERY_S = 0.01


def stop_queries_at_ctrl_c(spark: SparkSession) -> None:
    """Take the place of PySpark's handler, if that is the one that is set.

    While the program is in ``awaitTermination``, the first Ctrl-C stops the session's queries when
    their batch is done, the next one at once, and the wait returns. Any other is PySpark's.
    """
    before = signal.getsignal(signal.SIGINT)
    if getattr(before, "__module__", "") != "pyspark.core.context":
        return  # the session is not of the main thread
    if threading.current_thread() is threading.main_thread():
        handler = Handler(spark, before)
        signal.signal(signal.SIGINT, handler)
        atexit.register(handler.finish)  # before PySpark ends Java


class Handler:
    """What is called at Ctrl-C."""

    def __init__(self, spark: SparkSession, before: Any) -> None:
        self._spark = spark
        self._before = before
        self._stopping: threading.Thread | None = None
        self._at_once = threading.Event()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        is_stopping = self._stopping is not None and self._stopping.is_alive()
        if not is_waiting(frame) or (is_stopping and self._at_once.is_set()):
            self._before(number, frame)
        elif is_stopping:
            self._at_once.set()
        else:
            # A thread has a connection to Java of its own; it holds up no program that must end.
            self._at_once.clear()
            self._stopping = threading.Thread(target=self._stop, name="stop queries", daemon=True)
            self._stopping.start()

    def _stop(self) -> None:
        # A warning, for most programs set up no log: who hears nothing presses again.
        log.warning(
            "Ctrl-C: it ends when the batch that runs is done, in %.0f s at the latest; "
            "pressed again, it stops at once",
            PATIENCE_S,
        )
        try:
            self._stop_queries()
        except Exception:
            # The program goes on as soon as its wait is over, and may have ended the session
            # before we are done: then nothing is left to stop, or to be put back.
            if not _is_over(self._spark):
                raise

    def _stop_queries(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        with _quiet(self._spark):
            for query in self._spark.streams.active:
                self._let_batch_end(query, deadline)
                query.stop()

    def _let_batch_end(self, query: StreamingQuery, deadline: float) -> None:
        """A batch that is cut short is done again: work for the next run."""
        running = _batch_of(query)

        def ended() -> bool:
            return self._at_once.is_set() or not _is_busy(query) or _batch_of(query) != running

        _wait_until(ended, deadline)

    def finish(self) -> None:
        if self._stopping is not None:
            self._stopping.join(2 * PATIENCE_S)


def is_waiting(frame: FrameType | None) -> bool:
    """True if the program waits for a streaming query there."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if frame.f_code.co_name in _WAITING and module == "pyspark.sql.streaming.query":
            return True
        frame = frame.f_back
    return False


def _is_over(spark: SparkSession) -> bool:
    """True if the session was stopped, or is being stopped."""
    context = spark.sparkContext._jsc
    try:
        return context is None or bool(context.sc().isStopped())
    except Exception:  # noqa: BLE001 - Java no longer answers, in whatever words
        return True


def _is_busy(query: StreamingQuery) -> bool:
    return bool(query.isActive and query.status["isDataAvailable"])


def _batch_of(query: StreamingQuery) -> int | None:
    progress = query.lastProgress
    return progress["batchId"] if progress else None


@contextmanager
def _quiet(spark: SparkSession) -> Iterator[None]:
    """Spark makes many words of what was stopped in the middle, for as long as tasks go on."""
    assert spark._jvm is not None
    level = spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos
        _wait_until(
            lambda: not any(each.numRunningTasks() for each in executors()),
            time.monotonic() + PATIENCE_S,
        )
        spark.sparkContext.setLogLevel(level)


def _wait_until(check: Callable[[], bool], deadline: float) -> None:
    while not check() and time.monotonic() < deadline:
        time.sleep(_EVERY_S)
