"""How a client logs in: SASL mechanisms."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Login:
    """A mechanism and what is said first; the secret is in no repr."""

    mechanism: str
    response: bytes = field(repr=False)
    user: str = ""

    def answer(self, challenge: bytes) -> bytes:
        """What is said when the broker asks back: PLAIN and EXTERNAL have said it all."""
        return self.response


def plain(user: str, password: str) -> Login:
    """By name and password."""
    return Login("PLAIN", f"\0{user}\0{password}".encode(), user)


def external() -> Login:
    """By the certificate that the TLS connection has shown."""
    return Login("EXTERNAL", b"", "the client certificate")
