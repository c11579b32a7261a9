"""What users may do in a virtual host, and the texts with which they are told that they may not."""

from __future__ import annotations

from dataclasses import dataclass

from warren.broker.patterns import compile_pattern, matches
from warren.errors import AccessRefused, AdminError, InternalError


@dataclass(frozen=True, slots=True)
class Permission:
    """A user's patterns in a virtual host: names that may be configured, written to, read from."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str

    def __post_init__(self) -> None:
        for pattern in (self.configure, self.write, self.read):
            compile_pattern(pattern)


@dataclass(frozen=True, slots=True)
class TopicPermission:
    """A user's patterns for the routing keys of one topic exchange."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str

    def __post_init__(self) -> None:
        for pattern in (self.write, self.read):
            compile_pattern(pattern)


class Permissions:
    """All permissions of a broker."""

    def __init__(self) -> None:
        self.by_vhost: dict[tuple[str, str], Permission] = {}
        self.by_topic: dict[tuple[str, str, str], TopicPermission] = {}

    def put(self, permission: Permission) -> bool:
        """True if there was none before."""
        key = (permission.user, permission.vhost)
        new = key not in self.by_vhost
        self.by_vhost[key] = permission
        return new

    def put_topic(self, permission: TopicPermission) -> bool:
        key = (permission.user, permission.vhost, permission.exchange)
        new = key not in self.by_topic
        self.by_topic[key] = permission
        return new

    def of(self, user: str | None = None, vhost: str | None = None) -> list[Permission]:
        return [
            permission
            for (its_user, its_vhost), permission in self.by_vhost.items()
            if user in (None, its_user) and vhost in (None, its_vhost)
        ]

    def topics_of(self, user: str | None = None, vhost: str | None = None) -> list[TopicPermission]:
        return [
            permission
            for (its_user, its_vhost, _), permission in self.by_topic.items()
            if user in (None, its_user) and vhost in (None, its_vhost)
        ]


class Access:
    """What one user may do in one virtual host, as the permissions are at the moment."""

    __slots__ = ("_permissions", "_user", "_vhost")

    def __init__(self, permissions: Permissions, user: str, vhost: str) -> None:
        self._permissions = permissions
        self._user = user
        self._vhost = vhost

    def granted(self) -> bool:
        """May the user use the virtual host at all?"""
        return (self._user, self._vhost) in self._permissions.by_vhost

    def may(self, permission: str, kind: str, name: str) -> bool:
        """``permission`` is configure, write or read; ``kind`` queue or exchange."""
        patterns = self._permissions.by_vhost.get((self._user, self._vhost))
        if patterns is None:
            return False
        return matches(getattr(patterns, permission), _known_as(kind, name))

    def configure(self, kind: str, name: str) -> None:
        self._check("configure", kind, name)

    def write(self, kind: str, name: str) -> None:
        self._check("write", kind, name)

    def read(self, kind: str, name: str) -> None:
        self._check("read", kind, name)

    def _check(self, permission: str, kind: str, name: str) -> None:
        if not self.may(permission, kind, name):
            raise AccessRefused(
                f"access to {kind} '{_known_as(kind, name)}' in vhost '{self._vhost}' refused for "
                f"user '{self._user}'"
            )

    def may_topic(self, permission: str, exchange: str, routing_key: str) -> bool:
        """``permission`` is write or read; without topic permissions every key is allowed."""
        patterns = self._permissions.by_topic.get((self._user, self._vhost, exchange))
        if patterns is None:
            return True
        # Only clients of other protocols have a client id: RabbitMQ leaves {client_id} as it is.
        pattern = getattr(patterns, permission)
        pattern = pattern.replace("{username}", self._user).replace("{vhost}", self._vhost)
        try:
            return matches(pattern, routing_key)
        except AdminError as error:  # what the names made of it is no pattern
            raise InternalError(str(error)) from None

    def topic(self, permission: str, exchange: str, routing_key: str) -> None:
        if not self.may_topic(permission, exchange, routing_key):
            raise AccessRefused(
                f"access to topic '{routing_key}' in exchange '{exchange}' in vhost "
                f"'{self._vhost}' refused for user '{self._user}'"
            )


def _known_as(kind: str, name: str) -> str:
    """The default exchange has no name; permissions call it ``amq.default``."""
    return "amq.default" if kind == "exchange" and not name else name
