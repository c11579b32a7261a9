"""What a handler asked for: which queues, how many at once, what happens when it fails."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from warren.client.backoff import Backoff
from warren.errors import ConfigError
from warren.groups.options import is_number
from warren.handlers.options import check_known, is_count

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
    """An attempt that takes longer has failed. (Async handlers only: a thread can't be stopped.)"""
    dead_letter: str | None = None
    """Where messages go that failed for good: a queue's name; declared, durable, if it is not
    there. None: ``warren.dead.<group>``; ``"broker"``: reject, and let the queue's
    own x-dead-letter-exchange decide."""

    def __post_init__(self) -> None:
        _check(self)


def label(queues: tuple[Any, ...]) -> str:
    """How a handler is named in errors: as it was asked for."""
    return f"@app.handler({', '.join(map(repr, queues))})"


def _check(handling: Handling) -> None:
    where = label(handling.queues)
    _check_queues(handling.queues, where)
    _check_kinds(handling, where)
    if not 1 <= handling.prefetch <= 65535:
        raise ConfigError(f"{where} prefetch", f"is {handling.prefetch}; from 1 to 65535 works")
    if handling.retries < 0:
        raise ConfigError(f"{where} retries", f"is {handling.retries}; 0 means: never again")
    if handling.timeout_s is not None and not handling.timeout_s > 0:
        raise ConfigError(f"{where} timeout_s", f"is {handling.timeout_s}; must be above 0")
    _check_concurrency(handling, f"{where} concurrency")


def _check_queues(queues: tuple[Any, ...], where: str) -> None:
    if not queues:
        raise ConfigError(where, "name at least one queue or pattern")
    for name in queues:
        if isinstance(name, (list, tuple, set, frozenset)):
            names = ", ".join(map(repr, name))
            raise ConfigError(where, f"names are arguments, not a list: @app.handler({names})")
        if not isinstance(name, str):
            raise ConfigError(where, f"{name!r} is no queue's name: a text is needed")
        if not name:
            raise ConfigError(where, "a queue's name can't be empty")


def _check_kinds(handling: Handling, where: str) -> None:
    for name in ("prefetch", "retries", "concurrency"):
        if not is_count(value := getattr(handling, name)):
            raise ConfigError(f"{where} {name}", f"is {value!r}; a whole number is needed")
    if not isinstance(handling.backoff, Backoff):
        text = f"is {handling.backoff!r}; seconds as a number, or a warren.Backoff"
        raise ConfigError(f"{where} backoff", text)
    if not isinstance(handling.ordered, bool):
        raise ConfigError(f"{where} ordered", f"is {handling.ordered!r}; True or False")
    if handling.key is not None and not callable(handling.key):
        text = f"is {handling.key!r}; a function of the message is needed"
        raise ConfigError(f"{where} key", text)
    if handling.timeout_s is not None and not is_number(handling.timeout_s):
        raise ConfigError(f"{where} timeout_s", f"is {handling.timeout_s!r}; seconds, a number")
    dead: Any = handling.dead_letter
    if dead is not None and not (isinstance(dead, str) and dead):
        raise ConfigError(f"{where} dead_letter", f"is {dead!r}; a queue's name, or 'broker'")


def _check_concurrency(handling: Handling, where: str) -> None:
    count = handling.concurrency
    if count < 1:
        raise ConfigError(where, f"is {count}; at least 1 works")
    if count > handling.prefetch:
        raise ConfigError(
            where,
            f"{count} at once need a prefetch of {count} or more, and it is {handling.prefetch}",
        )
    if count > 1 and handling.ordered and handling.key is None:
        raise ConfigError(
            where,
            f"{count} at once can't keep the order of a queue: give key=… (order kept a key) or "
            "ordered=False",
        )


def from_options(queues: tuple[str, ...], options: dict[str, Any]) -> Handling:
    """The settings from a decorator's arguments; a misspelt one is named with its neighbour."""
    known = [each.name for each in fields(Handling) if each.name != "queues"]
    where = label(queues)
    check_known(options, known, f"{where} ")
    wait: Any = options.get("backoff")
    if is_number(wait):
        if not wait >= 0:
            raise ConfigError(f"{where} backoff", f"is {wait}; seconds, 0 or more")
        options = {**options, "backoff": Backoff(first_s=float(wait))}
    return Handling(queues, **options)
