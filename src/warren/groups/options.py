"""Checks what people pass to ``Group(...)``, where they pass it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from warren.client.address import parse_urls
from warren.errors import ConfigError
from warren.groups.listener import Listener

_ABOVE_0 = {"load_interval_s", "heartbeat_s", "discover_s"}
_NUMBERS = _ABOVE_0 | {"weight", "drain_s", "session_s", "min_interval_s"}
_TEXTS = {"coordinator", "member_name", "balance", "management"}
_MAY_BE_NONE = {"member_name", "management"}


def check_options(**options: Any) -> None:
    """Raises ConfigError for the first option of a group that can't be used."""
    for name, value in options.items():
        check_option(name, value)


def check_option(name: str, value: Any) -> None:
    """Raises ConfigError if this option of a group can't be used."""
    if value is None and name in _MAY_BE_NONE:
        return
    if name in _TEXTS and not (isinstance(value, str) and value):
        raise ConfigError(name, f"is {value!r}; a text is needed")
    if name == "member_name" and len(value.encode()) > 80:
        raise ConfigError(name, f"'{value}': 1 to 80 bytes are needed")
    if name == "balance" and value not in ("count", "load"):
        raise ConfigError(name, f"is '{value}'; count or load")
    if name in _NUMBERS and not is_number(value):
        raise ConfigError(name, f"is {value!r}; a number is needed")
    if name in _ABOVE_0 and not value > 0:
        raise ConfigError(name, f"is {value}; must be above 0")
    if name in _NUMBERS and not value >= 0:
        raise ConfigError(name, f"is {value}; it can't be negative")


def check_listener(listener: Any) -> None:
    """Refuse a plain function: it would work, and then be found not to be awaitable."""
    if not isinstance(listener, Listener) and not (callable(listener) and is_async(listener)):
        raise ConfigError(
            "listener",
            f"is {listener!r}; a Listener is needed, or a function that is `async def`. An App "
            "takes plain ones",
        )


def check_coordinator(coordinator: str, url: str) -> None:
    """Refuse a broker that the messages don't come from: members have their wills with these."""
    if coordinator.partition(":")[0] not in ("amqp", "amqps") or coordinator == "amqp":
        return
    theirs, ours = _brokers(coordinator), _brokers(url)
    if theirs != ours:
        raise ConfigError(
            "coordinator",
            f"is at {', '.join(sorted(theirs))}, and the group at {', '.join(sorted(ours))}: a "
            "group can meet only at the broker that its messages come from. Leave it out",
        )


def _brokers(url: str) -> set[str]:
    return {f"{address} in vhost '{address.vhost}'" for address in parse_urls(url)}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether it runs in the event loop; also for an object that is called."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - it is known to be callable
    )
