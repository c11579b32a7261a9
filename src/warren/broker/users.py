"""Who may log in, and from where."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from warren.amqp.tables import TableError, decode_table
from warren.errors import AccessRefused, SyntaxRefused

MECHANISMS = "PLAIN AMQPLAIN"


@dataclass(frozen=True, slots=True)
class User:
    """A user, with the salted hash of a password: never the password itself."""

    name: str
    password_hash: bytes = field(repr=False)
    tags: frozenset[str] = frozenset()
    loopback_only: bool = False

    @classmethod
    def create(
        cls, name: str, password: str, tags: frozenset[str] = frozenset(), *, loopback_only: bool
    ) -> User:
        return cls(name, hash_password(password), tags, loopback_only)

    def has_password(self, password: bytes) -> bool:
        salt = self.password_hash[:4]
        return hmac.compare_digest(self.password_hash, _salted(salt, password))


def hash_password(password: str) -> bytes:
    """RabbitMQ's rabbit_password_hashing_sha256: four octets of salt, then the digest."""
    return _salted(secrets.token_bytes(4), password.encode())


def _salted(salt: bytes, password: bytes) -> bytes:
    return salt + hashlib.sha256(salt + password).digest()


_NOBODY = hash_password(secrets.token_hex())


class Users:
    """All users of a broker."""

    def __init__(self) -> None:
        self._users = {
            "guest": User.create(
                "guest", "guest", frozenset(("administrator",)), loopback_only=True
            )
        }

    def get(self, name: str) -> User | None:
        return self._users.get(name)

    def put(self, user: User) -> None:
        self._users[user.name] = user

    def log_in(self, mechanism: str, response: bytes, *, from_loopback: bool) -> User:
        """The user of a SASL response; AccessRefused whatever is wrong with it."""
        name, password = _read_response(mechanism, response)
        user = self._users.get(name)
        # The same work for an unknown user as for a wrong password.
        known = user if user is not None else User(name, _NOBODY)
        if not known.has_password(password) or user is None:
            raise AccessRefused(f"user '{name}' - invalid credentials")
        if user.loopback_only and not from_loopback:
            raise AccessRefused(f"user '{name}' can only connect via localhost")
        return user


def _read_response(mechanism: str, response: bytes) -> tuple[str, bytes]:
    if mechanism == "PLAIN":
        parts = response.split(b"\0")
        if len(parts) != 3 or parts[0]:
            raise SyntaxRefused("response does not contain an authorization id, user and password")
        return parts[1].decode("utf-8", "surrogateescape"), parts[2]
    try:
        table = decode_table(response)
        name, password = table["LOGIN"], table["PASSWORD"]
    except (TableError, KeyError):
        raise SyntaxRefused("AMQPLAIN auth info is missing LOGIN or PASSWORD field") from None
    return str(name), str(password).encode("utf-8", "surrogateescape")
