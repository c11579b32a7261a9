"""What can go wrong with etcd; facts are attributes, and no password is among them."""

from __future__ import annotations

from typing import ClassVar

from warren.errors import GroupError


class EtcdError(GroupError):
    """etcd did not do what was asked."""

    #: Of a command that ends with it: the command was right, and it failed.
    exit_code: ClassVar[int] = 1


class EtcdUnreachable(EtcdError):
    """No endpoint has answered; ``tried`` are those and why not."""

    def __init__(self, tried: tuple[tuple[str, str], ...]) -> None:
        super().__init__(tried)
        self.tried = tried

    def __str__(self) -> str:
        told = "; ".join(f"{endpoint}: {reason}" for endpoint, reason in self.tried)
        return f"etcd does not answer ({told}): start it there, or name its endpoints"


class EtcdUnsure(EtcdError):
    """The connection ended before the answer: nobody knows whether it was done."""

    def __init__(self, call: str, endpoint: str, reason: str) -> None:
        super().__init__(call, endpoint, reason)
        self.call, self.endpoint, self.reason = call, endpoint, reason

    def __str__(self) -> str:
        return f"{self.endpoint} may have done {self.call}, or not: {self.reason}"


class EtcdRefused(EtcdError):
    """etcd answered, and said no; ``code`` is gRPC's number for why."""

    def __init__(self, call: str, code: int, reason: str) -> None:
        super().__init__(call, code, reason)
        self.call, self.code, self.reason = call, code, reason

    def __str__(self) -> str:
        if self.reason == "user name is empty":
            return "etcd wants to know who asks: give etcd://USER:PASSWORD@HOST:2379"
        return f"etcd refuses {self.call}: {self.reason}"


class EtcdCompacted(EtcdError):
    """The revision that was asked for is forgotten; ``oldest`` is the first that is not."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest

    def __str__(self) -> str:
        return f"etcd has compacted all before revision {self.oldest}"
