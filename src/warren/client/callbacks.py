"""Call what the user gave us, and live on when it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

log = logging.getLogger(__name__)


def call_each(callbacks: Iterable[Callable[..., Any]], *arguments: Any) -> None:
    """Call all of them, whatever some do."""
    for callback in list(callbacks):
        try:
            callback(*arguments)
        except Exception:  # the connection's own work must go on
            log.exception("a callback failed: %r", callback)
