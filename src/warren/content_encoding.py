"""From a compressed body to the body, as content-encoding says."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from warren.errors import DecodeFailed, PackageMissing

#: What a compressed body may grow to: a kilobyte of zeros can pretend to be a gigabyte.
MOST_BYTES = 128 * 1024 * 1024

Expand = Callable[[bytes, int], bytes]
"""Takes the compressed body and how many octets it may grow to."""

#: Said by some clients (kombu, Celery) where they mean a charset or nothing at all.
_PLAIN = {"", "identity", "binary", "utf-8", "utf8", "us-ascii", "ascii", "8bit", "7bit"}

#: Octets that a machine gets at a time. zstd can't be told where to stop, and makes up to 128 KiB
#: of 4 octets: this is 32 MiB too much at worst. And what comes after the end of a member is
#: copied: of the whole rest, a body of many small members would take the square of its size.
_STEP = 1024


def expand(
    body: bytes,
    content_encoding: str | None,
    most_bytes: int = MOST_BYTES,
    *,
    encodings: Mapping[str, Expand] | None = None,
) -> bytes:
    """The body without its compression: gzip, deflate or zstd.

    Of several names, separated by commas, the last is undone first. ``encodings`` takes the place
    of ``ENCODINGS``. A name that says nothing, such as ``identity`` or ``utf-8``, changes nothing.

    Raises:
        DecodeFailed: the body is not what the name says, or grows beyond ``most_bytes``.
        PackageMissing: it is zstd, and the package for it is not installed.
    """
    if not content_encoding:
        return body
    known = ENCODINGS if encodings is None else encodings
    for each in reversed(content_encoding.lower().split(",")):
        name = each.strip()
        if name not in _PLAIN:
            body = _undo(name, body, most_bytes, known)
    return body


def _undo(name: str, body: bytes, most_bytes: int, known: Mapping[str, Expand]) -> bytes:
    if name not in known:
        names = ", ".join(sorted(known))
        raise DecodeFailed(name, f"no such content-encoding here (there are {names})")
    try:
        return known[name](body, most_bytes)
    except (DecodeFailed, PackageMissing):
        raise
    except Exception as error:
        raise DecodeFailed(name, f"{type(error).__name__}: {error}") from error


def _gzip(body: bytes, most_bytes: int) -> bytes:
    return _members(
        "gzip",
        body,
        most_bytes,
        machine=lambda: zlib.decompressobj(31),
        step=lambda machine, octets, left: machine.decompress(octets, left + 1),
    )


def _zstd(body: bytes, most_bytes: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise PackageMissing("zstandard", "content-encoding zstd") from None
    return _members(
        "zstd",
        body,
        most_bytes,
        machine=zstandard.ZstdDecompressor().decompressobj,
        step=lambda machine, octets, left: machine.decompress(octets),
    )


def _members(
    name: str,
    body: bytes,
    most_bytes: int,
    *,
    machine: Callable[[], Any],
    step: Callable[[Any, bytes, int], bytes],
) -> bytes:
    """One member after another: what ``cat a.gz b.gz`` writes is a good file."""
    parts: list[bytes] = []
    at, left = 0, most_bytes
    while at < len(body):
        current = machine()
        while not current.eof:
            if at >= len(body):
                raise DecodeFailed(name, "ends before its end")
            part = step(current, body[at : at + _STEP], left)
            at += _STEP
            left -= len(part)
            if left < 0:
                raise DecodeFailed(name, f"grows beyond {most_bytes} octets")
            parts.append(part)
        at = min(at, len(body)) - len(current.unused_data)
    return b"".join(parts)


def _deflate(body: bytes, most_bytes: int) -> bytes:
    # RFC 9110 means zlib's format; some senders leave its two octets out.
    wrapped = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    machine = zlib.decompressobj(15 if wrapped else -15)
    out = machine.decompress(body, most_bytes + 1)
    if len(out) > most_bytes:
        raise DecodeFailed("deflate", f"grows beyond {most_bytes} octets")
    if not machine.eof:
        raise DecodeFailed("deflate", "ends before its end")
    return out


#: The content-encodings that are known here.
ENCODINGS: Mapping[str, Expand] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
