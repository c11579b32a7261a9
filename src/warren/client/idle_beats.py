"""Heartbeats of a blocking connection while its owner does something else.

A connection is for one thread at a time. Its owner holds ``in_use`` while at work, and then sends
what is due by itself; in between, the heart may.
"""

from __future__ import annotations

import threading

from warren.client.heart import HEART
from warren.client.publish_connection import PublishConnection
from warren.errors import WarrenError

_NEVER = float("inf")


class IdleBeats:
    """Keeps one connection at a time alive; ``in_use`` says who may touch it."""

    def __init__(self) -> None:
        self.in_use = threading.Lock()
        self._link: PublishConnection | None = None
        self._not_before = 0.0

    def watch(self, link: PublishConnection | None) -> None:
        """From here on beat for this one, or for none; the caller holds ``in_use``."""
        self._link, self._not_before = link, 0.0
        if link is None:
            HEART.discard(self)
        else:
            HEART.add(self)

    # -- called by the heart's thread ------------------------------------------------------------
    def next_beat(self) -> float:
        link = self._link
        if link is None or not link.is_open or not link.session.heartbeat_s:
            return _NEVER
        return max(self._not_before, link.session.sent_at + link.session.heartbeat_s / 2)

    def beat(self, now: float) -> None:
        """Hear what the broker has said, and say that we are there; its owner sees what broke."""
        link = self._link
        if link is None:
            return
        # Whatever comes of it, not again at once: the heart would turn round without a rest.
        self._not_before = now + link.session.heartbeat_s / 4
        if not self.in_use.acquire(blocking=False):
            return
        try:
            if self._link is link and link.is_open:
                link.catch_up()
        except (WarrenError, OSError, ValueError):  # ValueError: its socket is closed
            self._not_before = _NEVER
        finally:
            self.in_use.release()
