"""RabbitMQ queues in, Spark tables out: balanced over workers, in order, exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren._version import __version__
from warren.errors import (
    ClientError,
    ConfigError,
    ListenError,
    ProtocolError,
    Refusal,
    Reject,
    Retry,
    WarrenError,
)

if TYPE_CHECKING:
    from warren.amqp.properties import Properties
    from warren.client.connection import connect
    from warren.config import BrokerConfig
    from warren.groups.group import Group
    from warren.groups.listener import Listener
    from warren.handlers.app import App
    from warren.handlers.message import Message
    from warren.handlers.middleware import Middleware
    from warren.handlers.policy import Backoff
    from warren.handlers.standby import standby
    from warren.server.broker import Broker

__all__ = [  # noqa: RUF022 - grouped
    # Broker
    "Broker",
    "BrokerConfig",
    # Client
    "Properties",
    "connect",
    # Groups
    "Group",
    "Listener",
    # Handlers
    "App",
    "Backoff",
    "Message",
    "Middleware",
    "Reject",
    "Retry",
    "standby",
    # Errors
    "ClientError",
    "ConfigError",
    "ListenError",
    "ProtocolError",
    "Refusal",
    "WarrenError",
    # About
    "__version__",
]

_LAZY = {
    "Broker": "warren.server.broker",
    "BrokerConfig": "warren.config",
    "Properties": "warren.amqp.properties",
    "connect": "warren.client.connection",
    "Group": "warren.groups.group",
    "Listener": "warren.groups.listener",
    "App": "warren.handlers.app",
    "Backoff": "warren.handlers.policy",
    "Message": "warren.handlers.message",
    "Middleware": "warren.handlers.middleware",
    "standby": "warren.handlers.standby",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'warren' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
