"""Calls to a management API, and topology files."""

from __future__ import annotations

from typing import ClassVar

from warren.errors.base import FileError, WarrenError


class ManagementError(WarrenError):
    """The management API did not do what was asked."""

    #: Of a command that ends with it: the command was right, and it failed.
    exit_code: ClassVar[int] = 1


class ApiUnreachable(ManagementError):
    """Nobody answers at the address."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return (
            f"nothing answers at {self.address} ({self.reason}): start the broker there, or say "
            "where its management API is with --url or WARREN_URL"
        )


class ApiTimedOut(ManagementError):
    """The server took the call, or the connection, and did not answer."""

    def __init__(self, address: str, timeout_s: float) -> None:
        super().__init__(address, timeout_s)
        self.address, self.timeout_s = address, timeout_s

    def __str__(self) -> str:
        return (
            f"{self.address} has not answered within {self.timeout_s:g} s: "
            "--timeout-s gives it longer"
        )


class ApiUntrusted(ManagementError):
    """The server's certificate is signed by nobody we know."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return (
            f"the certificate of {self.address} is not to be trusted ({self.reason}): --ca-file "
            "names the file with the certificate of its authority"
        )


class OtherBroker(ManagementError):
    """A management API, but not of the broker that the connection leads to."""

    def __init__(self, address: str, found: str, wanted: str) -> None:
        super().__init__(address, found, wanted)
        self.address, self.found, self.wanted = address, found, wanted

    def __str__(self) -> str:
        return (
            f"{self.address} is the management API of another broker, of cluster '{self.found}' "
            f"and not '{self.wanted}'"
        )


class NotManagement(ManagementError):
    """Something answers, but not a management API."""

    def __init__(self, address: str, what: str) -> None:
        super().__init__(address, what)
        self.address, self.what = address, what

    def __str__(self) -> str:
        return (
            f"{self.address} is no management API ({self.what}): give its address with --url or "
            "WARREN_URL; its port is usually 15672, or 15671 with https"
        )


class ApiLoginRefused(ManagementError):
    """Wrong name or password, or a user who may not use the management API."""

    def __init__(self, address: str, user: str, reason: str) -> None:
        super().__init__(address, user, reason)
        self.address, self.user, self.reason = address, user, reason

    def __str__(self) -> str:
        if self.reason.lower() == "login failed":
            scheme = self.address.partition(":")[0]
            return (
                f"{self.address} does not let user '{self.user}' in: wrong name or password; give "
                f"them with --url {scheme}://NAME@HOST:PORT and WARREN_PASSWORD"
            )
        return f"{self.address} does not let user '{self.user}' in: {self.reason}"


class ApiRefused(ManagementError):
    """The server understood and said no."""

    def __init__(self, what: str, status: int, reason: str) -> None:
        super().__init__(what, status, reason)
        self.what, self.status, self.reason = what, status, reason

    def __str__(self) -> str:
        return f"can't {self.what}: {self.reason}"


class ApiMissing(ApiRefused):
    """What the call is about is not there."""


class TopologyError(FileError):
    """A topology file that can't be taken as it is."""


class TopologyRefused(WarrenError):
    """The broker would refuse a part of the file; nothing was done."""

    exit_code: ClassVar[int] = 1

    def __init__(self, file: str, count: int) -> None:
        super().__init__(file, count)
        self.file, self.count = file, count

    def __str__(self) -> str:
        parts = "one thing" if self.count == 1 else f"{self.count} things"
        return f"the broker would refuse {parts} in {self.file} (see !): nothing was changed"


class TopologyHalfDone(ManagementError):
    """The broker refused something that could not be foreseen."""

    def __init__(self, problem: str, left: str) -> None:
        super().__init__(problem, left)
        self.problem, self.left = problem, left

    def __str__(self) -> str:
        return f"{self.problem} ({self.left}; apply again does the rest)"
