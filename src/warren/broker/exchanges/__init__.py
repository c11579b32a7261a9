"""The types of exchange, by the names clients declare them with."""

from __future__ import annotations

from warren.broker.exchanges.base import (
    INTERNAL_ERROR,
    Binding,
    BindingKey,
    Destination,
    Exchange,
    RoutedMessage,
)
from warren.broker.exchanges.consistent_hash import ConsistentHashExchange
from warren.broker.exchanges.direct import DirectExchange
from warren.broker.exchanges.fanout import FanoutExchange
from warren.broker.exchanges.headers import HeadersExchange
from warren.broker.exchanges.topic import TopicExchange

EXCHANGE_TYPES: dict[str, type[Exchange]] = {
    kind.type: kind
    for kind in (
        DirectExchange,
        FanoutExchange,
        TopicExchange,
        HeadersExchange,
        ConsistentHashExchange,
    )
}

__all__ = [
    "EXCHANGE_TYPES",
    "INTERNAL_ERROR",
    "Binding",
    "BindingKey",
    "Destination",
    "Exchange",
    "RoutedMessage",
]
