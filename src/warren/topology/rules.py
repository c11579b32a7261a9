"""What a broker refuses, so that it can be told before anything is touched."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from warren.topology.model import Binding, Exchange, Policy, Queue

Check = Callable[[Any], str]
#: The longest that a broker's timers run: ten years.
LONGEST_MS = 315_360_000_000


# -- values --------------------------------------------------------------------------------------
def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: Any) -> str:
    return "" if _whole(value) and value >= 0 else "must be a whole number, 0 or more"


def _ttl(value: Any) -> str:
    good = _whole(value) and 0 <= value <= LONGEST_MS
    return "" if good else f"must be a whole number of milliseconds, at most {LONGEST_MS}"


def _expiry(value: Any) -> str:
    good = _whole(value) and 0 < value <= LONGEST_MS
    return "" if good else f"must be a whole number of milliseconds, from 1 to {LONGEST_MS}"


def _positive(value: Any) -> str:
    return "" if _whole(value) and value > 0 else "must be a whole number, 1 or more"


def _priority(value: Any) -> str:
    return "" if _whole(value) and 0 <= value <= 255 else "must be a whole number from 0 to 255"


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else "must be text"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _age(value: Any) -> str:
    good = isinstance(value, str) and re.fullmatch(r"[0-9]*[1-9][0-9]*[YMDhms]", value)
    return "" if good else "must be an age such as 7D or 12h"


def _anything(value: Any) -> str:
    return ""


def _one_of(*words: Any) -> Check:
    def check(value: Any) -> str:
        return "" if value in words else f"must be {' or '.join(map(str, words))}"

    return check


_LOCATOR = _one_of("client-local", "balanced", "least-leaders", "random")
_OVERFLOW = _one_of("drop-head", "reject-publish", "reject-publish-dlx")
_STRATEGY = _one_of("at-most-once", "at-least-once")

#: Queue arguments: what values they take, and which types of queue have them.
ARGUMENTS: dict[str, tuple[Check, tuple[str, ...]]] = {
    "x-expires": (_expiry, ("classic", "quorum")),
    "x-message-ttl": (_ttl, ("classic", "quorum")),
    "x-dead-letter-exchange": (_text, ("classic", "quorum")),
    "x-dead-letter-routing-key": (_text, ("classic", "quorum")),
    "x-dead-letter-strategy": (_STRATEGY, ("quorum",)),
    "x-max-length": (_count, ("classic", "quorum")),
    "x-max-length-bytes": (_count, ("classic", "quorum", "stream")),
    "x-max-in-memory-length": (_count, ("quorum",)),
    "x-max-in-memory-bytes": (_count, ("quorum",)),
    "x-max-priority": (_priority, ("classic",)),
    "x-overflow": (_OVERFLOW, ("classic", "quorum")),
    "x-queue-mode": (_one_of("default", "lazy"), ("classic",)),
    "x-queue-version": (_one_of(1, 2), ("classic",)),
    "x-queue-master-locator": (_anything, ("classic",)),
    "x-single-active-consumer": (_flag, ("classic", "quorum")),
    "x-quorum-initial-group-size": (_positive, ("quorum",)),
    "x-delivery-limit": (_anything, ("quorum",)),
    "x-queue-leader-locator": (_LOCATOR, ("quorum", "stream")),
    "x-max-age": (_age, ("stream",)),
    "x-stream-max-segment-size-bytes": (_count, ("stream",)),
    "x-initial-cluster-size": (_positive, ("stream",)),
}

#: Keys of policies. Those of RabbitMQ's federation plugin are its own affair.
POLICY_KEYS: dict[str, Check] = {
    "alternate-exchange": _text,
    "dead-letter-exchange": _text,
    "dead-letter-routing-key": _text,
    "dead-letter-strategy": _STRATEGY,
    "message-ttl": _count,
    "expires": _positive,
    "max-length": _count,
    "max-length-bytes": _count,
    "max-in-memory-length": _count,
    "max-in-memory-bytes": _count,
    "queue-mode": _one_of("default", "lazy"),
    "queue-version": _one_of(1, 2),
    "queue-master-locator": _anything,
    "overflow": _OVERFLOW,
    "delivery-limit": _count,
    "max-age": _age,
    "stream-max-segment-size-bytes": _count,
    "queue-leader-locator": _LOCATOR,
    "initial-cluster-size": _count,
    **dict.fromkeys(("ha-mode", "ha-params", "ha-sync-mode", "ha-sync-batch-size"), _anything),
    **dict.fromkeys(("ha-promote-on-shutdown", "ha-promote-on-failure"), _anything),
    **dict.fromkeys(("federation-upstream", "federation-upstream-set"), _anything),
    "federation-upstream-pattern": _anything,
}


_KNOWN = {"queue": tuple(ARGUMENTS), "exchange": ("alternate-exchange", "hash-header")}
_PREDECLARED = {"amq.headers": "headers", "amq.match": "headers"}


# -- items ---------------------------------------------------------------------------------------
def doubts(item: Exchange | Queue | Binding | Policy) -> Iterator[str]:
    """What brokers take without a word, and is hardly meant: arguments with a slip in the name."""
    known = list(_KNOWN.get(item.kind, ()))
    for name in getattr(item, "arguments", {}):
        near = difflib.get_close_matches(name, known, 1, 0.85) if name not in known else []
        if near:
            yield f"brokers take {name} and do nothing with it: did you mean {near[0]}?"


def problems(
    item: Exchange | Queue | Binding | Policy,
    *,
    exchange_types: Iterable[str] = (),
    type_of: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Why a broker would refuse to make it, whatever else it has.

    ``exchange_types`` are those that the broker has; ``type_of`` tells an exchange's by its name.
    """
    if isinstance(item, Exchange):
        yield from _name(item.name)
        yield from _exchange(item, frozenset(exchange_types))
    elif isinstance(item, Queue):
        yield from _name(item.name)
        yield from _queue(item)
    elif isinstance(item, Binding):
        yield from _binding(item, {**_PREDECLARED, **(type_of or {})})
    else:
        yield from _policy(item)


def _name(name: str) -> Iterator[str]:
    if not name:
        yield "needs a name"
    elif name.startswith("amq."):
        yield "names that begin with amq. are the broker's own"
    elif len(name.encode()) > 255:
        yield "a name has at most 255 octets"


def _exchange(item: Exchange, types: frozenset[str]) -> Iterator[str]:
    if types and item.type not in types:
        near = difflib.get_close_matches(item.type, types, 1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(types))}"
        yield f"the broker has no exchange type '{item.type}'; {hint}"
    alternate = item.arguments.get("alternate-exchange", "")
    if not isinstance(alternate, str):
        yield "alternate-exchange must be text"


def _queue(item: Queue) -> Iterator[str]:
    if item.type != "classic" and not item.durable:
        yield f"a {item.type} queue must be durable"
    if item.type != "classic" and item.auto_delete:
        yield f"a {item.type} queue can't be auto_delete"
    for name, value in item.arguments.items():
        check, types = ARGUMENTS.get(name, (_anything, (item.type,)))
        if item.type not in types:
            yield f"{name} is not for {item.type} queues"
        elif problem := check(value):
            yield f"{name} {problem}"
    if (
        "x-dead-letter-routing-key" in item.arguments
        and "x-dead-letter-exchange" not in item.arguments
    ):
        yield "x-dead-letter-routing-key needs x-dead-letter-exchange"


def _binding(item: Binding, types: Mapping[str, str]) -> Iterator[str]:
    if not item.source:
        yield "the default exchange leads to every queue by its name and to nothing else"
    if item.to == "exchange" and not item.destination:
        yield "nothing can be bound to the default exchange"
    if len(item.routing_key.encode()) > 255:
        yield "a routing key has at most 255 octets"
    kind = types.get(item.source)
    if kind == "x-consistent-hash" and not re.fullmatch(r"0*[1-9][0-9]*", item.routing_key):
        yield "behind an x-consistent-hash exchange the routing key is a weight, such as '1'"
    match = item.arguments.get("x-match", "all")
    if kind == "headers" and match not in ("all", "any", "all-with-x", "any-with-x"):
        yield "x-match must be all, any, all-with-x or any-with-x"


def _policy(item: Policy) -> Iterator[str]:
    if not item.definition:
        yield "its definition is empty"
    if problem := _pattern(item.pattern):
        yield f"pattern {problem}"
    for name, value in item.definition.items():
        if name in POLICY_KEYS:
            if problem := POLICY_KEYS[name](value):
                yield f"{name} {problem}"
            continue
        near = difflib.get_close_matches(name.removeprefix("x-"), POLICY_KEYS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield f"policies have no '{name}'{hint}"


def _pattern(pattern: str) -> str:
    if re.search(r"\\[A-Z]|\(\?", pattern):  # Perl's own, which Python need not know
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except re.error as error:
            return f"is no regular expression: {error}"
    return ""
