"""One policy: what it may set, and what it holds for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warren.amqp.terms import erlang_text
from warren.broker.patterns import compile_pattern
from warren.broker.queues.arguments import parse_age_s
from warren.errors import AdminError


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _least(number: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= number


def _one_of(*words: Any) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, bool) and value in words


def _age(value: Any) -> bool:
    return isinstance(value, str) and parse_age_s(value) > 0


def _anything(value: Any) -> bool:
    return True


#: What a policy may set, how its value is checked, and what RabbitMQ calls it in its refusal.
_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "alternate-exchange": (_text, "alternate exchange name"),
    "dead-letter-exchange": (_text, "dead letter exchange name"),
    "dead-letter-routing-key": (_text, "dead letter routing key"),
    "dead-letter-strategy": (_one_of("at-most-once", "at-least-once"), "dead letter strategy"),
    "message-ttl": (_least(0), "message TTL"),
    "expires": (_least(1), "queue expiry"),
    "max-length": (_least(0), "maximum length"),
    "max-length-bytes": (_least(0), "maximum length in bytes"),
    "max-in-memory-length": (_least(0), "maximum memory in bytes"),
    "max-in-memory-bytes": (_least(0), "maximum memory in bytes"),
    "queue-mode": (_one_of("default", "lazy"), "queue-mode value"),
    "queue-version": (_one_of(1, 2), "queue-version value"),
    "overflow": (_one_of("drop-head", "reject-publish", "reject-publish-dlx"), "overflow value"),
    "delivery-limit": (_least(0), "delivery limit"),
    "max-age": (_age, "max age"),
    "queue-leader-locator": (
        _one_of("client-local", "balanced", "random", "least-leaders"),
        "queue leader locator value",
    ),
    "initial-cluster-size": (_least(0), "cluster size"),
    "stream-max-segment-size-bytes": (_least(0), "segment size"),
    # Of mirrored queues: taken and shown, so that a cluster's definitions carry over.
    "ha-mode": (_anything, ""),
    "ha-params": (_anything, ""),
    "ha-sync-mode": (_anything, ""),
    "ha-sync-batch-size": (_anything, ""),
    "ha-promote-on-shutdown": (_anything, ""),
    "ha-promote-on-failure": (_anything, ""),
    "queue-master-locator": (_anything, ""),
}
_OPERATOR_SETTINGS = (
    "expires",
    "message-ttl",
    "max-length",
    "max-length-bytes",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "delivery-limit",
)
_MIRRORED = {"ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown"}
_MIRRORED |= {"ha-promote-on-failure", "queue-master-locator", "queue-mode"}
_STREAMS_ONLY = {"max-age", "stream-max-segment-size-bytes", "initial-cluster-size"}
#: A policy that sets one of these passes by queues of that type altogether.
_UNSUITABLE: dict[str, set[str]] = {
    "classic": {
        *_STREAMS_ONLY,
        "queue-leader-locator",
        "delivery-limit",
        "dead-letter-strategy",
    },
    "quorum": {*_STREAMS_ONLY, *_MIRRORED},
    "stream": {
        *_MIRRORED,
        *("expires", "message-ttl", "dead-letter-exchange", "dead-letter-routing-key"),
        *("max-length", "max-in-memory-length", "max-in-memory-bytes", "overflow"),
        *("delivery-limit", "dead-letter-strategy"),
    },
}
_APPLY_TO = {"queue": ("queues", "all"), "exchange": ("exchanges", "all")}


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy of a virtual host."""

    vhost: str
    name: str
    pattern: str
    definition: dict[str, Any]
    priority: int = 0
    apply_to: str = "all"
    operator: bool = field(default=False, compare=False)

    @property
    def kind(self) -> str:
        """As it is written down."""
        return "operator_policy" if self.operator else "policy"

    def check(self) -> None:
        """AdminError with RabbitMQ's words for all that is wrong with it."""
        problems = [*self._check_fields(), *self._check_definition()]
        if problems:
            text = "".join(f"{problem}\n" for problem in problems)
            raise AdminError("bad_request", f"Validation failed\n\n{text}")

    def _check_fields(self) -> list[str]:
        problems = []
        priority: Any = self.priority
        if not isinstance(priority, int | float) or isinstance(priority, bool):
            problems.append(f"priority should be a number, actually was {erlang_text(priority)}")
        pattern: Any = self.pattern
        if not isinstance(pattern, str):
            problems.append(f"pattern should be a binary but was {erlang_text(pattern)}")
        else:
            problems += _check_pattern(pattern)
        if self.apply_to not in ("all", "queues", "exchanges"):
            problems.append(
                f"apply-to '{self.apply_to}' unrecognised; should be 'queues', 'exchanges' or 'all'"
            )
        return problems

    def _check_definition(self) -> list[str]:
        definition: Any = self.definition
        if not isinstance(definition, dict):
            return [f"definition must be a dictionary: {erlang_text(definition)}"]
        if not definition:
            return ["no policy provided"]
        known = _OPERATOR_SETTINGS if self.operator else tuple(_SETTINGS)
        for name, value in definition.items():
            if name in known and not _SETTINGS[name][0](value):
                return [f"{erlang_text(value)} is not a valid {_SETTINGS[name][1]}"]
        strange = [
            f"{{{erlang_text(name)},{erlang_text(value)}}}"
            for name, value in sorted(definition.items())
            if name not in known
        ]
        return [f"[{','.join(strange)}] are not recognised policy settings"] if strange else []

    def covers(self, kind: str, name: str, queue_type: str = "") -> bool:
        """Does it hold for this queue or exchange?"""
        if self.apply_to not in _APPLY_TO[kind]:
            return False
        if queue_type and not _UNSUITABLE[queue_type].isdisjoint(self.definition):
            return False
        octets = name.encode("utf-8", "surrogateescape")
        # An empty pattern is in every name, other than an empty permission.
        return not self.pattern or compile_pattern(self.pattern).search(octets) is not None


def _check_pattern(pattern: str) -> list[str]:
    try:
        compile_pattern(pattern)
    except AdminError as error:
        cause = error.detail.removeprefix(f"{pattern}: ")
        text, _, place = cause.partition(" at position ")
        place = place.split(" ")[0] or "0"
        return [f'pattern should be regular expression but is invalid: {{"{text}",{place}}}']
    return []
