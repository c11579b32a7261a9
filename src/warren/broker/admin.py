"""Users, virtual hosts, permissions and limits: everything an administrator changes.

What RabbitMQ's HTTP API and ``rabbitmqctl`` do, as plain calls. They take effect at once, also
for connections that are open: a deleted user's are closed, and what was allowed before is asked
for anew.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warren.broker.logins import FailedLogins, LoginCounts, is_loopback
from warren.broker.parameters import GlobalParameters
from warren.broker.permissions import Access, Permission, Permissions, TopicPermission
from warren.broker.users import SHA256, User, Users, hash_password, name_in, read_hash
from warren.broker.vhost import VirtualHost
from warren.errors import (
    AccessRefused,
    AdminError,
    ConnectionForced,
    NotAllowed,
    TooManyChannels,
)

if TYPE_CHECKING:
    from warren.broker.connection import BrokerConnection
    from warren.broker.core import BrokerCore

USER_LIMITS = ("max-connections", "max-channels")
VHOST_LIMITS = ("max-connections", "max-queues")
EVERYTHING = ".*"
#: So many virtual hosts that are gone may still be counting.
_ENDED = 16


class Admin:
    """The administrator's hand on a broker."""

    def __init__(self, core: BrokerCore, loopback_users: frozenset[str]) -> None:
        self._core = core
        self._users = Users(loopback_users)
        self._permissions = Permissions()
        self._failed = FailedLogins(core.clock)
        self.parameters = GlobalParameters(core)
        #: Counters of virtual hosts that are gone; their channels may still have to end.
        self._ended: list[Counter[str]] = []
        #: How many there were, and how they ended.
        self.logins = LoginCounts()

    # -- users -----------------------------------------------------------------------------------
    def put_user(
        self,
        name: str,
        *,
        password: str | None = None,
        password_hash: str | None = None,
        hashing: str = SHA256,
        tags: Iterable[str] = (),
    ) -> bool:
        """Make a user, or change one: True if it is new.

        ``password_hash`` is base64, as definitions have it. With neither a password nor a hash,
        or with an empty one, nobody logs in by password as this user.
        """
        if password is not None and password_hash is not None:
            raise AdminError("bad_request", "both_password_and_password_hash_are_provided")
        if password_hash is not None:
            octets = read_hash(password_hash)
        else:
            octets, hashing = hash_password(password) if password else b"", SHA256
        old = self._users.get(name)
        limits = old.limits if old is not None else {}
        self._put_user(User(name, octets, _clean_tags(tags), hashing, limits))
        return old is None

    def set_password(self, name: str, password: str) -> None:
        octets = hash_password(password) if password else b""
        user = self._known_user(name)
        self._put_user(dataclasses.replace(user, password_hash=octets, hashing=SHA256))

    def clear_password(self, name: str) -> None:
        """Nobody logs in by password as this user any more."""
        self.set_password(name, "")

    def set_tags(self, name: str, tags: Iterable[str]) -> None:
        self._put_user(dataclasses.replace(self._known_user(name), tags=_clean_tags(tags)))

    def delete_user(self, name: str) -> None:
        """The user goes, with its permissions; its connections are closed."""
        self._known_user(name)
        for permission in self._permissions.of(user=name):
            self.clear_permissions(name, permission.vhost)
        for vhost in {permission.vhost for permission in self._permissions.topics_of(user=name)}:
            self.clear_topic_permissions(name, vhost)
        self._users.remove(name)
        self._define("user", [name], None)
        for connection in list(self._core.connections):
            if connection.user_name == name:
                connection.session.close(ConnectionForced(f"user '{name}' is deleted"))
                connection.wants_write()

    def users(self) -> list[User]:
        return list(self._users)

    def user(self, name: str) -> User | None:
        return self._users.get(name)

    def _known_user(self, name: str) -> User:
        user = self._users.get(name)
        if user is None:
            raise AdminError("not_found", "no_such_user", name)
        return user

    def _put_user(self, user: User) -> None:
        self._users.put(user)
        self._define("user", [user.name], _user_record(user))

    # -- logging in ------------------------------------------------------------------------------
    def log_in(self, connection: BrokerConnection, mechanism: str, response: bytes) -> User:
        """The user of a connection's SASL response; raises AccessRefused."""
        with self._counted("amqp091", connection.peer[0], name_in(mechanism, response)):
            return self._users.log_in(
                mechanism,
                response,
                from_loopback=connection.from_loopback,
                certificate=connection.certificate,
            )

    def authenticate(self, name: str, password: str, *, host: str, protocol: str = "http") -> User:
        """The user of a name and a password; raises AccessRefused."""
        octets = password.encode("utf-8", "surrogateescape")
        with self._counted(protocol, host, name):
            return self._users.authenticate(name, octets, from_loopback=is_loopback(host))

    @contextmanager
    def _counted(self, protocol: str, host: str, name: str) -> Iterator[None]:
        try:
            yield
        except AccessRefused:
            self.logins.count(protocol, succeeded=False)
            self._failed.failed(host, name)
            raise
        self.logins.count(protocol, succeeded=True)
        self._failed.succeeded(host, name)

    def login_wait_ms(self, host: str, name: str) -> int | None:
        """How long a login has to wait because others failed; None if it is refused unseen."""
        return self._failed.wait_ms(host, name)

    # -- virtual hosts ---------------------------------------------------------------------------
    def put_vhost(
        self,
        name: str,
        *,
        description: str = "",
        tags: Iterable[str] = (),
        acting_user: str = "",
    ) -> bool:
        """Make a virtual host, or change one: True if it is new.

        As in RabbitMQ's HTTP API, who makes it may do everything in it.
        """
        vhost = self._core.vhosts.get(name)
        new = vhost is None
        if vhost is None:
            vhost = self._core.vhosts[name] = VirtualHost(self._core, name)
        vhost.description, vhost.tags = description, _clean_tags(tags)
        self._define_vhost(vhost)
        if new and self._users.get(acting_user) is not None:
            self.set_permissions(acting_user, name, EVERYTHING, EVERYTHING, EVERYTHING)
        return new

    def delete_vhost(self, name: str) -> None:
        """The virtual host goes with all that is in it; its connections are closed."""
        self._known_vhost(name)
        for permission in self._permissions.of(vhost=name):
            self.clear_permissions(permission.user, name)
        for user in {permission.user for permission in self._permissions.topics_of(vhost=name)}:
            self.clear_topic_permissions(user, name)
        vhost = self._core.vhosts.pop(name)
        self._ended.append(vhost.past)
        for connection in list(self._core.connections):
            if connection.vhost is vhost:
                connection.session.close(ConnectionForced(f"vhost '{name}' is deleted"))
                connection.wants_write()
        vhost.end()
        self._define("vhost", [name], None)

    def past_counts(self) -> Counter[str]:
        """What went over the channels of virtual hosts that are gone."""
        if len(self._ended) > _ENDED:
            old, self._ended = self._ended[:-_ENDED], self._ended[-_ENDED:]
            self._ended.insert(0, sum(old, Counter()))
        return sum(self._ended, Counter())

    def _known_vhost(self, name: str) -> VirtualHost:
        vhost = self._core.vhosts.get(name)
        if vhost is None:
            raise AdminError("not_found", "no_such_vhost", name)
        return vhost

    def _define_vhost(self, vhost: VirtualHost) -> None:
        record = {"description": vhost.description, "tags": vhost.tags, "limits": vhost.limits}
        self._define("vhost", [vhost.name], record)

    # -- permissions -----------------------------------------------------------------------------
    def set_permissions(self, user: str, vhost: str, configure: str, write: str, read: str) -> bool:
        """Patterns of names: True if the user had none in the virtual host before."""
        permission = Permission(user, vhost, configure, write, read)
        self._known_user(user)
        self._known_vhost(vhost)
        new = self._permissions.put(permission)
        self._define(
            "permission", [user, vhost], {"configure": configure, "write": write, "read": read}
        )
        self._changed(vhost)
        return new

    def clear_permissions(self, user: str, vhost: str) -> bool:
        """False if there were none."""
        if self._permissions.by_vhost.pop((user, vhost), None) is None:
            return False
        self._define("permission", [user, vhost], None)
        self._changed(vhost)
        return True

    def permissions(self, user: str | None = None, vhost: str | None = None) -> list[Permission]:
        return self._permissions.of(user, vhost)

    def permission(self, user: str, vhost: str) -> Permission | None:
        return self._permissions.by_vhost.get((user, vhost))

    def set_topic_permissions(
        self, user: str, vhost: str, exchange: str, write: str, read: str
    ) -> bool:
        """Patterns of routing keys of a topic exchange: True if there were none before."""
        permission = TopicPermission(user, vhost, exchange, write, read)
        self._known_user(user)
        self._known_vhost(vhost)
        new = self._permissions.put_topic(permission)
        self._define("topic_permission", [user, vhost, exchange], {"write": write, "read": read})
        self._changed(vhost)
        return new

    def clear_topic_permissions(self, user: str, vhost: str, exchange: str | None = None) -> bool:
        """Those of one exchange, or of all: False if there were none."""
        cleared = [
            permission
            for permission in self._permissions.topics_of(user, vhost)
            if exchange in (None, permission.exchange)
        ]
        for permission in cleared:
            key = (user, vhost, permission.exchange)
            del self._permissions.by_topic[key]
            self._define("topic_permission", list(key), None)
        self._changed(vhost)
        return bool(cleared)

    def topic_permissions(
        self, user: str | None = None, vhost: str | None = None
    ) -> list[TopicPermission]:
        return self._permissions.topics_of(user, vhost)

    def _changed(self, vhost: str) -> None:
        """Publishers must find their routes, and be asked for their permissions, anew."""
        if vhost in self._core.vhosts:
            self._core.vhosts[vhost].version += 1

    def access(self, user: str, vhost: str) -> Access:
        """What a user may do in a virtual host."""
        return Access(self._permissions, user, vhost)

    def has_access(self, user: User | str, vhost: str) -> bool:
        """May the user use the virtual host at all?"""
        return vhost in self._core.vhosts and self.access(_name(user), vhost).granted()

    def may(self, user: User | str, vhost: str, permission: str, kind: str, name: str) -> bool:
        return self.access(_name(user), vhost).may(permission, kind, name)

    def visible_vhosts(self, user: User) -> list[str]:
        """The virtual hosts that the management API shows to a user."""
        everything = user.may("monitoring")
        return [name for name in self._core.vhosts if everything or self.has_access(user, name)]

    # -- limits ----------------------------------------------------------------------------------
    def set_user_limit(self, name: str, limit: str, value: int) -> None:
        _check_limit(USER_LIMITS, limit, value, "user-limits")
        user = self._limited_user(name)
        self._put_user(dataclasses.replace(user, limits={**user.limits, limit: value}))

    def clear_user_limit(self, name: str, limit: str) -> None:
        user = self._limited_user(name)
        limits = {key: value for key, value in user.limits.items() if key != limit}
        self._put_user(dataclasses.replace(user, limits=limits))

    def _limited_user(self, name: str) -> User:
        user = self._users.get(name)
        if user is None:
            raise AdminError("bad_request", "no_such_user", name)
        return user

    def user_limits(self, name: str | None = None) -> dict[str, dict[str, int]]:
        """The limits of those users that have any."""
        return {
            user.name: dict(user.limits)
            for user in self._users
            if user.limits and name in (None, user.name)
        }

    def set_vhost_limit(self, name: str, limit: str, value: int) -> None:
        self.set_vhost_limits(name, {**self._known_vhost(name).limits, limit: value})

    def set_vhost_limits(self, name: str, limits: dict[str, int]) -> None:
        """These, and no others."""
        vhost = self._known_vhost(name)
        try:
            for limit, value in limits.items():
                _check_limit(VHOST_LIMITS, limit, value, "limits")
        except AdminError as error:
            raise AdminError("bad_request", f"Validation failed\n\n{error}\n") from None
        vhost.limits = dict(limits)
        self._define_vhost(vhost)

    def clear_vhost_limit(self, name: str, limit: str) -> None:
        vhost = self._known_vhost(name)
        vhost.limits = {key: value for key, value in vhost.limits.items() if key != limit}
        self._define_vhost(vhost)

    def vhost_limits(self, name: str | None = None) -> dict[str, dict[str, int]]:
        """The limits of those virtual hosts that have any."""
        return {
            vhost.name: dict(vhost.limits)
            for vhost in self._core.vhosts.values()
            if vhost.limits and name in (None, vhost.name)
        }

    # -- connections -----------------------------------------------------------------------------
    def open(self, connection: BrokerConnection, virtual_host: str) -> VirtualHost:
        """The virtual host a connection asks for, if its user may have it."""
        name, connections = connection.user_name, self._core.connections
        vhost = self._core.vhosts.get(virtual_host)
        if vhost is None:
            raise NotAllowed(f"vhost {virtual_host} not found")
        refused = f"access to vhost '{virtual_host}' refused for user '{name}'"
        most = vhost.limits.get("max-connections", -1)
        if most >= 0 and sum(other.vhost is vhost for other in connections) >= most:
            raise NotAllowed(f"{refused}: connection limit ({most}) is reached")
        most = self._user_limit(name, "max-connections")
        if most >= 0 and sum(other.user_name == name for other in connections) >= most:
            raise NotAllowed(
                f"connection refused for user '{name}': user connection limit ({most}) is reached"
            )
        if not self.access(name, virtual_host).granted():
            raise NotAllowed(refused)
        return vhost

    def check_channels(self, connection: BrokerConnection) -> None:
        """Refuse one channel more than the user may have."""
        name = connection.user_name
        most = self._user_limit(name, "max-channels")
        if most >= 0 and most <= sum(
            len(other.session.ready) + len(other.session.assembling)
            for other in self._core.connections
            if other.user_name == name
        ):
            raise TooManyChannels(name, most)

    def _user_limit(self, name: str, limit: str) -> int:
        user = self._users.get(name)
        return -1 if user is None else user.limits.get(limit, -1)

    # -- what survives ---------------------------------------------------------------------------
    def start_anew(self) -> None:
        """What a broker has that nobody has changed yet: ``guest`` and ``/``."""
        self._put_user(User.create("guest", "guest", ("administrator",)))
        self.put_vhost("/", acting_user="guest")

    def forget_all(self) -> None:
        """Make room for what a store holds."""
        self._users.clear()
        self._permissions = Permissions()
        self._core.vhosts.clear()

    def restore(self, kind: str, key: list[str], value: Any) -> None:
        """A definition that the store knows already."""
        if kind == "user":
            octets = read_hash(value["password_hash"])
            tags = tuple(value["tags"])
            self._users.put(User(key[0], octets, tags, value["hashing"], value["limits"]))
        elif kind == "vhost":
            vhost = self._core.vhosts[key[0]] = VirtualHost(self._core, key[0])
            vhost.description = value.get("description", "")
            vhost.tags = tuple(value.get("tags", ()))
            vhost.limits = value.get("limits", {})
        elif kind == "permission":
            self._permissions.put(Permission(*key, **value))
        elif kind == "topic_permission":
            self._permissions.put_topic(TopicPermission(*key, **value))

    def write_down(self) -> None:
        """Give the journal everything there is: the store knows nothing of it yet."""
        for user in self._users:
            self._put_user(user)
        for vhost in self._core.vhosts.values():
            self._define_vhost(vhost)
        for permission in self._permissions.of():
            self.set_permissions(*dataclasses.astuple(permission))
        for topic in self._permissions.topics_of():
            self.set_topic_permissions(*dataclasses.astuple(topic))
        self.parameters.write_down()

    def _define(self, kind: str, key: list[str], value: Any) -> None:
        if self._core.journal is not None:
            self._core.journal.define(kind, key, value)


def _name(user: User | str) -> str:
    return user if isinstance(user, str) else user.name


def _clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    tags = tags.split(",") if isinstance(tags, str) else tags
    return tuple(tag.strip() for tag in tags if tag.strip())


def _user_record(user: User) -> dict[str, Any]:
    return {
        "password_hash": user.password_hash_text,
        "hashing": user.hashing,
        "tags": user.tags,
        "limits": dict(user.limits),
    }


def _check_limit(known: tuple[str, ...], limit: str, value: Any, where: str) -> None:
    if limit not in known:
        raise AdminError(
            "bad_request", f'Unrecognised terms [{{<<"{limit}">>,{value}}}] in {where}'
        )
    if not isinstance(value, int) or isinstance(value, bool):
        raise AdminError("bad_request", f'{limit} should be a number, actually was <<"{value}">>')
