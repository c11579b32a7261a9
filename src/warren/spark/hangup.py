"""The end of the process in which Spark asks a source for its offsets.

A query that is stopped hangs up on that process, in the middle of a question or not. PySpark's
runner answers over the line that is cut, and what comes of it is pages of stacks on the screen of
whoever pressed Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Any

_RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"


def hang_up_quietly() -> None:
    """From here on, a cut line ends the runner without a word. Does nothing elsewhere."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == _RUNNER:
        sys.excepthook = _told_unless_cut
        sys.unraisablehook = _unraisable_told_unless_cut


def _told_unless_cut(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    if not issubclass(kind, ConnectionError):
        sys.__excepthook__(kind, error, trace)


def _unraisable_told_unless_cut(unraisable: Any) -> None:
    if not isinstance(unraisable.exc_value, ConnectionError):
        sys.__unraisablehook__(unraisable)
