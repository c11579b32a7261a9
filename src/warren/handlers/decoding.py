"""From the bytes of a body to a value, as content-encoding and content-type say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from warren.content_encoding import ENCODINGS, MOST_BYTES, Expand, expand
from warren.content_type import parse_content_type
from warren.errors import DecodeFailed

Decode = Callable[[bytes, str], Any]
"""Takes the body and its charset (``utf-8`` where nothing is said)."""


class Decoders:
    """The decoders of an app. ``add_type`` and ``add_encoding`` bring in others."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._types: dict[str, Decode] = {"application/json": _json}
        self._encodings: dict[str, Expand] = dict(ENCODINGS)

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
            PackageMissing: it is packed with zstd, and the package for that is not installed.
        """
        body = expand(body, content_encoding, self._most_bytes, encodings=self._encodings)
        kind, charset = parse_content_type(content_type)
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


def _json(body: bytes, charset: str) -> Any:
    return json.loads(body if charset == "utf-8" else body.decode(charset))


def _text(body: bytes, charset: str) -> str:
    return body.decode(charset)
