"""The memory and disk alarms: while one is raised, whoever publishes is not read from.

What counts as held are messages in queues, and those of which a part has arrived. The latter could
raise an alarm that nobody can end: everyone is blocked in the middle of a message. So while it is
half messages that are too much, one connection at a time may finish its own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warren.broker.connection import BrokerConnection
    from warren.broker.core import BrokerCore
    from warren.broker.timers import Timer

log = logging.getLogger(__name__)


class Alarms:
    """Which alarms are raised, and who may go on nevertheless."""

    def __init__(self, core: BrokerCore, memory_limit_bytes: int) -> None:
        self._core = core
        self.memory_limit_bytes = memory_limit_bytes
        #: Why publishers are blocked; empty when they are not.
        self.reason = ""
        self.raised: dict[str, bool] = {"memory": False, "disk": False}
        self._forced = False
        #: Connections that have sent a part of a message, the longest waiting first.
        self._halves: dict[BrokerConnection, None] = {}
        self._half_bytes = 0
        self._turn: Timer | None = None

    def half_received(self, connection: BrokerConnection, size: int) -> None:
        """So many octets more (or less) of unfinished messages are held for a connection."""
        self._core.held_bytes += size
        self._half_bytes += size
        if connection.session.half_bytes:
            self._halves[connection] = None
        else:
            self._halves.pop(connection, None)

    def watch_memory(self) -> None:
        """Compare what is held with the limit: while an alarm is raised, or one is due."""
        if self.memory_limit_bytes and not self._forced:
            self.set("memory", self._core.held_bytes > self.memory_limit_bytes)
        chosen = self._may_finish() if self._halves and self.reason else None
        waits = chosen is not None and chosen.blocked
        if waits and self._turn is None:
            # Not at once: it may have much to say, and we are in the middle of something.
            self._turn = self._core.timers.after(0, self._let_finish)
        elif not waits and self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def blocks(self, connection: BrokerConnection) -> bool:
        """True if a connection that publishes must not go on."""
        return bool(self.reason) and self._may_finish() is not connection

    def _let_finish(self) -> None:
        self._turn = None
        chosen = self._may_finish()
        if chosen is not None:
            chosen.unblock()

    def _may_finish(self) -> BrokerConnection | None:
        """Who may finish its message: one with a single message on its way."""
        complete = self._core.held_bytes - self._half_bytes
        if self._forced or self.raised["disk"] or complete > self.memory_limit_bytes:
            return None
        return next((c for c in self._halves if len(c.session.assembling) == 1), None)

    def force_memory(self, on: bool) -> None:
        """Raise or clear the memory alarm by hand."""
        self._forced = on
        self.set("memory", on)

    def set(self, name: str, on: bool) -> None:
        """Raise or clear one of the two."""
        if self.raised[name] == on:
            return
        self.raised[name] = on
        state = "raised: publishers are blocked" if on else "cleared"
        log.warning("%s alarm %s (%d octets held)", name, state, self._core.held_bytes)
        if all(self.raised.values()):
            self.reason = "low on both memory and disk"
        else:
            self.reason = "".join(f"low on {each}" for each, on in self.raised.items() if on)
        if not self.reason and self._turn is not None:
            self._turn.cancel()
            self._turn = None
        for connection in list(self._core.connections):
            if self.reason:
                connection.session.wary = True
            else:
                connection.unblock()
