"""The headers exchange: a binding's arguments are compared with the message's headers.

RabbitMQ compares every binding with every message. Here a binding is filed under what a
message must have to match it at all: an "any" binding under each of its headers, an "all"
binding under the one that fewest others are filed under, and only what a message's own
headers lead to is compared.
"""

from __future__ import annotations

from typing import Any, ClassVar

from warren.amqp.terms import comparable, erlang_text, field_type
from warren.broker.exchanges.base import Binding, Exchange, RoutedMessage
from warren.broker.exchanges.tally import Tally, join, leave, members

_KINDS = ("all", "any", "all-with-x", "any-with-x")


class _Present:
    """In place of a value: the header must be there, whatever it is."""


_PRESENT = _Present()


class _Rule:
    """A binding's arguments, ready to be compared."""

    __slots__ = ("any", "destination", "filed", "wanted")

    def __init__(self, binding: Binding) -> None:
        match = binding.arguments.get("x-match", "all")
        with_x = match in ("all-with-x", "any-with-x")
        self.any = match in ("any", "any-with-x")
        self.destination = binding.destination
        self.wanted = tuple(
            (name, _PRESENT if value is None else comparable(value))
            for name, value in binding.arguments.items()
            if name != "x-match" and (with_x or not name.startswith("x-"))
        )
        self.filed: tuple[tuple[str, Any], ...] = ()

    def accepts(self, values: dict[str, Any]) -> bool:
        """Every wanted header is among ``values`` (asked of "all" rules only)."""
        for name, wanted in self.wanted:
            if name not in values or (wanted is not _PRESENT and values[name] != wanted):
                return False
        return True


class HeadersExchange(Exchange):
    """Destinations by header values."""

    type: ClassVar[str] = "headers"
    by_key_only: ClassVar[bool] = False

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._rules: dict[Binding, _Rule] = {}
        self._files: dict[str, dict[Any, Tally]] = {}  # header -> value or _PRESENT -> rules
        self._mentions: dict[str, int] = {}  # header -> rules that look at it
        self._always: Tally = None  # destinations of "all" bindings that want nothing

    def validate_binding(self, routing_key: str, arguments: dict[str, Any]) -> str | None:
        match = arguments.get("x-match", "all")
        if not isinstance(match, str):
            kind, value = field_type(arguments, "x-match"), erlang_text(match)
            return f"Invalid x-match field type {kind} (value {value}); expected longstr"
        if match not in _KINDS:
            shown = f"value {erlang_text(match)}; expected all, any, all-with-x, or any-with-x"
            return f"Invalid x-match field {shown}"
        return None

    def route(self, routing_key: str, message: RoutedMessage) -> tuple[Any, ...]:
        if not self._mentions:
            return members(self._always)
        mentions = self._mentions
        values = {k: comparable(v) for k, v in message.headers.items() if k in mentions}
        found = dict.fromkeys(members(self._always))
        for name, value in values.items():
            file = self._files.get(name)
            if file is None:
                continue
            for tally in (file.get(value), file.get(_PRESENT)):
                if tally is None:
                    continue
                for rule in tally if type(tally) is dict else (tally,):
                    if rule.any or rule.accepts(values):
                        found[rule.destination] = None
        return tuple(found)

    def _link(self, binding: Binding) -> None:
        self._rules[binding] = rule = _Rule(binding)
        if not rule.wanted:
            if not rule.any:
                self._always = join(self._always, rule.destination)
            return
        rule.filed = rule.wanted if rule.any else (min(rule.wanted, key=self._crowd),)
        for name, value in rule.filed:
            file = self._files.setdefault(name, {})
            file[value] = join(file.get(value), rule)
        for name, _ in rule.wanted:
            self._mentions[name] = self._mentions.get(name, 0) + 1

    def _unlink(self, binding: Binding) -> None:
        rule = self._rules.pop(binding)
        if not rule.wanted and not rule.any:
            self._always = leave(self._always, rule.destination)
        for name, value in rule.filed:
            self._take_out(name, value, rule)
        for name, _ in rule.wanted:
            self._mentions[name] -= 1
            if not self._mentions[name]:
                del self._mentions[name]

    def _take_out(self, name: str, value: Any, rule: _Rule) -> None:
        file = self._files[name]
        left = leave(file.pop(value), rule)
        if left is not None:
            file[value] = left
        elif not file:
            del self._files[name]

    def _crowd(self, wanted: tuple[str, Any]) -> tuple[bool, int]:
        name, value = wanted
        tally = self._files.get(name, {}).get(value)
        size = len(tally) if type(tally) is dict else int(tally is not None)
        return value is _PRESENT, size
