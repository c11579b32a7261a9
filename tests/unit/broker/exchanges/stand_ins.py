"""A queue and a message that have just what an exchange looks at."""

from __future__ import annotations

from typing import Any

from warren.broker.exchanges import Binding, Exchange


class Queue:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Message:
    def __init__(self, headers: dict[str, Any] | None = None, **properties: Any) -> None:
        self.headers = headers or {}
        self._properties = properties

    def property(self, name: str) -> Any:
        return self._properties.get(name)


PLAIN = Message()


def bind(
    exchange: Exchange, queue: Queue, key: str = "", arguments: dict[str, Any] | None = None
) -> Binding:
    binding = Binding(exchange.name, queue, "queue", key, arguments or {})
    exchange.add(binding)
    return binding


def routed(exchange: Exchange, key: str = "", message: Message = PLAIN) -> list[str]:
    """The names of the destinations, sorted; one that comes twice is shown twice."""
    return sorted(destination.name for destination in exchange.route(key, message))
