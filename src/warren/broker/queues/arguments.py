"""Queue arguments: which a queue type knows, what values they take, when two sets are the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warren.amqp.tables import INTEGER_KINDS, Table, raw, text
from warren.amqp.terms import comparable, erlang_text
from warren.broker.inspection import check_expiry
from warren.errors import InternalError, PreconditionFailed

MAX_PRIORITY = 255

_COMMON = ("x-max-length-bytes", "x-queue-type")
_CLASSIC_AND_QUORUM = (
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-overflow",
    "x-single-active-consumer",
)
#: What each queue type knows, in the order in which RabbitMQ compares them.
KNOWN: dict[str, tuple[str, ...]] = {
    "classic": (
        *_CLASSIC_AND_QUORUM[:5],
        "x-max-length-bytes",
        "x-max-priority",
        "x-overflow",
        "x-queue-mode",
        "x-queue-version",
        "x-single-active-consumer",
        "x-queue-type",
        "x-queue-master-locator",
    ),
    "quorum": (
        "x-dead-letter-exchange",
        "x-dead-letter-routing-key",
        "x-dead-letter-strategy",
        "x-expires",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-in-memory-length",
        "x-max-in-memory-bytes",
        "x-overflow",
        "x-single-active-consumer",
        "x-queue-type",
        "x-quorum-initial-group-size",
        "x-delivery-limit",
        "x-message-ttl",
        "x-queue-leader-locator",
    ),
    "stream": (
        *_COMMON,
        "x-max-age",
        "x-stream-max-segment-size-bytes",
        "x-initial-cluster-size",
        "x-queue-leader-locator",
    ),
}
KNOWN_BY_CONSUMERS: dict[str, tuple[str, ...]] = {
    "classic": ("x-cancel-on-ha-failover", "x-priority", "x-credit"),
    "quorum": ("x-priority", "x-credit"),
    "stream": ("x-stream-offset", "x-credit"),
}

Problem = str | None
_AGE_UNITS_S = {"Y": 31_536_000, "M": 2_592_000, "D": 86_400, "h": 3600, "m": 60, "s": 1}


def _integer(value: Any, kind: str, arguments: Table) -> Problem:
    return None if kind in INTEGER_KINDS else f'"expected integer, got {kind}"'


def _not_negative(value: Any, kind: str, arguments: Table) -> Problem:
    return _integer(value, kind, arguments) or (
        f"{{value_negative,{value}}}" if value < 0 else None
    )


def _positive(value: Any, kind: str, arguments: Table) -> Problem:
    return _not_negative(value, kind, arguments) or (
        f"{{value_zero,{value}}}" if value == 0 else None
    )


def _expires(value: Any, kind: str, arguments: Table) -> Problem:
    problem = _integer(value, kind, arguments)
    if problem is None and value == 0:
        return f"{{value_zero,{value}}}"
    return problem or check_expiry(value)


def _ttl(value: Any, kind: str, arguments: Table) -> Problem:
    return _integer(value, kind, arguments) or check_expiry(value)


def _priority(value: Any, kind: str, arguments: Table) -> Problem:
    problem = _not_negative(value, kind, arguments)
    if problem is None and value > MAX_PRIORITY:
        return f"{{max_value_exceeded,{value}}}"
    return problem


def _boolean(value: Any, kind: str, arguments: Table) -> Problem:
    return None if kind == "bool" else f"{{unacceptable_type,{kind}}}"


def _string(value: Any, kind: str, arguments: Table) -> Problem:
    return None if kind == "longstr" else f"{{unacceptable_type,{kind}}}"


def _dead_letter_key(value: Any, kind: str, arguments: Table) -> Problem:
    problem = _string(value, kind, arguments)
    if problem is None and "x-dead-letter-exchange" not in arguments:
        return "routing_key_but_no_dlx_defined"
    return problem


def _one_of(problem: str, *words: str) -> Callable[[Any, str, Table], Problem]:
    def check(value: Any, kind: str, arguments: Table) -> Problem:
        if kind != "longstr":
            return f"{{unacceptable_type,{kind}}}"
        return None if value in words else problem.format(value)

    return check


def _version(value: Any, kind: str, arguments: Table) -> Problem:
    problem = _not_negative(value, kind, arguments)
    if problem is None and value not in (1, 2):
        return f"\"unsupported queue version '{value}'\""
    return problem


def _age(value: Any, kind: str, arguments: Table) -> Problem:
    if kind != "longstr":
        return f"{{unacceptable_type,{kind}}}"
    return None if parse_age_s(value) else "invalid_max_age"


def parse_age_s(value: str) -> int:
    """``7D`` and the like in seconds; 0 if it can't be read."""
    match = re.fullmatch(r"([0-9]+)([YMDhms])", value)
    return int(match[1][-18:]) * _AGE_UNITS_S[match[2]] if match else 0


_LOCATORS = _one_of(
    "invalid_queue_locator_arg", "client-local", "balanced", "least-leaders", "random"
)
_queue_type = _one_of("\"unsupported queue type '{}'\"", "classic", "quorum", "stream")

#: In RabbitMQ's order: the first problem is the one that is told.
_VALIDATORS: tuple[tuple[str, Callable[[Any, str, Table], Problem]], ...] = (
    ("x-expires", _expires),
    ("x-message-ttl", _ttl),
    ("x-dead-letter-exchange", _string),
    ("x-dead-letter-routing-key", _dead_letter_key),
    ("x-dead-letter-strategy", _one_of("invalid_dlx_strategy", "at-most-once", "at-least-once")),
    ("x-max-length", _not_negative),
    ("x-max-length-bytes", _not_negative),
    ("x-max-in-memory-length", _not_negative),
    ("x-max-in-memory-bytes", _not_negative),
    ("x-max-priority", _priority),
    (
        "x-overflow",
        _one_of("invalid_overflow", "drop-head", "reject-publish", "reject-publish-dlx"),
    ),
    ("x-queue-mode", _one_of("\"unsupported queue mode '{}'\"", "default", "lazy")),
    ("x-queue-version", _version),
    ("x-single-active-consumer", _boolean),
    ("x-queue-type", _queue_type),
    ("x-quorum-initial-group-size", _positive),
    ("x-max-age", _age),
    ("x-stream-max-segment-size-bytes", _not_negative),
    ("x-initial-cluster-size", _positive),
    ("x-queue-leader-locator", _LOCATORS),
)


def queue_type(arguments: Mapping[str, Any]) -> str:
    """classic, quorum or stream; absent means classic."""
    return str(arguments.get("x-queue-type", "classic"))


def check_declare(where: str, arguments: Table) -> None:
    """Raise RabbitMQ's refusal for the first argument that is wrong. ``where``: ``queue 'q' …``."""
    _check(where, arguments, (("x-queue-type", _queue_type),))
    kind = queue_type(arguments)
    known = KNOWN[kind]
    _check(where, arguments, [entry for entry in _VALIDATORS if entry[0] in known])
    strange = {name for names in KNOWN.values() for name in names} - set(known)
    for name in arguments:
        if name in strange:
            raise PreconditionFailed(
                f"invalid arg '{name}' for {where} of queue type rabbit_{kind}_queue"
            )


def check_consume(where: str, kind: str, arguments: Table) -> None:
    """The same for the arguments of a consumer."""
    known = KNOWN_BY_CONSUMERS[kind]
    validators = (
        ("x-priority", _integer),
        ("x-cancel-on-ha-failover", _boolean),
        ("x-stream-offset", _stream_offset),
    )
    _check(where, arguments, [entry for entry in validators if entry[0] in known])
    strange = {name for names in KNOWN_BY_CONSUMERS.values() for name in names} - set(known)
    for name in arguments:
        if name in strange:
            raise PreconditionFailed(
                f"invalid arg '{name}' for {where} of queue type rabbit_{kind}_queue"
            )


def _stream_offset(value: Any, kind: str, arguments: Table) -> Problem:
    if kind in INTEGER_KINDS or kind == "timestamp":
        return None
    if kind == "longstr" and (value in ("first", "last", "next") or parse_age_s(value)):
        return None
    if kind == "binary" and value in (b"first", b"last", b"next"):
        return None
    raise InternalError(f"invalid stream offset {value!r}")


def _check(where: str, arguments: Table, validators: Any) -> None:
    for name, check in validators:
        if name in arguments:
            problem = check(arguments[name], arguments.kinds[name], arguments)
            if problem is not None:
                raise PreconditionFailed(f"invalid arg '{name}' for {where}: {problem}")


# -- equivalence ---------------------------------------------------------------------------------
def _type_class(kind: str) -> str:
    if kind in INTEGER_KINDS or kind == "decimal":
        return "int"
    return "float" if kind == "double" else kind


def _shown(value: Any, kind: str | None) -> str:
    if kind is None:
        return "none"
    return f"the value '{_plain(value)}' of type '{kind}'"


def check_same_arguments(where: str, names: tuple[str, ...], old: Table, new: Table) -> None:
    """Raise 406 unless the named arguments are equivalent."""
    for name in names:
        old_kind, new_kind = old.kinds.get(name), new.kinds.get(name)
        if old_kind is None and new_kind is None:
            continue
        if old_kind is not None and new_kind is not None:
            same_class = _type_class(old_kind) == _type_class(new_kind)
            if not (same_class and old[name] == new[name]):
                check_same_field(where, name, old[name], new[name])
            continue
        if name == "x-queue-type" and "classic" in (old.get(name), new.get(name)):
            continue
        raise PreconditionFailed(
            f"inequivalent arg '{name}' for {where}: received "
            f"{_shown(new.get(name), new_kind)} but current is {_shown(old.get(name), old_kind)}"
        )


def check_same_field(where: str, name: str, old: Any, new: Any) -> None:
    """Raise 406 unless a plain property (durable, type, ...) is the same."""
    if _term(old) != _term(new):
        raise PreconditionFailed(
            f"inequivalent arg '{name}' for {where}: received {_quoted(new)} "
            f"but current is {_quoted(old)}"
        )


def _term(value: Any) -> tuple[str, Any]:
    """The value as an Erlang term: text and octets are one, 1 and 1.0 are not."""
    if isinstance(value, bool) or value is None:
        return "atom", value
    if isinstance(value, int):
        return "integer", int(value)
    if isinstance(value, str | bytes):
        return "binary", value if isinstance(value, bytes) else raw(value)
    return type(value).__name__, comparable(value)


def _quoted(value: Any) -> str:
    return "none" if value is None else f"'{_plain(value)}'"


def _plain(value: Any) -> str:
    """Text as it is, everything else as Erlang prints it."""
    if isinstance(value, bytes):
        return text(value)
    return value if isinstance(value, str) else erlang_text(value)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What the arguments mean, in our words; None where a limit is not set."""

    kind: str = "classic"
    message_ttl_ms: int | None = None
    expires_ms: int | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: str = "drop-head"
    max_priority: int | None = None
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    single_active_consumer: bool = False
    delivery_limit: int | None = None
    max_age_s: int = 0
    segment_bytes: int = 500_000_000

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> QueueSettings:
        get = arguments.get
        limit = get("x-delivery-limit")
        return cls(
            kind=queue_type(arguments),
            message_ttl_ms=get("x-message-ttl"),
            expires_ms=get("x-expires"),
            max_length=get("x-max-length"),
            max_length_bytes=get("x-max-length-bytes"),
            overflow=get("x-overflow", "drop-head"),
            max_priority=get("x-max-priority"),
            dead_letter_exchange=get("x-dead-letter-exchange"),
            dead_letter_routing_key=get("x-dead-letter-routing-key"),
            single_active_consumer=get("x-single-active-consumer") is True,
            delivery_limit=limit if isinstance(limit, int) else None,
            max_age_s=parse_age_s(get("x-max-age", "")),
            segment_bytes=get("x-stream-max-segment-size-bytes", 500_000_000),
        )
