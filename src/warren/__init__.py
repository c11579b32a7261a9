"""RabbitMQ queues in, Spark tables out: balanced over workers, in order, exactly once."""

from __future__ import annotations

from warren._version import __version__

# As typing's, which takes longer to import than it takes to press Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from warren.amqp.properties import Properties
    from warren.client.backoff import Backoff
    from warren.client.connection import connect
    from warren.config import BrokerConfig
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
    from warren.groups.group import Group
    from warren.groups.listener import Listener
    from warren.handlers.app import App
    from warren.handlers.message import Message
    from warren.handlers.middleware import Middleware
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
    "Backoff": "warren.client.backoff",
    "Message": "warren.handlers.message",
    "Middleware": "warren.handlers.middleware",
    "standby": "warren.handlers.standby",
    "ClientError": "warren.errors",
    "ConfigError": "warren.errors",
    "ListenError": "warren.errors",
    "ProtocolError": "warren.errors",
    "Refusal": "warren.errors",
    "Reject": "warren.errors",
    "Retry": "warren.errors",
    "WarrenError": "warren.errors",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
        return value
    raise AttributeError(f"module 'warren' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
