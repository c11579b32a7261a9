"""Where a broker is and how to log in there: AMQP URLs."""

from __future__ import annotations

import difflib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from warren.amqp.login import Login, external, plain
from warren.errors import ConfigError

PORTS = {"amqp": 5672, "amqps": 5671}
HEARTBEAT_S = 60
CONNECT_TIMEOUT_S = 10.0
#: Parameters of a URL, named as RabbitMQ's own clients name them.
PARAMETERS = (
    "auth_mechanism",
    "cacertfile",
    "certfile",
    "channel_max",
    "connection_timeout",
    "heartbeat",
    "keyfile",
    "name",
    "verify",
)


@dataclass(frozen=True)
class Address:
    """One broker: host, port, and all that a connection to it needs."""

    host: str
    port: int
    vhost: str = "/"
    login: Login = field(default_factory=lambda: plain("guest", "guest"))
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    heartbeat_s: int = HEARTBEAT_S
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    channel_max: int = 2047
    name: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_urls(
    urls: str | Sequence[str],
    *,
    tls: ssl.SSLContext | None = None,
    heartbeat_s: int | None = None,
    connect_timeout_s: float | None = None,
    name: str | None = None,
) -> list[Address]:
    """The brokers that URLs name; arguments win over what the URLs say."""
    given = {"heartbeat_s": heartbeat_s, "connect_timeout_s": connect_timeout_s, "name": name}
    wanted = {key: value for key, value in given.items() if value is not None}
    addresses = [
        address
        for url in ([urls] if isinstance(urls, str) else urls)
        for address in _parse(url, tls, wanted)
    ]
    if not addresses:
        raise ConfigError("url", "no broker is named; such as amqp://localhost")
    return addresses


def _parse(url: str, tls: ssl.SSLContext | None, wanted: Mapping[str, object]) -> list[Address]:
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        raise ConfigError("url", f"'{_safe(url)}' does not begin with amqp:// or amqps://")
    userinfo, _, hosts = parts.netloc.rpartition("@")
    options = _options(parts.query)
    context = None
    if parts.scheme == "amqps":
        context = tls or _context(options)
    settings = {
        "vhost": unquote(parts.path[1:]) or "/",
        "login": _login(userinfo, options),
        "tls": context,
        "heartbeat_s": _number("heartbeat", options.get("heartbeat"), HEARTBEAT_S, 65535),
        "connect_timeout_s": _number(
            "connection_timeout", options.get("connection_timeout"), 10_000, 3_600_000
        )
        / 1000,
        "channel_max": _number("channel_max", options.get("channel_max"), 2047, 65535),
        "name": options.get("name", ""),
        **wanted,
    }
    return [
        Address(*_host(host, PORTS[parts.scheme]), **settings)  # type: ignore[arg-type]
        for host in hosts.split(",")
    ]


def _host(text: str, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError as error:
        raise ConfigError("url", f"'{text}' is not a host and port: {error}") from None
    return unquote(parts.hostname or "localhost"), port or default


def _login(userinfo: str, options: Mapping[str, str]) -> Login:
    mechanism = options.get("auth_mechanism", "plain").upper()
    if mechanism == "EXTERNAL":
        return external()
    if mechanism != "PLAIN":
        raise ConfigError("auth_mechanism", f"'{mechanism}' is not known; plain and external are")
    user, colon, password = userinfo.partition(":")
    if not user:
        return plain("guest", "guest")
    return plain(unquote(user), unquote(password) if colon else "")


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for key in options:
        if key not in PARAMETERS:
            near = difflib.get_close_matches(key, PARAMETERS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(PARAMETERS)}"
            raise ConfigError("url", f"there is no parameter '{key}'; {hint}")
    return options


def _number(option: str, text: str | None, default: int, most: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text) > most:
        raise ConfigError(option, f"'{text}' is not a whole number from 0 to {most}", "url")
    return int(text)


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("cacertfile"))
        if options.get("verify") == "verify_none":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if "certfile" in options:
            context.load_cert_chain(options["certfile"], options.get("keyfile"))
    except OSError as error:
        files = ", ".join(options[key] for key in options if key.endswith("file"))
        raise ConfigError("url", f"can't use {files}: {error.strerror or error}") from None
    return context


def _safe(url: str) -> str:
    """A URL for people to read: without what may be a password."""
    scheme, _, rest = url.rpartition("@")
    return f"{scheme.partition(':')[0]}:...@{rest}" if scheme else url
