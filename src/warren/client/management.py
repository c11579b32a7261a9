"""The management HTTP API of a broker, ours or RabbitMQ, as a client sees it."""

from __future__ import annotations

import base64
import html
import http.client
import json
import re
import socket
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from warren.errors import (
    ApiLoginRefused,
    ApiMissing,
    ApiRefused,
    ApiTimedOut,
    ApiUnreachable,
    ApiUntrusted,
    ConfigError,
    NotManagement,
)

DEFAULT_URL = "http://guest:guest@127.0.0.1:15672"
_PORTS = {"http": 15672, "https": 15671}


class Management:
    """Calls to one server, over one connection that is kept open between them.

    The password is known here and nowhere shown: ``address`` and ``repr`` go without it.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        password: str | None = None,
        timeout_s: float = 10.0,
        ca_file: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
        verify: bool = True,
    ) -> None:
        parts = _split(url)
        self.scheme, self.host = parts.scheme, parts.hostname or ""
        self.port = parts.port or _PORTS[parts.scheme]
        self.user = unquote(parts.username or "guest")
        self._prefix = parts.path.rstrip("/").removesuffix("/api")
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.address = f"{self.scheme}://{host}:{self.port}{self._prefix}"
        self.timeout_s = timeout_s
        if password is None:
            known = "guest" if self.user == "guest" else ""  # everybody knows that one
            password = known if parts.password is None else unquote(parts.password)
        token = base64.b64encode(f"{self.user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}"}
        self._tls = _tls(ca_file, certificate, key) if self.scheme == "https" else None
        if self._tls is not None and not verify:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        self._connection: http.client.HTTPConnection | None = None

    def __repr__(self) -> str:
        return f"<Management {self.user} at {self.address}>"

    def __enter__(self) -> Management:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- calls ---------------------------------------------------------------------------------
    def get(self, *path: str, what: str = "", query: Mapping[str, Any] | None = None) -> Any:
        """The JSON at a path: its parts, not yet quoted. ``what`` is for the error's sentence."""
        return self.call("GET", path, what=what, query=query)

    def put(self, *path: str, body: Any = None, what: str = "") -> Any:
        return self.call("PUT", path, body=body if body is not None else {}, what=what)

    def post(self, *path: str, body: Any = None, what: str = "") -> Any:
        return self.call("POST", path, body=body if body is not None else {}, what=what)

    def delete(self, *path: str, what: str = "", headers: Mapping[str, str] | None = None) -> Any:
        return self.call("DELETE", path, what=what, headers=headers)

    def call(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        body: Any = None,
        what: str = "",
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """One call; the JSON of the answer, or None if it has none.

        Raises:
            ManagementError: one of the kinds above, none of which shows the password.
        """
        quoted = (quote(part, safe="", errors="surrogateescape") for part in path)
        target = self._prefix + "/api/" + "/".join(quoted)
        if query:
            target += "?" + urlencode(query)
        all_headers: dict[str, str | bytes] = {**self._headers}
        for name, value in (headers or {}).items():
            all_headers[name] = " ".join(value.split()).encode(errors="replace")
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            all_headers["Content-Type"] = "application/json"
        status, answer = self._exchange(method, target, data, all_headers)
        return self._judge(status, answer, what or f"{method} {target}")

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str | bytes]
    ) -> tuple[int, bytes]:
        # A server may close a connection that was idle. A call that does the same when it is
        # made twice is made again then; for another nobody knows whether it was carried out.
        tries = 2 if self._connection is not None and method != "POST" else 1
        while True:
            tries -= 1
            try:
                return self._exchange_once(method, target, data, headers)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                self.close()
                if not tries:
                    what = "it closes the connection without an answer"
                    raise NotManagement(self.address, what) from error
            except TimeoutError as error:
                self.close()
                raise ApiTimedOut(self.address, self.timeout_s) from error
            except http.client.HTTPException as error:
                self.close()
                raise NotManagement(self.address, _not_http(error)) from error
            except ssl.SSLError as error:
                self.close()
                if not isinstance(error, ssl.SSLCertVerificationError):
                    raise NotManagement(self.address, _not_tls(error)) from error
                raise ApiUntrusted(self.address, error.verify_message) from error
            except (OSError, UnicodeError) as error:  # a name that can't be a host's is no text
                self.close()
                raise ApiUnreachable(self.address, _reason(error)) from error

    def _exchange_once(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str | bytes]
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, target, data, headers)
        with self._connection.getresponse() as response:
            return response.status, response.read()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=self.timeout_s, context=self._tls
            )
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)

    def _judge(self, status: int, answer: bytes, what: str) -> Any:
        if status < 300:
            if not answer:
                return None
            try:
                return json.loads(answer)
            except ValueError:
                raise NotManagement(self.address, "its answer is not JSON") from None
        error, reason = _said(answer)
        if status == 401 and error != "not_authorised":
            raise ApiLoginRefused(self.address, self.user, reason or "login failed")
        if status == 401 and reason in (
            "Not management user",
            "User can only log in via localhost",
        ):
            raise ApiLoginRefused(self.address, self.user, reason)
        if status == 404:
            raise ApiMissing(what, status, reason or "not found")
        raise ApiRefused(what, status, reason or f"HTTP status {status}")


def _split(url: str) -> Any:
    """The parts of the URL; what is wrong with it is told without its password."""
    shown = re.sub(r"//.*@", "//", url)  # a password may hold a slash, by mistake
    no_url = ConfigError("--url", f"{shown!r} is not like http://guest@localhost:15672", "address")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, a port that is no number
        raise no_url from None
    if parts.scheme in ("amqp", "amqps"):
        raise ConfigError(
            "--url",
            f"{shown} is where clients connect; the management API has an address of its own, such "
            f"as http://{parts.hostname or 'localhost'}:15672",
            "address",
        )
    if not usable:
        raise no_url
    return parts


def _tls(ca_file: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError("--ca-file", f"{ca_file}: {_reason(error)}") from None
    if certificate is None:
        if key is not None:
            raise ConfigError("--client-key", "is of no use without --client-certificate")
        return context
    try:
        # A key with a password would be asked for on the terminal, again and again.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except ssl.SSLError:
        files = certificate if key is None else f"{certificate} with {key}"
        hint = "has no certificate and key that belong together; --client-key names the key's file"
        raise ConfigError("--client-certificate", f"{files} {hint}") from None
    except OSError as error:
        raise ConfigError("--client-certificate", f"{certificate}: {_reason(error)}") from None
    return context


def _not_tls(error: ssl.SSLError) -> str:
    if "ALERT" in (error.reason or ""):
        return (
            f"it refuses the connection: {str(error.reason).replace('_', ' ').lower()}; "
            "--client-certificate shows it who you are"
        )
    return "it does not speak TLS"


def _said(answer: bytes) -> tuple[str, str]:
    """The word and the sentence of a refusal, Erlang's and HTML's spellings undone."""
    try:
        told = json.loads(answer)
        error, reason = str(told["error"]), told["reason"]
    except (ValueError, KeyError, TypeError):
        return "", ""
    reason = _text(reason)
    reason = html.unescape(reason).removeprefix("Validation failed")
    reason = re.sub(r'<<"(.*?)">>', r'"\1"', reason)
    return error, " ".join(reason.split())


def _text(reason: Any) -> str:
    """Erlang terms in JSON: lists of words, and of the characters of a word."""
    if not isinstance(reason, list):
        return str(reason)
    if reason and all(isinstance(each, int) and 32 <= each < 0x110000 for each in reason):
        return "".join(map(chr, reason))
    return " ".join(_text(each) for each in reason)


def _not_http(error: http.client.HTTPException) -> str:
    if isinstance(error, http.client.BadStatusLine) and "AMQP" in str(error):
        return "it speaks AMQP, not HTTP"
    return "it does not speak HTTP"


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return "there is no host of that name"
    return error.strerror or str(error)
