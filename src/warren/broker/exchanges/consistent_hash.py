"""The consistent-hash exchange: every message to one destination, by weight, and a key always
to the same one.

The binding key is the weight. What is hashed is the routing key, a header or a property.

Each hash belongs to one of a fixed number of slots, and each slot to the destination that
wins it in a weighted draw (rendezvous hashing): every destination draws a number from its own
name and the slot, and the draw, divided by the weight, decides. So the shares are even by
weight whatever the number of destinations; the outcome depends on names and weights alone and
is the same after a restart; and a destination that comes or goes takes or gives only its own
slots. The outcome of a draw is kept, and brought up to date when a message meets the slot.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from array import array
from itertools import chain
from math import inf, log
from typing import Any, ClassVar

from warren.amqp.tables import kind_of
from warren.amqp.terms import comparable, erlang_integer, erlang_text
from warren.broker.exchanges.base import INTERNAL_ERROR, Binding, Exchange, RoutedMessage

_HASHABLE_PROPERTIES = ("correlation_id", "message_id", "timestamp")

_SPREAD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: near hashes go far apart
_SLOT_BITS = 18  # three digits of six bits
_SLOTS = 1 << _SLOT_BITS
_TABLE = struct.Struct("<192I")


class _Member:
    """A destination in the draw.

    What it draws for a slot is the exclusive or of three random numbers of its own, one for
    each digit of the slot (tabulation hashing).
    """

    __slots__ = ("binding", "destination", "numbers", "slowness")

    def __init__(self, binding: Binding) -> None:
        identity = f"{binding.destination_kind}\0{binding.destination.name}"
        digest = hashlib.shake_128(identity.encode("utf-8", "surrogateescape"))
        self.binding = binding
        self.destination = binding.destination
        self.numbers = array("I", _TABLE.unpack(digest.digest(_TABLE.size)))
        self.slowness = -1.0 / int(binding.routing_key)


class _Ring:
    """Slots and who owns them. Knows nothing of exchanges and messages."""

    def __init__(self) -> None:
        self._at: dict[Any, int] = {}  # destination -> place in _members
        self._members: list[_Member | None] = []  # None: gone
        self._clear()

    def _clear(self) -> None:
        self._owner: array[int] | None = None  # slot -> place in _members
        self._drawn: array[int] | None = None  # slot -> how many of _members took part so far

    def member(self, destination: Any) -> _Member | None:
        at = self._at.get(destination)
        return None if at is None else self._members[at]

    def add(self, binding: Binding) -> None:
        self._at[binding.destination] = len(self._members)
        self._members.append(_Member(binding))

    def remove(self, destination: Any) -> None:
        self._members[self._at.pop(destination)] = None
        if len(self._members) > 2 * len(self._at) + 16:
            self._members = [member for member in self._members if member is not None]
            self._at = {m.destination: at for at, m in enumerate(self._members) if m is not None}
            self._clear()

    def owner(self, number: int) -> Any:
        """The destination for a 32-bit hash; None when there are no destinations."""
        if not self._at:
            return None
        if self._owner is None or self._drawn is None:
            self._owner = array("I", bytes(4 * _SLOTS))
            self._drawn = array("I", bytes(4 * _SLOTS))
        slot = (number * _SPREAD & 0xFFFFFFFFFFFFFFFF) >> (64 - _SLOT_BITS)
        drawn = self._drawn[slot]
        owner = self._members[self._owner[slot]] if drawn else None
        if owner is None or drawn != len(self._members):
            place = self._draw(slot, self._owner[slot], drawn if owner else 0)
            self._owner[slot], self._drawn[slot] = place, len(self._members)
            owner = self._members[place]
        return owner.destination if owner else None

    def _draw(self, slot: int, best: int, start: int) -> int:
        """Who wins ``slot`` when ``best`` won among the first ``start`` members.

        Lowest wins: the time to a first event, where the weight is the rate of events.
        """
        high, middle, low = slot >> 12, 64 + (slot >> 6 & 63), 128 + (slot & 63)
        lowest = inf
        for place in chain((best,) if start else (), range(start, len(self._members))):
            member = self._members[place]
            if member is None:
                continue
            numbers = member.numbers
            number = numbers[high] ^ numbers[middle] ^ numbers[low]
            drawn = log((number + 0.5) * 2.0**-32) * member.slowness
            if drawn < lowest:
                best, lowest = place, drawn
        return best


class ConsistentHashExchange(Exchange):
    """One destination a message, by hash."""

    type: ClassVar[str] = "x-consistent-hash"
    by_key_only: ClassVar[bool] = False

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._ring = _Ring()
        self._header: str | None = self.arguments.get("hash-header")
        self._property: str | None = self.arguments.get("hash-property")

    @classmethod
    def validate_arguments(cls, arguments: dict[str, Any], place: str = "") -> str | None:
        refusal = super().validate_arguments(arguments, place)
        if refusal is not None:
            return refusal
        given = [arguments[name] for name in ("hash-header", "hash-property") if name in arguments]
        if not all(isinstance(value, str) for value in given):
            return INTERNAL_ERROR
        if len(given) == 2:
            return "hash-header and hash-property are mutually exclusive"
        named = arguments.get("hash-property")
        if named is not None and named not in _HASHABLE_PROPERTIES:
            return f"Unsupported property: {named}"
        return None

    def validate_binding(self, routing_key: str, arguments: dict[str, Any]) -> str | None:
        weight = erlang_integer(routing_key)
        if weight is None:
            return f"The binding key must be an integer: {erlang_text(routing_key)}"
        return "The binding key must be greater than 0" if weight < 1 else None

    def route(self, routing_key: str, message: RoutedMessage) -> tuple[Any, ...]:
        if self._header is not None:
            hashed = _octets(message.headers.get(self._header))
        elif self._property is not None:
            hashed = _octets(message.property(self._property))
        else:
            hashed = routing_key.encode("utf-8", "surrogateescape")
        destination = self._ring.owner(zlib.crc32(hashed))
        return () if destination is None else (destination,)

    def _link(self, binding: Binding) -> None:
        # As in RabbitMQ a destination has the weight it was bound with first.
        if self._ring.member(binding.destination) is None:
            self._ring.add(binding)

    def _unlink(self, binding: Binding) -> None:
        destination = binding.destination
        # As in RabbitMQ: whichever of its weights is unbound, the queue leaves the ring.
        if self._ring.member(destination) is not None:
            self._ring.remove(destination)


def _octets(value: Any) -> bytes:
    """What is hashed of a header or property; messages without it all go one way."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return repr((kind_of(value), comparable(value))).encode()
