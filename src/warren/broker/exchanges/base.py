"""What all exchanges share: their bindings, found by identity and by destination."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias
from urllib.parse import quote_plus

from warren.amqp.terms import field_type, table_identity
from warren.broker.exchanges.tally import Tally, join, leave, members

ALTERNATE = "alternate-exchange"
INTERNAL_ERROR = "INTERNAL_ERROR"
"""Returned by ``validate_arguments`` where RabbitMQ crashes: 541 on the connection."""

BindingKey: TypeAlias = tuple[str, str, str, tuple[Any, ...]]

_NO_ARGUMENTS: dict[str, Any] = {}


class Destination(Protocol):
    """A queue or an exchange; hashable by identity."""

    name: str


class RoutedMessage(Protocol):
    """The parts of a message that some exchanges look at, decoded when they do."""

    @property
    def headers(self) -> dict[str, Any]:
        """The headers table; empty when the message has none."""

    def property(self, name: str) -> Any:
        """``message_id``, ``correlation_id`` or ``timestamp``; None when it has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A rule at an exchange that sends some messages to one destination."""

    source: str
    destination: Any
    destination_kind: str  # "queue" or "exchange"
    routing_key: str
    arguments: dict[str, Any]

    def __post_init__(self) -> None:
        if not self.arguments:
            object.__setattr__(self, "arguments", _NO_ARGUMENTS)

    @property
    def key(self) -> BindingKey:
        """What makes it this binding among those of its exchange."""
        return (
            self.destination_kind,
            self.destination.name,
            self.routing_key,
            table_identity(self.arguments),
        )

    @property
    def properties_key(self) -> str:
        """Its name in the management API among the bindings of one source and destination.

        The part for the arguments has RabbitMQ's shape, not its value (an Erlang hash).
        """
        if not self.routing_key and not self.arguments:
            return "~"
        quoted = quote_plus(self.routing_key.encode("utf-8", "surrogateescape"))
        quoted = quoted.replace("~", "%7E")
        if not self.arguments:
            return quoted
        digest = zlib.crc32(repr(table_identity(self.arguments)).encode()).to_bytes(4, "big")
        return f"{quoted}~{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


class Exchange:
    """Keeps bindings and says where a message goes. Knows nothing of vhosts or deliveries.

    A type of exchange gives ``route`` and keeps its own index in ``_link`` and ``_unlink``.
    """

    type: ClassVar[str]
    by_key_only: ClassVar[bool] = True
    """The route depends on nothing but the routing key.

    Others are asked once a message, with its first routing key: CC and BCC don't count there.
    """

    def __init__(
        self,
        name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments or {}
        self.alternate: str | None = self.arguments.get(ALTERNATE)
        self.bindings: dict[BindingKey, Binding] = {}
        self.published_in = self.published_out = 0
        self._by_destination: dict[Any, Tally] = {}

    @classmethod
    def validate_arguments(cls, arguments: dict[str, Any], place: str = "") -> str | None:
        """The text of the refusal of a new exchange with these arguments, or None.

        ``place`` ends some texts: "exchange 'x' in vhost '/'".
        """
        alternate = arguments.get(ALTERNATE, "")
        if isinstance(alternate, str):
            return None
        text = f"invalid type '{field_type(arguments, ALTERNATE)}' for arg '{ALTERNATE}'"
        return f"{text} in {place}" if place else text

    def validate_binding(self, routing_key: str, arguments: dict[str, Any]) -> str | None:
        """The text of the refusal of such a binding, or None."""
        return None

    def add(self, binding: Binding) -> bool:
        """Route by ``binding`` from now on; False if it was there already."""
        key = binding.key
        if key in self.bindings:
            return False
        self.bindings[key] = binding
        destination = binding.destination
        self._by_destination[destination] = join(self._by_destination.get(destination), binding)
        self._link(binding)
        return True

    def remove(self, binding_key: BindingKey) -> Binding | None:
        """Undo ``add``; None if there is no such binding."""
        binding = self.bindings.pop(binding_key, None)
        if binding is None:
            return None
        left = leave(self._by_destination[binding.destination], binding)
        if left is None:
            del self._by_destination[binding.destination]
        else:
            self._by_destination[binding.destination] = left
        self._unlink(binding)
        return binding

    def remove_destination(self, destination: Any) -> list[Binding]:
        """Undo every ``add`` with this destination, in the order they were made."""
        removed = list(members(self._by_destination.pop(destination, None)))
        for binding in removed:
            del self.bindings[binding.key]
            self._unlink(binding)
        return removed

    def bindings_of(self, destination: Any) -> tuple[Binding, ...]:
        """The bindings that lead to ``destination``, oldest first."""
        return members(self._by_destination.get(destination))

    def route(self, routing_key: str, message: RoutedMessage) -> Iterable[Any]:
        """The destinations of a message, each once."""
        raise NotImplementedError

    def _link(self, binding: Binding) -> None:
        raise NotImplementedError

    def _unlink(self, binding: Binding) -> None:
        raise NotImplementedError
