"""The fanout exchange: every destination, whatever the routing key."""

from __future__ import annotations

from typing import Any, ClassVar

from warren.broker.exchanges.base import Binding, Exchange, RoutedMessage


class FanoutExchange(Exchange):
    """All destinations."""

    type: ClassVar[str] = "fanout"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._all: tuple[Any, ...] | None = ()

    def route(self, routing_key: str, message: RoutedMessage) -> tuple[Any, ...]:
        # One tuple for all routing keys: callers keep a route a key.
        if self._all is None:
            self._all = tuple(self._by_destination)
        return self._all

    def _link(self, binding: Binding) -> None:
        self._all = None

    def _unlink(self, binding: Binding) -> None:
        self._all = None
