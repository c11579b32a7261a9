"""A request, an answer, and the ways to say no."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: Rows of a long list that are put into words at a time.
_ROWS = 100


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, read to its end."""

    method: str
    #: Percent-decoded, one item a segment.
    path: tuple[str, ...]
    query: dict[str, str] = field(default_factory=dict)
    #: The same, for names that come more than once.
    pairs: tuple[tuple[str, str], ...] = ()
    #: Names in lower case.
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    peer: str = ""
    #: It has had its wait, see Response.wait_ms.
    waited: bool = False


@dataclass(slots=True)
class Response:
    """Status, headers, and the body in pieces: others may have their turn between two."""

    status: int = 200
    pieces: Iterator[bytes] | tuple[bytes, ...] = ()
    headers: list[tuple[str, str]] = field(default_factory=list)
    #: Not an answer yet: ask again after this time, having ``waited``.
    wait_ms: int = 0


class HttpError(Exception):
    """An answer that is not what was asked for."""

    def __init__(
        self, status: int, error: str = "", reason: Any = "", *headers: tuple[str, str]
    ) -> None:
        super().__init__(status, error, reason)
        self.status, self.error, self.reason, self.headers = status, error, reason, headers

    def response(self) -> Response:
        if not self.error:
            return Response(self.status, headers=list(self.headers))
        body = {"error": self.error, "reason": self.reason}
        return Response(
            self.status,
            (encode(body),),
            [("content-type", "application/json"), *self.headers],
        )


class Later(Exception):
    """Ask again after a while: logins that failed make this one wait."""

    def __init__(self, wait_ms: int) -> None:
        super().__init__(wait_ms)
        self.wait_ms = wait_ms


def not_found() -> HttpError:
    return HttpError(404, "Object Not Found", "Not Found")


def bad_request(reason: Any) -> HttpError:
    return HttpError(400, "bad_request", reason)


def encode(value: Any) -> bytes:
    """JSON; what is no text in a name becomes a question mark."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(status, (encode(value),), _json_headers())


def answer_rows(rows: Iterator[Any]) -> Response:
    """A list as JSON, made while it is sent."""
    return Response(200, _encode_rows(rows), _json_headers())


def _json_headers() -> list[tuple[str, str]]:
    return [("cache-control", "no-cache"), ("content-type", "application/json")]


def _encode_rows(rows: Iterator[Any]) -> Iterator[bytes]:
    piece: list[bytes] = []
    before = b"["
    for row in rows:
        piece += (before, encode(row))
        before = b","
        if len(piece) >= 2 * _ROWS:
            yield b"".join(piece)
            piece = []
    if before == b"[":
        piece.append(before)
    yield b"".join(piece) + b"]"
