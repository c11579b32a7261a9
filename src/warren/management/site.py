"""The API as a whole: finds the resource, asks who is there, and answers."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

from warren.broker.core import BrokerCore
from warren.broker.users import User, printable
from warren.errors import AccessRefused
from warren.management.call import Call
from warren.management.listeners import Listener
from warren.management.messages import HttpError, Later, Request, Response, answer, not_found
from warren.management.rules import Rule, anyone
from warren.management.sampler import Sampler

log = logging.getLogger(__name__)

Handler = Callable[[Call], Any]
_REALM = ("www-authenticate", 'Basic realm="RabbitMQ Management"')


class Route:
    """One path and what can be done there. Parts in braces are variable."""

    #: Where a request says who sends it.
    credentials: Callable[[Request], tuple[str, str]]

    def __init__(
        self, path: str, rule: Rule = anyone, *, by_form: bool = False, **handlers: Handler
    ) -> None:
        self.parts = tuple(path.strip("/").split("/"))
        self.rule = rule
        self.credentials = _in_form if by_form else _in_header
        self.handlers = {name.upper(): handler for name, handler in handlers.items()}
        methods = ["HEAD", *self.handlers] if "GET" in self.handlers else [*self.handlers]
        self.allow = ", ".join([*methods, "OPTIONS"])

    def match(self, path: tuple[str, ...]) -> dict[str, str] | None:
        if len(path) != len(self.parts):
            return None
        names = {}
        for part, value in zip(self.parts, path, strict=True):
            if part[0] == "{":
                names[part[1:-1]] = value
            elif part != value:
                return None
        return names


class Site:
    """Answers requests; on the broker's own thread, without waiting."""

    def __init__(
        self, core: BrokerCore, routes: Iterable[Route], *, listeners: list[Listener]
    ) -> None:
        self.core = core
        #: What the broker listens on.
        self.listeners = listeners
        self.sampler = Sampler(core)
        self._by_length: dict[tuple[int, str], list[Route]] = {}
        for route in routes:
            self._by_length.setdefault((len(route.parts), route.parts[0]), []).append(route)

    def handle(self, request: Request) -> Response:
        """The answer to a request; never an exception."""
        try:
            return self._handle(request)
        except HttpError as error:
            return error.response()
        except Later as later:
            return Response(429, wait_ms=later.wait_ms)
        except Exception:
            log.exception("%s /%s failed", request.method, "/".join(request.path))
            return Response(500)

    def _handle(self, request: Request) -> Response:
        if request.path[:1] != ("api",):
            raise not_found()
        route, names = self._find(request.path[1:])
        method = "GET" if request.method == "HEAD" else request.method
        if method == "OPTIONS":
            return Response(200, headers=[("allow", route.allow)])
        handler = route.handlers.get(method)
        if handler is None:
            raise HttpError(405, "", "", ("allow", route.allow))
        name, password = route.credentials(request)
        call = Call(self, request, names, self._log_in(request, name, password))
        refused = route.rule(call)
        if refused is not None:
            log.warning("HTTP access denied: user '%s' - %s", call.user.name, refused)
            raise HttpError(401, "not_authorised", refused)
        self.sampler.asked()
        result = handler(call)
        return result if isinstance(result, Response) else answer(result)

    def _find(self, path: tuple[str, ...]) -> tuple[Route, dict[str, str]]:
        for route in self._by_length.get((len(path), path[0] if path else ""), ()):
            names = route.match(path)
            if names is not None:
                return route, names
        raise not_found()

    def _log_in(self, request: Request, name: str, password: str) -> User:
        if not request.waited:
            wait_ms = self.core.admin.login_wait_ms(request.peer, name)
            if wait_ms is None:
                log.warning("HTTP access denied: %s: too many logins have failed", request.peer)
                raise HttpError(401, "not_authorized", "Login failed", _REALM)
            if wait_ms:
                raise Later(wait_ms)
        try:
            user = self.core.admin.authenticate(name, password, host=request.peer)
        except AccessRefused as refusal:
            log.warning("HTTP access denied: %s", printable(str(refusal)))
            raise HttpError(401, "not_authorized", "Login failed", _REALM) from None
        if not user.may("management"):
            log.warning("HTTP access denied: user '%s' - Not management user", user.name)
            raise HttpError(401, "not_authorised", "Not management user")
        return user


def _in_form(request: Request) -> tuple[str, str]:
    form = dict(parse_qsl(request.body.decode("utf-8", "replace")))
    return form.get("username", ""), form.get("password", "")


def _in_header(request: Request) -> tuple[str, str]:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            name, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:
            raise HttpError(401, "", "", _REALM) from None
        if colon:
            return name, password
    raise HttpError(401, "", "", _REALM)
