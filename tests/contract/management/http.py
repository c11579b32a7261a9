"""A client for RabbitMQ's HTTP API that hides nothing: status, headers, body."""

from __future__ import annotations

import base64
import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

#: What is in these differs from one broker, or one object, to the next: names of nodes, arguments.
_FREE_KEYS = (
    *("cluster_state", "open_files", "readers", "socket_opts", "client_properties"),
    *("arguments", "config_files", "log_files"),
)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def said(self) -> tuple[int, Any]:
        """Status and JSON body, or None where it is empty."""
        return self.status, self.json if self.body else None


class Api:
    """One user's view of a broker's API."""

    def __init__(self, url: str, user: str = "guest", password: str = "guest") -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 80
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"authorization": f"Basic {token}"} if user else {}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """``path`` is below ``/api/`` unless it begins with a slash; bytes are sent as they are."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = {} if data is None else {"content-type": "application/json"}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            target = path if path.startswith("/") else f"/api/{path}"
            connection.request(method, target, data, {**self._headers, **kind, **given})
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The JSON of a path that is there."""
        answer = self.ask("GET", path)
        assert answer.status == 200, (path, answer)
        return answer.json

    def put(self, path: str, body: Any = None) -> tuple[int, Any]:
        return self.ask("PUT", path, body).said

    def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        return self.ask("POST", path, body).said

    def delete(self, path: str) -> tuple[int, Any]:
        return self.ask("DELETE", path).said


def at(*parts: str) -> str:
    """A path, each part quoted."""
    return "/".join(quote(part, safe="") for part in parts)


def shape(value: Any, key: str = "") -> Any:
    """Names and types; of a list the first item's."""
    if key in _FREE_KEYS:
        return "anything"
    if isinstance(value, dict):
        return {name: shape(item, name) for name, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else "text"
