"""From the bytes of a body to a value, as content-encoding and content-type say."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

from warren.errors import DecodeFailed

#: What a compressed body may grow to: a kilobyte of zeros can pretend to be a gigabyte.
MOST_BYTES = 128 * 1024 * 1024

Decode = Callable[[bytes, str], Any]
"""Takes the body and its charset (``utf-8`` where nothing is said)."""
Expand = Callable[[bytes, int], bytes]
"""Takes the compressed body and how many octets it may grow to."""

#: Said by some clients (kombu, Celery) where they mean a charset or nothing at all.
_PLAIN = {"", "identity", "binary", "utf-8", "utf8", "us-ascii", "ascii", "8bit", "7bit"}


class Decoders:
    """The decoders of an app. ``add_type`` and ``add_encoding`` bring in others."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._types: dict[str, Decode] = {"application/json": _json}
        self._encodings: dict[str, Expand] = {
            "gzip": _gzip,
            "x-gzip": _gzip,
            "deflate": _deflate,
        }

    def add_type(self, content_type: str, decode: Decode) -> None:
        """Decode this content-type so: ``decode(body, charset)``."""
        self._types[content_type.lower()] = decode

    def add_encoding(self, name: str, expand: Expand) -> None:
        """Expand this content-encoding so: ``expand(body, most_bytes)``."""
        self._encodings[name.lower()] = expand

    def decode(self, body: bytes, content_type: str | None, content_encoding: str | None) -> Any:
        """The value of a body.

        JSON becomes what JSON says, ``text/*`` a str; a type nobody knows stays bytes.

        Raises:
            DecodeFailed: the body is not what its properties say.
        """
        for name in reversed((content_encoding or "").lower().split(",")):
            body = self._expand(body, name.strip())
        kind, charset = _parse_type(content_type)
        decode = self._types.get(kind)
        if decode is None:
            if kind.endswith("+json"):
                decode = self._types["application/json"]
            elif kind.startswith("text/"):
                decode = _text
            else:
                return body
        try:
            return decode(body, charset)
        except DecodeFailed:
            raise
        except Exception as error:
            raise DecodeFailed(kind, f"{type(error).__name__}: {error}") from error

    def _expand(self, body: bytes, name: str) -> bytes:
        if name in _PLAIN:
            return body
        expand = self._encodings.get(name)
        if expand is None:
            known = ", ".join(sorted(self._encodings))
            raise DecodeFailed(name, f"no such content-encoding here (there are {known})")
        try:
            return expand(body, self._most_bytes)
        except DecodeFailed:
            raise
        except Exception as error:
            raise DecodeFailed(name, f"{type(error).__name__}: {error}") from error


def _parse_type(content_type: str | None) -> tuple[str, str]:
    kind, *parameters = (content_type or "").split(";")
    charset = "utf-8"
    for each in parameters:
        name, _, value = each.partition("=")
        if name.strip().lower() == "charset" and value.strip():
            charset = value.strip().strip('"')
    return kind.strip().lower(), charset


def _json(body: bytes, charset: str) -> Any:
    return json.loads(body if charset.lower() in ("utf-8", "utf8") else body.decode(charset))


def _text(body: bytes, charset: str) -> str:
    return body.decode(charset)


def _gzip(body: bytes, most_bytes: int) -> bytes:
    parts: list[bytes] = []
    left, rest = most_bytes, body
    # A gzip file is one member after another: `cat a.gz b.gz` is a good one.
    while rest:
        part, rest = _inflate(rest, 31, left, "gzip")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _deflate(body: bytes, most_bytes: int) -> bytes:
    # RFC 9110 means zlib's format; some senders leave its two octets out.
    wrapped = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _inflate(body, 15 if wrapped else -15, most_bytes, "deflate")[0]


def _inflate(body: bytes, wbits: int, most_bytes: int, name: str) -> tuple[bytes, bytes]:
    machine = zlib.decompressobj(wbits)
    out = machine.decompress(body, most_bytes + 1)
    if len(out) > most_bytes:
        raise DecodeFailed(name, f"grows beyond {most_bytes} octets")
    if not machine.eof:
        raise DecodeFailed(name, "ends before its end")
    return out, machine.unused_data
