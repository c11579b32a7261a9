"""What is written into the headers of a message that failed: how often, why, where it came from.

Names of the headers are part of the API: people read them in a dead-letter queue.

    x-warren-queue         the queue it was taken from
    x-warren-exchange      where it was published to
    x-warren-routing-key   with which key
    x-warren-cc            with which further keys, if it had a CC header
    x-warren-attempts      attempts so far
    x-warren-reason        failed | rejected | undecodable (dead letters only)
    x-warren-error         the last error, "Type: text"
    x-warren-history       a list of tables: attempt, error, member, at (ms since 1970)
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

PREFIX = "x-warren-"
#: Failures kept in a message's history; the newest stay.
MOST_HISTORY = 20
MOST_ERROR_CHARS = 500

FAILED, REJECTED, UNDECODABLE = "failed", "rejected", "undecodable"


def failure(attempt: int, error: BaseException, member: str, at_ms: int) -> dict[str, Any]:
    """One line of the history."""
    return {"attempt": attempt, "error": describe(error), "member": member, "at": at_ms}


def describe(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error that can't even say what it is
        said = "(its text can't be had)"
    kind = type(error).__name__
    # A header is UTF-8: half a character must not keep the letter from being sent.
    text = f"{kind}: {said}".encode(errors="replace").decode() if said else kind
    return text if len(text) <= MOST_ERROR_CHARS else text[: MOST_ERROR_CHARS - 1] + "…"


def described_with_place(error: BaseException, function: Callable[..., Any]) -> str:
    """The error, and the line where it left the handler's own file: ``shop.py:8``."""
    lines = list(
        traceback.walk_tb(error.__traceback__ or getattr(error.__cause__, "__traceback__", None))
    )
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = [at for at in lines if code is not None and at[0].f_code.co_filename == code.co_filename]
    if not (found := own or lines):
        return describe(error)
    frame, line = found[-1]
    return f"{describe(error)} ({PurePath(frame.f_code.co_filename).name}:{line})"


def earlier_attempts(headers: Mapping[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Which attempt this is, and what failed before.

    Headers come from anywhere: what can't be true is ignored.
    """
    before = headers.get(f"{PREFIX}attempts")
    if not isinstance(before, int) or isinstance(before, bool) or not 0 <= before < 1 << 31:
        before = 0
    history = headers.get(f"{PREFIX}history")
    if not isinstance(history, list):
        history = []
    return before + 1, [each for each in history if isinstance(each, dict)][-MOST_HISTORY:]


def origin(headers: Mapping[str, Any], name: str, otherwise: str) -> str:
    found = headers.get(PREFIX + name)
    return found if isinstance(found, str) else otherwise


def failed_headers(
    headers: Mapping[str, Any],
    *,
    queue: str,
    exchange: str,
    routing_key: str,
    history: list[dict[str, Any]],
    attempts: int,
) -> dict[str, Any]:
    """The headers of a message that is to be tried again later."""
    kept = {name: value for name, value in headers.items() if name != "x-delivery-count"}
    return without_copies(kept) | {
        f"{PREFIX}queue": queue,
        f"{PREFIX}exchange": exchange,
        f"{PREFIX}routing-key": routing_key,
        f"{PREFIX}attempts": attempts,
        f"{PREFIX}history": history[-MOST_HISTORY:],
    }


def without_copies(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers for another publish: a broker sends a copy to each key in CC and BCC."""
    kept = {name: value for name, value in headers.items() if name not in ("CC", "BCC")}
    return kept | ({f"{PREFIX}cc": headers["CC"]} if "CC" in headers else {})


def dead_headers(failed: Mapping[str, Any], reason: str, error: str) -> dict[str, Any]:
    """The headers of one that is given up, on top of ``failed_headers``."""
    return {**failed, f"{PREFIX}reason": reason, f"{PREFIX}error": error}


def shortened(headers: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same headers, then with less and less of ours: queue, attempts and reason stay.

    For a message whose own headers leave no room in a frame. Of its history the newest stays
    longest.
    """
    yield dict(headers)
    left = dict(headers)
    history = left.pop(f"{PREFIX}history", None) or []
    while history := history[(len(history) + 1) // 2 :]:
        yield left | {f"{PREFIX}history": history}
    yield dict(left)
    for names in (("error",), ("exchange", "routing-key", "cc")):
        left = {name: value for name, value in left.items() if name not in _named(names)}
        yield dict(left)


def _named(names: Iterable[str]) -> set[str]:
    return {f"{PREFIX}{name}" for name in names}


def clean_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Without anything of ours: for a dead letter that is sent back to work."""
    return {name: value for name, value in headers.items() if not name.startswith(PREFIX)}
