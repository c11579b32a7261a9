"""What is known of a queue before it is read."""

from __future__ import annotations

from dataclasses import dataclass

from warren.client.blocking_reader import EXCLUSIVE, SINGLE_ACTIVE
from warren.errors import NotSingleActive


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """What is known of a queue; kind "" if it is not there."""

    name: str
    kind: str = ""
    single_active: bool = False
    auto_delete: bool = False
    #: As far as it is said: after how many returns a quorum queue drops a message.
    delivery_limit: int | None = None
    #: What it drops goes to a dead-letter exchange.
    dead_letters: bool = False

    @property
    def counts(self) -> bool:
        """May it count deliveries? Of one that is not there yet nobody knows."""
        return self.kind != "classic"

    @property
    def mode(self) -> str:
        """How a drain holds it alone; raises NotSingleActive."""
        if self.single_active:
            return SINGLE_ACTIVE
        if self.kind == "quorum":
            raise NotSingleActive(self.name)
        return EXCLUSIVE
