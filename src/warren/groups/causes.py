"""Why a group is rebalanced: in words for people, and in a few kinds that can be counted."""

from __future__ import annotations

from enum import Enum


class Cause(Enum):
    """A kind of reason, the gravest first."""

    DIED = "died"
    EXPIRED = "expired"
    ELECTION = "election"
    LEFT = "left"
    JOINED = "joined"
    QUEUES = "queues"
    WEIGHT = "weight"
    DRAIN = "drain"
    MOVE = "move"
    LOAD = "load"


_GRAVITY = {cause: number for number, cause in enumerate(Cause)}


class Reasons:
    """What has happened since the last rebalance, and calls for the next."""

    def __init__(self) -> None:
        self._all: list[tuple[Cause, str]] = []

    def add(self, cause: Cause, text: str) -> None:
        self._all.append((cause, text))

    def take(self) -> tuple[Cause, str]:
        """The gravest, and all of them in words; begins anew."""
        causes, texts = zip(*self._all, strict=True)
        self._all.clear()
        return min(causes, key=_GRAVITY.__getitem__), "; ".join(texts)
