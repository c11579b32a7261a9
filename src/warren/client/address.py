"""What the asyncio client needs to connect to a broker: its endpoint with a login and TLS ready."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from warren.amqp.login import Login, plain
from warren.client.endpoint import CHANNEL_MAX, CONNECT_TIMEOUT_S, HEARTBEAT_S, parse_uri
from warren.errors import ConfigError


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
    channel_max: int = CHANNEL_MAX
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
    wanted = {"heartbeat_s": heartbeat_s, "connect_timeout_s": connect_timeout_s, "name": name}
    addresses = [
        address
        for url in ([urls] if isinstance(urls, str) else urls)
        for address in _addresses(url, tls, wanted)
    ]
    if not addresses:
        raise ConfigError("url", "no broker is named; such as amqp://localhost")
    return addresses


def _addresses(url: str, tls: ssl.SSLContext | None, wanted: dict[str, Any]) -> list[Address]:
    endpoints = [endpoint.but(**wanted) for endpoint in parse_uri(url, "url")]
    first = endpoints[0]
    context = (tls or first.tls_context()) if first.tls else None
    return [
        Address(
            *each.address,
            each.vhost,
            each.login,
            context,
            each.heartbeat_s,
            each.connect_timeout_s,
            each.channel_max,
            each.name,
        )
        for each in endpoints
    ]
