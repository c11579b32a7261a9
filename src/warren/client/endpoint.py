"""Where a broker is and who logs in there."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from warren.errors import ConfigError

#: Scheme to TLS or not; HTTP for the management API.
_SCHEMES = {"amqp": False, "amqps": True, "http": False, "https": True}
_PORTS = {"amqp": 5672, "amqps": 5671, "http": 15672, "https": 15671}


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
    heartbeat_s: int = 30
    connect_timeout_s: float = 15.0
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True

    @classmethod
    def from_uri(cls, uri: str) -> Endpoint:
        """An ``amqp://`` or ``amqps://`` URI; raises ConfigError without quoting the password."""
        try:
            parts = urlsplit(uri)
            port = parts.port
        except ValueError as error:
            raise ConfigError("uri", str(error)) from None
        if parts.scheme not in _SCHEMES:
            raise ConfigError(
                "uri", "must begin with amqp:// or amqps://, as in amqp://guest:guest@localhost/"
            )
        path = parts.path.removeprefix("/")
        query = parse_qs(parts.query)
        return cls(
            host=unquote(parts.hostname or "127.0.0.1"),
            port=port,
            # RabbitMQ's URI spec: no path is the default vhost, "/" alone as well in practice.
            vhost=unquote(path) if path else "/",
            user=unquote(parts.username) if parts.username is not None else "guest",
            password=unquote(parts.password) if parts.password is not None else "guest",
            tls=_SCHEMES[parts.scheme],
            scheme=parts.scheme,
            heartbeat_s=_seconds("heartbeat", query.get("heartbeat", ["30"])[0]),
            ca_file=query.get("cacertfile", [None])[0],
        )

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
        except (OSError, ssl.SSLError) as error:
            raise ConfigError("tls", f"certificate files can't be read: {error}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _seconds(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigError("uri", f"{option}={text} is not a whole number of seconds")
    return int(text)
