"""Reply codes and texts as errors: what a broker says when it closes, as a client raises it."""

from __future__ import annotations

import re

from warren.errors import (
    AccessRefused,
    ChannelError,
    CommandInvalid,
    ConnectionForced,
    FrameError,
    InternalError,
    Locked,
    NotAllowed,
    NotFound,
    NothingDeclared,
    NotImplementedByBroker,
    OtherRefusal,
    PreconditionFailed,
    Refusal,
    ResourceError,
    ResourceLocked,
    SyntaxRefused,
    Unavailable,
    UnexpectedFrame,
)

_PLAIN: dict[int, type[Refusal]] = {
    cls.code: cls
    for cls in (
        ConnectionForced,
        AccessRefused,
        PreconditionFailed,
        FrameError,
        SyntaxRefused,
        CommandInvalid,
        ChannelError,
        UnexpectedFrame,
        ResourceError,
        NotAllowed,
        NotImplementedByBroker,
        InternalError,
    )
}
_WORD = re.compile(r"[A-Z_]+ - ")
_MISSING = re.compile(r"no (\w+) '(.*)' in vhost '(.*)'", re.DOTALL)
_LOCKED = re.compile(
    r"cannot obtain exclusive access to locked queue '(.*)' in vhost '(.*?)'\. It could", re.DOTALL
)


def as_refusal(code: int, reply_text: str) -> Refusal:
    """The error of a close method."""
    text = _WORD.sub("", reply_text, count=1)
    if code == NotFound.code:
        return _not_found(text)
    if code == ResourceLocked.code:
        found = _LOCKED.match(text)
        return ResourceLocked(*found.groups()) if found else Locked(text)
    plain = _PLAIN.get(code)
    return plain(text) if plain else OtherRefusal(code, reply_text)


def _not_found(text: str) -> Refusal:
    if text == str(NothingDeclared()):
        return NothingDeclared()
    found = _MISSING.fullmatch(text)
    return NotFound(*found.groups()) if found else Unavailable(text)
