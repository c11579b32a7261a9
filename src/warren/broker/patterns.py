"""Permission patterns: Perl regular expressions, as RabbitMQ takes them, on Python's engine.

Both search anywhere in the name and look at octets, not characters. What is spelled differently
is translated; what Python's engine does not know at all is refused when it is set.
"""

from __future__ import annotations

import re
from functools import lru_cache

from warren.errors import AdminError

#: The empty pattern matches the empty name only.
NOTHING = "^$"

_POSIX = {
    b"alnum": b"a-zA-Z0-9",
    b"alpha": b"a-zA-Z",
    b"ascii": rb"\x00-\x7f",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": b"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": b"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb"\s",
    b"upper": b"A-Z",
    b"word": rb"\w",
    b"xdigit": b"0-9a-fA-F",
}
_ESCAPES = {
    b"z": rb"\Z",
    b"Z": rb"(?=\n?\Z)",
    b"h": rb"[ \t]",
    b"H": rb"[^ \t]",
    b"R": rb"(?:\r\n|[\n\v\f\r\x85])",
    b"N": rb"[^\n]",
    b"e": rb"\x1b",
}
_TOKEN = re.compile(
    rb"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    rb"|\\(?P<escaped>.)"
    rb"|\(\?<(?P<group>[A-Za-z_]\w*)>"
    rb"|\(\?'(?P<quoted_group>[A-Za-z_]\w*)'"
    rb"|\[(?P<negated>\^?)(?P<set>\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*)\]",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[bytes]:
    """The pattern for Python; AdminError if it is none."""
    octets = (pattern or NOTHING).encode("utf-8", "surrogateescape")
    try:
        return re.compile(_TOKEN.sub(_translate, octets))
    except (re.error, OverflowError, RecursionError) as error:
        raise AdminError("bad_request", "invalid_regexp", f"{pattern}: {error}") from None


def matches(pattern: str, name: str) -> bool:
    """Does RabbitMQ find the pattern in the name?"""
    if pattern == ".*":  # what nearly everybody has
        return True
    return compile_pattern(pattern).search(name.encode("utf-8", "surrogateescape")) is not None


def _translate(match: re.Match[bytes]) -> bytes:
    if match["quoted"] is not None:
        return re.escape(match["quoted"])
    if match["escaped"] is not None:
        return _ESCAPES.get(match["escaped"], match[0])
    group = match["group"] or match["quoted_group"]
    if group is not None:
        return b"(?P<" + group + b">"
    inside = re.sub(rb"\[:(\^?)([a-z]+):\]", _posix, match["set"])
    # A bracket inside of a set means itself in Perl; Python warns of what it may mean some day.
    inside = re.sub(rb"(?<!\\)\[", rb"\\[", inside)
    inside = inside.replace(rb"\h", rb" \t").replace(rb"\e", rb"\x1b")
    return b"[" + match["negated"] + inside + b"]"


def _posix(match: re.Match[bytes]) -> bytes:
    negated, name = match[1], match[2]
    if name not in _POSIX:
        raise re.error(f"unknown POSIX class name {name.decode()!r}")
    if not negated:
        return _POSIX[name]
    wanted = re.compile(b"[" + _POSIX[name] + b"]")
    others = [octet for octet in range(256) if wanted.match(bytes((octet,))) is None]
    return b"".join(b"\\x%02x" % octet for octet in others)
