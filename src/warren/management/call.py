"""A request on its way through a resource: who asks, for what, and with which body."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warren.broker.core import BrokerCore
from warren.broker.direct import DirectChannel
from warren.broker.users import User
from warren.broker.vhost import VirtualHost
from warren.errors import AccessRefused, AdminError, NotAllowed, Refusal
from warren.management.history import Span
from warren.management.messages import HttpError, Request, Response, bad_request, not_found

if TYPE_CHECKING:
    from warren.management.site import Site

_DOUBLY = (
    "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"
)


@dataclass(slots=True)
class Call:
    """What a resource's function gets."""

    site: Site
    request: Request
    #: The variable parts of the path.
    names: dict[str, str]
    user: User

    @property
    def core(self) -> BrokerCore:
        return self.site.core

    # -- who may ---------------------------------------------------------------------------------
    @property
    def is_admin(self) -> bool:
        return self.user.may("administrator")

    @property
    def is_monitor(self) -> bool:
        return self.user.may("monitoring")

    def visible_vhosts(self) -> list[VirtualHost]:
        """Those the user may know of, by name."""
        names = sorted(self.core.vhosts)
        if not self.is_monitor:
            names = [name for name in names if self.core.admin.has_access(self.user, name)]
        return [self.core.vhosts[name] for name in names]

    def usable_vhosts(self) -> list[VirtualHost]:
        """Those whose queues, exchanges and bindings the user sees: a monitor not all of them."""
        if self.is_admin:
            return self.visible_vhosts()
        vhosts = self.visible_vhosts()
        return [v for v in vhosts if self.core.admin.has_access(self.user, v.name)]

    # -- what is meant ---------------------------------------------------------------------------
    @property
    def vhost(self) -> VirtualHost:
        """The virtual host of the path."""
        vhost = self.core.vhosts.get(self.names["vhost"])
        if vhost is None:
            raise not_found()
        return vhost

    def changed_vhost(self) -> VirtualHost:
        """The same, for a change: RabbitMQ says it in other words."""
        vhost = self.core.vhosts.get(self.names["vhost"])
        if vhost is None:
            raise HttpError(404, "not_found", "vhost_not_found")
        return vhost

    def exchange_name(self, part: str = "exchange") -> str:
        name = self.names[part]
        return "" if name == "amq.default" else name

    def span(self, prefix: str, *, up: bool = False) -> Span | None:
        """The samples that the query wants: of ``lengths``, ``msg_rates``, ``data_rates`` …"""
        return Span.asked(self.request.query, prefix, self.core.clock.wall_ms(), up=up)

    def flag(self, name: str) -> bool:
        return self.request.query.get(name) == "true"

    # -- the body --------------------------------------------------------------------------------
    def json(self, *wanted: str) -> dict[str, Any]:
        """The body's object, with all that is wanted in it."""
        body = self.request.body
        values: Any = {}
        if body not in (b"", b"null", b"undefined"):
            try:
                values = json.loads(body)
            except (ValueError, RecursionError):
                raise bad_request("not_json") from None
        if isinstance(values, str):
            raise bad_request(_DOUBLY)
        if isinstance(values, bool) or values is None:
            values = {}
        if not isinstance(values, dict):
            raise bad_request("not_json")
        missing = [f"{{key_missing,{_atom(key)}}}" for key in wanted if key not in values]
        if missing:
            raise bad_request(f"[{','.join(missing)}]")
        return values

    # -- changing --------------------------------------------------------------------------------
    def direct(self, vhost: str) -> DirectChannel:
        """A channel of the user's own."""
        try:
            return DirectChannel(self.core, self.user, vhost)
        except NotAllowed:
            raise HttpError(401, "not_authorised", "Access refused.") from None

    def change(self, vhost: str, act: Callable[[DirectChannel], Any]) -> None:
        """Do something as the user, and put refusals as RabbitMQ's API puts them."""
        with self.direct(vhost) as channel:
            try:
                act(channel)
            except (AccessRefused, NotAllowed):
                raise HttpError(401, "not_authorised", "Access refused.") from None
            except Refusal as refusal:
                if refusal.code == 404:
                    raise HttpError(404, "not_found", str(refusal)) from None
                raise bad_request(str(refusal)) from None


def administer(act: Callable[[], Any]) -> Any:
    """Call the administration; its errors become answers."""
    try:
        return act()
    except AdminError as error:
        raise bad_request(error.reason) from None


def made(new: bool) -> Response:
    """The answer to a PUT."""
    return Response(201 if new else 204)


def parse_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise bad_request(["not_boolean", value])


def parse_int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value)
    except (TypeError, ValueError):
        raise bad_request(["not_integer", value]) from None


def _atom(key: str) -> str:
    return key if key.replace("_", "").isalnum() else f"'{key}'"
