"""Who may log in, and from where."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warren.amqp.tables import TableError, decode_table
from warren.errors import AccessRefused, AdminError, SyntaxRefused

MECHANISMS = "PLAIN AMQPLAIN"
SHA256 = "rabbit_password_hashing_sha256"
MD5 = "rabbit_password_hashing_md5"
#: RabbitMQ's names of the ways to hash a password.
HASHINGS: dict[str, Callable[[bytes], Any]] = {
    SHA256: hashlib.sha256,
    "rabbit_password_hashing_sha512": hashlib.sha512,
    MD5: lambda data: hashlib.md5(data, usedforsecurity=False),
}
_SALT = 4

#: What a tag allows its user in the management API: its own right, and those below it.
_RIGHTS = {
    "administrator": {"administrator", "monitoring", "policymaker", "management"},
    "monitoring": {"monitoring", "management"},
    "policymaker": {"policymaker", "management"},
    "management": {"management"},
    "impersonator": {"impersonator"},
}


@dataclass(frozen=True, slots=True)
class User:
    """A user, with the salted hash of a password: never the password itself."""

    name: str
    #: Four octets of salt, then the digest; nothing for a user who can't log in by password.
    password_hash: bytes = field(repr=False)
    tags: tuple[str, ...] = ()
    hashing: str = SHA256
    #: ``max-connections`` and ``max-channels``, where they are set.
    limits: Mapping[str, int] = field(default_factory=dict, hash=False)

    @classmethod
    def create(cls, name: str, password: str, tags: tuple[str, ...] = ()) -> User:
        return cls(name, hash_password(password), tags)

    def has_password(self, password: bytes) -> bool:
        hashing = HASHINGS.get(self.hashing, hashlib.sha256)
        salted = _salted(self.password_hash[:_SALT], password, hashing)
        same = hmac.compare_digest(self.password_hash, salted)
        return same and self.hashing in HASHINGS

    def may(self, right: str) -> bool:
        """Does a tag give the user this right in the management API?"""
        return any(right in _RIGHTS.get(tag, ()) for tag in self.tags)

    @property
    def password_hash_text(self) -> str:
        """The hash as definitions carry it."""
        return base64.b64encode(self.password_hash).decode()


def hash_password(password: str) -> bytes:
    """RabbitMQ's rabbit_password_hashing_sha256: four octets of salt, then the digest."""
    octets = password.encode("utf-8", "surrogateescape")
    return _salted(secrets.token_bytes(_SALT), octets, hashlib.sha256)


def read_hash(text: str) -> bytes:
    """A hash from definitions."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise AdminError("bad_request", "not_base64", text) from None


def _salted(salt: bytes, password: bytes, hashing: Callable[[bytes], Any]) -> bytes:
    return salt + bytes(hashing(salt + password).digest())


def printable(text: str) -> str:
    """What a stranger sent, for a log: it must not make up lines of its own."""
    return "".join(each if each.isprintable() else "?" for each in text)


_NOBODY = User("", hash_password(secrets.token_hex()))


class Users:
    """All users of a broker."""

    def __init__(self, loopback_users: frozenset[str] = frozenset(("guest",))) -> None:
        self._users: dict[str, User] = {}
        #: These may come from this machine only.
        self.loopback_users = loopback_users

    def __iter__(self) -> Any:
        return iter(self._users.values())

    def __len__(self) -> int:
        return len(self._users)

    def get(self, name: str) -> User | None:
        return self._users.get(name)

    def put(self, user: User) -> None:
        self._users[user.name] = user

    def remove(self, name: str) -> User | None:
        return self._users.pop(name, None)

    def clear(self) -> None:
        self._users.clear()

    def log_in(
        self,
        mechanism: str,
        response: bytes,
        *,
        from_loopback: bool,
        certificate: CertificateName | None = None,
    ) -> User:
        """The user of a SASL response; AccessRefused whatever is wrong with it."""
        if mechanism == "EXTERNAL":
            return self._by_certificate(certificate, from_loopback)
        name, password = _read_response(mechanism, response)
        return self.authenticate(name, password, from_loopback=from_loopback)

    def authenticate(self, name: str, password: bytes, *, from_loopback: bool) -> User:
        """The user of a name and a password."""
        user = self._users.get(name)
        # The same work for an unknown user as for a wrong password.
        right = (user or _NOBODY).has_password(password)
        if not password:
            raise AccessRefused(f"user '{name}' attempted to log in with a blank password")
        if not right or user is None:
            raise AccessRefused(f"user '{name}' - invalid credentials")
        return self._from_here(user, from_loopback)

    def _by_certificate(self, certificate: CertificateName | None, from_loopback: bool) -> User:
        if certificate is None:
            raise AccessRefused("connection peer presented no TLS (x.509) certificate")
        if not certificate.name:
            raise AccessRefused("no name found in the peer's certificate")
        user = self._users.get(certificate.name)
        if user is None:
            raise AccessRefused(f"user '{certificate.name}' - invalid credentials")
        return self._from_here(user, from_loopback)

    def _from_here(self, user: User, from_loopback: bool) -> User:
        if user.name in self.loopback_users and not from_loopback:
            raise AccessRefused(f"user '{user.name}' can only connect via localhost")
        return user


@dataclass(frozen=True, slots=True)
class CertificateName:
    """Whom a verified client certificate names; empty if it names nobody."""

    name: str


def name_in(mechanism: str, response: bytes) -> str:
    """The name in a SASL response; none in one that names nobody, or that can't be read."""
    if mechanism == "EXTERNAL":
        return ""
    try:
        return _read_response(mechanism, response)[0]
    except SyntaxRefused:
        return ""


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
