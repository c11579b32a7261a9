"""The direct exchange: the routing key is the binding's, octet by octet."""

from __future__ import annotations

from typing import Any, ClassVar

from warren.broker.exchanges.base import Binding, Exchange, RoutedMessage
from warren.broker.exchanges.tally import Tally, join, leave, members


class DirectExchange(Exchange):
    """Destinations by routing key."""

    type: ClassVar[str] = "direct"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._by_key: dict[str, Tally] = {}

    def route(self, routing_key: str, message: RoutedMessage) -> tuple[Any, ...]:
        return members(self._by_key.get(routing_key))

    def _link(self, binding: Binding) -> None:
        key = binding.routing_key
        self._by_key[key] = join(self._by_key.get(key), binding.destination)

    def _unlink(self, binding: Binding) -> None:
        key = binding.routing_key
        left = leave(self._by_key[key], binding.destination)
        if left is None:
            del self._by_key[key]
        else:
            self._by_key[key] = left
