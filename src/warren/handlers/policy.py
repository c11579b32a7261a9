"""What a handler asked for: which queues, how many at once, what happens when it fails."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from warren.client.backoff import Backoff
from warren.errors import ConfigError
from warren.groups.discovery import is_pattern

if TYPE_CHECKING:
    from warren.handlers.message import Message


#: The backoff of a trial: nothing waits, a ``Retry`` that names its wait included.
AT_ONCE = Backoff(first_s=0)


@dataclass(frozen=True, slots=True)
class Handling:
    """The settings of one ``@app.handler``."""

    queues: tuple[str, ...]
    prefetch: int = 50
    """Messages of one queue that may be under way to this member."""
    retries: int = 3
    """Attempts after the first one."""
    backoff: Backoff = field(default_factory=Backoff)
    ordered: bool = True
    """True: a failing message holds its queue up until it is done or dead-lettered. False: it
    waits in a delay queue and the next one is taken."""
    concurrency: int = 1
    """Messages of one queue that are worked on at once."""
    key: Callable[[Message], Hashable] | None = None
    """What order is kept by when ``concurrency`` is above 1."""
    timeout_s: float | None = None
    """An attempt that takes longer has failed. (Async handlers; a thread can't be stopped.)"""
    dead_letter: str | None = None
    """Where messages go that failed for good: a queue's name. None: ``warren.dead.<group>``;
    ``"broker"``: reject, and let the queue's own x-dead-letter-exchange decide."""

    def __post_init__(self) -> None:
        _check(self)


def _check(handling: Handling) -> None:
    if not handling.queues:
        raise ConfigError("handler queues", "name at least one queue or pattern")
    for name in handling.queues:
        if not name:
            raise ConfigError("handler queues", "a queue's name can't be empty")
    if not 1 <= handling.prefetch <= 65535:
        raise ConfigError("handler prefetch", f"is {handling.prefetch}; from 1 to 65535 works")
    if handling.retries < 0:
        raise ConfigError("handler retries", f"is {handling.retries}; 0 means: never again")
    if handling.concurrency < 1:
        raise ConfigError("handler concurrency", f"is {handling.concurrency}; at least 1 works")
    if handling.concurrency > handling.prefetch:
        raise ConfigError(
            "handler concurrency",
            f"{handling.concurrency} at once need a prefetch of {handling.concurrency} or more, "
            f"and it is {handling.prefetch}",
        )
    if handling.concurrency > 1 and handling.ordered and handling.key is None:
        raise ConfigError(
            "handler concurrency",
            f"{handling.concurrency} at once can't keep the order of a queue: give key=… (order "
            "kept a key) or ordered=False",
        )
    if handling.timeout_s is not None and handling.timeout_s <= 0:
        raise ConfigError("handler timeout_s", f"is {handling.timeout_s}; must be above 0")


def matches(pattern: str, queue: str) -> bool:
    """Whether a queue's name fits a name or pattern (``*``, ``?``, ``[ab]``), as in a group."""
    return pattern == queue or (is_pattern(pattern) and fnmatchcase(queue, pattern))


def from_options(queues: tuple[str, ...], options: dict[str, Any]) -> Handling:
    """The settings from a decorator's arguments; a misspelt one is named with its neighbour."""
    import difflib
    from dataclasses import fields

    known = [each.name for each in fields(Handling) if each.name != "queues"]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ConfigError(f"handler {name}", f"no such option; {hint}")
    if isinstance(options.get("backoff"), (int, float)):
        options = {**options, "backoff": Backoff(first_s=float(options["backoff"]))}
    return Handling(queues, **options)
