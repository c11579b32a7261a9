"""Groups, and the handlers that run in them."""

from __future__ import annotations

from warren.errors.base import WarrenError


class DecodeFailed(WarrenError):
    """A body can't be decoded as its content-type or content-encoding says."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind, self.reason = kind, reason

    def __str__(self) -> str:
        return f"not decodable as {self.kind}: {self.reason}"


class HandlerSignal(WarrenError):
    """Raised by a handler to say what becomes of its message."""


class Reject(HandlerSignal):
    """No attempt will ever work: dead-letter the message now."""

    def __init__(self, reason: str = "rejected by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Retry(HandlerSignal):
    """Try again after this time, whatever the backoff says. It counts as an attempt."""

    def __init__(self, after_s: float, reason: str = "the handler asked for a retry") -> None:
        super().__init__(after_s, reason)
        self.after_s, self.reason = after_s, reason

    def __str__(self) -> str:
        return self.reason


class GroupError(WarrenError):
    """A consumer group can't do what it was asked."""


class Fenced(GroupError):
    """Another process is in the group under this member's name."""

    def __init__(self, group: str, member: str) -> None:
        super().__init__(group, member)
        self.group, self.member = group, member

    def __str__(self) -> str:
        return (
            f"another process is in group '{self.group}' as '{self.member}'; give each process "
            "a member_name of its own"
        )


class NoSuchGroup(GroupError):
    """Nobody is in the group, so nobody can answer."""

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self.group = group

    def __str__(self) -> str:
        return f"nobody is in group '{self.group}'; start a member first"
