"""A bag of objects that costs nothing of its own while it holds one.

A million bindings mean a million places that nearly always hold a single destination: such a
place holds the object itself, and becomes a dict with counts at the second. ``None`` is the
empty tally. Members are told apart by identity (or their own hash) and are never dicts.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Tally: TypeAlias = Any
"""None, the only member, or ``{member: times}`` in the order they came."""


def join(tally: Tally, member: Any) -> Tally:
    """The tally with ``member`` in it once more."""
    if tally is None:
        return member
    if type(tally) is dict:
        tally[member] = tally.get(member, 0) + 1
        return tally
    return {member: 2} if tally is member else {tally: 1, member: 1}


def leave(tally: Tally, member: Any) -> Tally:
    """The tally with ``member`` in it once less."""
    if type(tally) is not dict:
        return None
    times = tally[member]
    if times > 1:
        tally[member] = times - 1
    else:
        del tally[member]
    if len(tally) == 1:
        ((only, times),) = tally.items()
        return only if times == 1 else tally
    return tally


def members(tally: Tally) -> tuple[Any, ...]:
    """Everyone in it, each once."""
    if tally is None:
        return ()
    return tuple(tally) if type(tally) is dict else (tally,)
