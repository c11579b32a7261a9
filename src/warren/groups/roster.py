"""What a dispatcher knows of each member and of each queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from warren.groups.coordination.base import NEVER, Report, Stamp


@dataclass(frozen=True)
class QueueFacts:
    """What the broker says of a queue. ``problem``: why no member may be given it."""

    messages: int | None = None
    consumers: int | None = None
    problem: str | None = None
    #: When its first message was published, where the message says it: seconds since 1970.
    oldest: float | None = None


#: Of a queue that the broker was not yet asked about.
UNKNOWN = QueueFacts()


@dataclass(slots=True)
class Seen:
    """One member as the dispatcher knows it."""

    report: Report
    #: Queues of the newest assignment, and its stamp.
    granted: frozenset[str] = frozenset()
    sent: Stamp = NEVER
    #: All that it may be working on, as far as we can know.
    busy: set[str] = field(default_factory=set)
    #: When to send again what it has not taken up.
    resend_at: float | None = None
    #: A static member that has gone: when its session runs out.
    gone_until: float | None = None

    @property
    def present(self) -> bool:
        return self.gone_until is None

    def must_send(self, should: set[str], now: float) -> bool:
        """Whether it is there, and has not been sent this or has not taken it up."""
        if self.gone_until is not None:
            return False
        unseen = self.resend_at is not None and self.resend_at <= now
        return unseen or self.granted != should or self.sent == NEVER
