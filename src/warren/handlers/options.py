"""Checks what people pass to ``App(...)`` and ``@app.handler(...)``, where they pass it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from warren.errors import ConfigError
from warren.groups.group import Group
from warren.groups.options import check_option, is_async, is_number

#: What an app says itself to its group.
_OWN = {"self", "url", "name", "queues", "listener", "prefetch"}


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_known(names: Iterable[str], known: Iterable[str], where: str = "") -> None:
    """Refuse a name that is none of the known, with the nearest of them."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ConfigError(f"{where}{name}", f"no such option; {hint}")


def check_app(
    group: Any, rate_limit: Any, threads: Any, own: Iterable[str], options: Mapping[str, Any]
) -> None:
    """Raises ConfigError for the first option of an app that can't be used."""
    if not isinstance(group, str) or not 0 < len(group.encode()) <= 100:
        raise ConfigError("group", f"is {group!r}; a name of 1 to 100 bytes is needed")
    if rate_limit is not None and not (is_number(rate_limit) and rate_limit > 0):
        raise ConfigError("rate_limit", f"is {rate_limit!r}; messages a second, above 0")
    if not (is_count(threads) and threads >= 1):
        raise ConfigError("threads", f"is {threads!r}; at least 1 works")
    group_options = [name for name in inspect.signature(Group).parameters if name not in _OWN]
    check_known(options, [*own, *group_options])
    for name, value in options.items():
        check_option(name, value)


def check_function(function: Any, timeout_s: float | None, where: str) -> None:
    """Refuse what can't be called with a message."""
    if not callable(function):
        raise ConfigError(where, f"is put on {function!r}, which is no function")
    name = getattr(function, "__name__", None) or repr(function)
    try:
        inspect.signature(function).bind("message")
    except TypeError as error:
        raise ConfigError(
            where, f"{name} is called with one argument, the message: {error}"
        ) from None
    except ValueError:  # one of C's that does not tell what it takes
        pass
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ConfigError(where, f"{name} has a yield: calling it would do nothing; return instead")
    if timeout_s is not None and not is_async(function):
        raise ConfigError(
            f"{where} timeout_s",
            f"{name} is a plain function, it runs in a thread and a thread can't be stopped: make "
            "it `async def`, or give what it waits for a timeout of its own",
        )
