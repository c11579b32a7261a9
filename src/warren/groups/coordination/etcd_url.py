"""Where etcd is, as people write it: ``etcd://ann:secret@one:2379,two:2379``."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from warren.errors import ConfigError
from warren.groups.coordination.etcd_link import Endpoint

_PORT = 2379
_TLS = {"etcd": False, "http": False, "etcds": True, "https": True}
_PARTS = ("ca_file", "cert_file", "key_file", "prefix", "ttl_s", "timeout_s")


@dataclass(frozen=True)
class EtcdAddress:
    """The endpoints of one etcd, and how to log in there."""

    endpoints: tuple[Endpoint, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    prefix: str = "/warren"
    ttl_s: int = 5
    """A member that is not heard of for so long has gone."""
    timeout_s: float = 3.0
    """So long an endpoint may take to answer."""

    @classmethod
    def parse(cls, url: str, *, option: str = "coordinator") -> EtcdAddress:
        """Read a URL: scheme ``etcd`` or ``etcds`` (TLS), several hosts, port 2379 if none.

        The rest comes behind a question mark: ``etcds://one,two?ca_file=ca.pem&ttl_s=10``.

        Raises:
            ConfigError: it is not such a URL; the password is not shown.
        """
        shown = re.sub(r"//[^/]*@", "//", url)
        problem = ConfigError(option, f"{shown!r} is not like etcd://host:2379,host:2379")
        scheme, _, rest = url.partition("://")
        if scheme not in _TLS or not rest:
            raise problem
        where, _, query = re.sub(r",\w+://", ",", rest).partition("?")
        login, _, hosts = where.rstrip("/").rpartition("@")
        if "/" in hosts:
            raise problem
        try:
            endpoints = tuple(_endpoint(each, _TLS[scheme]) for each in hosts.split(","))
        except ValueError:
            raise problem from None
        user, _, password = login.partition(":")
        parts: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
        if unknown := set(parts) - set(_PARTS):
            known = ", ".join(_PARTS)
            raise ConfigError(option, f"no such part: {', '.join(sorted(unknown))}; known: {known}")
        for name, kind, least in (("ttl_s", int, 2), ("timeout_s", float, 0.1)):
            if name in parts:
                parts[name] = _number(parts[name], kind, least, option, name)
        return cls(endpoints, unquote(user), unquote(password), **parts)

    def tls_context(self) -> ssl.SSLContext | None:
        """What the endpoints' certificates are checked with; None without TLS."""
        if not any(each.tls for each in self.endpoints):
            return None
        name = self.ca_file
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.cert_file:
                name = self.cert_file
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            raise ConfigError("coordinator", f"{name}: {reason}", "TLS") from None
        return context


def _number(text: str, kind: type[int | float], least: float, option: str, name: str) -> float:
    try:
        value = kind(text)
        if least <= value <= 3600:
            return value
    except ValueError:
        pass
    raise ConfigError(option, f"{name} is a number of seconds from {least:g} on, not {text!r}")


def _endpoint(text: str, tls: bool) -> Endpoint:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.path or parts.port == 0:
        raise ValueError(text)
    return Endpoint(parts.hostname, parts.port or _PORT, tls)
