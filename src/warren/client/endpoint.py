"""Where a broker is and who logs in there: AMQP URIs, read the same way everywhere.

An endpoint is plain data, so that it can be sent to other machines; ``address`` makes of it what
the asyncio client connects with.
"""

from __future__ import annotations

import difflib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from warren.amqp.login import Login, external, plain
from warren.errors import ConfigError

_TLS = ("amqps", "https")
_PORTS = {"amqp": 5672, "amqps": 5671, "http": 15672, "https": 15671}
#: Schemes that a URI may have, and one to show: a broker's, and its management API's.
AMQP = (("amqp", "amqps"), "amqp://guest:guest@localhost/")
HTTP = (("http", "https"), "http://localhost:15672")
HEARTBEAT_S = 60
CONNECT_TIMEOUT_S = 10.0
CHANNEL_MAX = 2047
#: What is told where a password may have ended too early.
_ENCODE = "in a user or a password, write / as %2F, ? as %3F, # as %23 and @ as %40"
#: Parameters of a URI, named as RabbitMQ's own clients name them.
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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One broker's address, with the login; the password never shows."""

    host: str = "127.0.0.1"
    port: int | None = None
    vhost: str = "/"
    user: str = "guest"
    password: str = field(default="guest", repr=False)
    tls: bool = False
    scheme: str = "amqp"
    heartbeat_s: int = HEARTBEAT_S
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    channel_max: int = CHANNEL_MAX
    name: str = ""
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    #: The certificate that TLS has shown says who it is, no password does.
    by_certificate: bool = False

    @classmethod
    def from_uri(cls, uri: str) -> Endpoint:
        """The first broker that a URI names; raises ConfigError without quoting the password."""
        return parse_uri(uri)[0]

    def but(self, **changes: Any) -> Endpoint:
        """The same with other values; None leaves one as it is."""
        return replace(
            self, **{name: value for name, value in changes.items() if value is not None}
        )

    @property
    def address(self) -> tuple[str, int]:
        scheme = "amqps" if self.tls and self.scheme == "amqp" else self.scheme
        return self.host, self.port or _PORTS[scheme]

    @property
    def login(self) -> Login:
        return external() if self.by_certificate else plain(self.user, self.password)

    @property
    def shown(self) -> str:
        """For logs and errors: no password."""
        host, port = self.address
        return f"{self.user}@{host}:{port}{'' if self.vhost == '/' else '/' + self.vhost}"

    def tls_context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file)
        except OSError as error:
            files = [file for file in (self.ca_file, self.cert_file, self.key_file) if file]
            why = error.strerror or error
            raise ConfigError("tls", f"can't use {', '.join(files)}: {why}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def parse_uri(
    uri: str,
    setting: str = "uri",
    *,
    kind: tuple[tuple[str, str], str] = AMQP,
    **silent: Any,
) -> list[Endpoint]:
    """The brokers that a URI names: ``amqps://user:password@one,two:5671/vhost?heartbeat=5``.

    ``silent`` says what holds where the URI is silent. Raises ConfigError, which names the
    ``setting`` and quotes no password.
    """
    schemes, example = kind
    try:
        parts = urlsplit(uri)
    except ValueError:  # whose words may quote all of it
        raise ConfigError(setting, f"no host can be found in it; {_ENCODE}") from None
    if parts.scheme not in schemes:
        begin = " or ".join(f"{scheme}://" for scheme in schemes)
        problem = f"'{_safe(uri)}' does not begin with {begin}; such as {example}"
        raise ConfigError(setting, problem)
    userinfo, _, hosts = parts.netloc.rpartition("@")
    if _is_cut(parts):
        problem = f"an @ stands behind the first /, ? or #; {_ENCODE}, and in a vhost @ as %40"
        raise ConfigError(setting, problem)
    about = {**silent, **_told(parts, setting), **_user(userinfo)}
    # Whatever is behind the only @ was not meant as a part of the password.
    is_public = bool(userinfo) and uri.count("@") == 1
    return [Endpoint(*_host(host, setting, is_public), **about) for host in hosts.split(",")]


def _is_cut(parts: SplitResult) -> bool:
    """A password with a /, a ? or a # in it ends there: its rest is taken for what it is not."""
    given = parse_qsl(parts.query, keep_blank_values=True)
    strange = "".join(name + value for name, value in given if name not in PARAMETERS)
    if "@" in parts.fragment + strange:
        return True
    return "@" not in parts.netloc and "@" in parts.path


def _told(parts: SplitResult, setting: str) -> dict[str, Any]:
    """What path and parameters say."""
    # RabbitMQ's URI spec: no path is the default vhost, "/" alone as well in practice.
    told: dict[str, Any] = {
        "vhost": unquote(parts.path.removeprefix("/")) or "/",
        "scheme": parts.scheme,
        "tls": parts.scheme in _TLS,
    }
    given = _parameters(parts.query, setting)
    for parameter, name, most in (
        ("heartbeat", "heartbeat_s", 65535),
        ("channel_max", "channel_max", 65535),
        ("connection_timeout", "connect_timeout_s", 3_600_000),
    ):
        if parameter in given:
            told[name] = _number(parameter, given[parameter], most, setting)
    if "connect_timeout_s" in told:
        told["connect_timeout_s"] /= 1000
    for parameter, name in (
        ("name", "name"),
        ("cacertfile", "ca_file"),
        ("certfile", "cert_file"),
        ("keyfile", "key_file"),
    ):
        if parameter in given:
            told[name] = given[parameter]
    if "verify" in given:
        told["verify"] = _choice(given, "verify", ("verify_peer", "verify_none"), setting) == 0
    if "auth_mechanism" in given:
        mechanisms = ("plain", "external")
        told["by_certificate"] = _choice(given, "auth_mechanism", mechanisms, setting) == 1
    return told


def _user(userinfo: str) -> dict[str, str]:
    user, _, password = userinfo.partition(":")
    return {"user": unquote(user), "password": unquote(password)} if user else {}


def _host(text: str, setting: str, is_public: bool) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:  # whose words quote the port
        problem = "is not a host and port: a port is 0 to 65535"
        problem = f"'{text}' {problem}" if is_public else f"this {problem}; {_ENCODE}"
        raise ConfigError(setting, problem) from None
    return unquote(parts.hostname or "localhost"), port


def _parameters(query: str, setting: str) -> dict[str, str]:
    given = dict(parse_qsl(query, keep_blank_values=True))
    for key in given:
        if key not in PARAMETERS:
            near = difflib.get_close_matches(key, PARAMETERS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(PARAMETERS)}"
            raise ConfigError(setting, f"there is no parameter '{key}'; {hint}")
    return given


def _number(option: str, text: str, most: int, setting: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > most:
        raise ConfigError(option, f"'{text}' is not a whole number from 0 to {most}", setting)
    return int(text)


def _choice(given: Mapping[str, str], option: str, choices: tuple[str, ...], setting: str) -> int:
    """Which of the choices it is."""
    if given[option].lower() not in choices:
        known = " and ".join(choices)
        raise ConfigError(option, f"'{given[option]}' is not known; {known} are", setting)
    return choices.index(given[option].lower())


def _safe(uri: str) -> str:
    """A URI for people to read: only what stands before anything that may be a password."""
    begin, more, _ = uri.partition("@")[0].partition(":")
    return f"{begin}:..." if more else begin
