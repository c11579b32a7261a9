"""The consistent-hash exchange: every message to one destination, by weight, and a key always
to the same one.

The binding key is the weight. What is hashed is the routing key, a header or a property.

Who gets a hash is drawn (rendezvous hashing): every destination draws a number from its own name
and the hash, and the highest draw wins. So the shares are even whatever the number of destinations;
the outcome depends on names and weights alone and is the same after a restart; and a destination
that comes or goes takes or gives only its own hashes. One of weight 5 draws as two, one of weight 4
and one of weight 1: so weights are powers of two, and those of the same weight draw together.

Thousands may draw for every message, so the first octet of all their draws is made at once: it is
the exclusive or of eight numbers, one for each digit of the hash (tabulation hashing), each as
long as there are destinations. Only those with the highest first octet draw the rest.
"""

from __future__ import annotations

import hashlib
import zlib
from math import inf, log
from typing import Any, ClassVar

from warren.amqp.tables import kind_of
from warren.amqp.terms import comparable, erlang_integer, erlang_text
from warren.broker.exchanges.base import INTERNAL_ERROR, Binding, Exchange, RoutedMessage

_HASHABLE_PROPERTIES = ("correlation_id", "message_id", "timestamp")

_SPREAD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: near hashes go far apart
_MASK = 0xFFFFFFFFFFFFFFFF
_COLUMNS = 8 * 16  # digits of a hash, values of a digit
_WEIGHT_BITS = 16  # how exactly a weight is kept
_MANY = 400  # from here on, the highest octet is looked for, not compared
_KNOWN = 4096  # draws that are remembered


class _Crowd:
    """Destinations of the same weight. Knows nothing of exchanges and messages."""

    def __init__(self) -> None:
        self._at: dict[Any, int] = {}  # destination -> place
        self._members: list[tuple[Any, int]] = []  # destination and its seed
        #: For each digit and its value, an octet a member; and the same as one number.
        self._columns = [bytearray() for _ in range(_COLUMNS)]
        self._numbers: list[int] = []

    def __len__(self) -> int:
        return len(self._members)

    def add(self, destination: Any, identity: str) -> None:
        name = hashlib.shake_128(identity.encode("utf-8", "surrogateescape"))
        octets = name.digest(_COLUMNS + 8)
        self._at[destination] = len(self._members)
        self._members.append((destination, int.from_bytes(octets[_COLUMNS:], "big")))
        for column, octet in zip(self._columns, octets, strict=False):
            column.append(octet)
        self._numbers.clear()

    def remove(self, destination: Any) -> None:
        """The last one takes the place of the one that goes."""
        at = self._at.pop(destination)
        last = self._members.pop()
        for column in self._columns:
            octet = column.pop()
            if at < len(column):
                column[at] = octet
        if at < len(self._members):
            self._members[at] = last
            self._at[last[0]] = at
        self._numbers.clear()

    def best(self, hashed: int) -> tuple[float, Any]:
        """The highest draw, between 0 and 1, and whose it is."""
        octets = self._first_octets(hashed)
        highest = _highest(octets)
        best, winner = -1, None
        at = octets.find(highest)
        while at >= 0:
            destination, seed = self._members[at]
            rest = _mixed(seed + hashed * _SPREAD)
            if rest > best:
                best, winner = rest, destination
            at = octets.find(highest, at + 1)
        return ((highest << 64 | best) + 0.5) * 2.0**-72, winner

    def _first_octets(self, hashed: int) -> bytes:
        n = self._numbers
        if not n:
            n += (int.from_bytes(column, "little") for column in self._columns)
        number = (
            n[hashed & 15]
            ^ n[16 | hashed >> 4 & 15]
            ^ n[32 | hashed >> 8 & 15]
            ^ n[48 | hashed >> 12 & 15]
            ^ n[64 | hashed >> 16 & 15]
            ^ n[80 | hashed >> 20 & 15]
            ^ n[96 | hashed >> 24 & 15]
            ^ n[112 | hashed >> 28]
        )
        return number.to_bytes(len(self._members), "little")


def _mixed(number: int) -> int:
    """64 bits of which each depends on every bit of the number (the end of SplitMix64)."""
    number &= _MASK
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    return number ^ number >> 31


def _highest(octets: bytes) -> int:
    if len(octets) < _MANY:
        return max(octets)
    return next(octet for octet in range(255, -1, -1) if octet in octets)


class _Ring:
    """Destinations by weight, and who gets which hash."""

    def __init__(self) -> None:
        self._weights: dict[Any, tuple[int, ...]] = {}
        self._crowds: dict[int, _Crowd] = {}  # by the power of two that is their weight
        self._known: dict[int, Any] = {}  # what was drawn last

    def __contains__(self, destination: Any) -> bool:
        return destination in self._weights

    def add(self, binding: Binding) -> None:
        destination = binding.destination
        self._weights[destination] = powers = _powers(int(binding.routing_key))
        for power in powers:
            identity = f"{binding.destination_kind}\0{destination.name}\0{power}"
            self._crowds.setdefault(power, _Crowd()).add(destination, identity)
        self._known.clear()

    def remove(self, destination: Any) -> None:
        for power in self._weights.pop(destination):
            self._crowds[power].remove(destination)
            if not len(self._crowds[power]):
                del self._crowds[power]
        self._known.clear()

    def owner(self, number: int) -> Any:
        """The destination for a 32-bit hash; None when there are no destinations."""
        owner = self._known.get(number)
        if owner is None and self._crowds:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            owner = self._known[number] = self._draw((number * _SPREAD & _MASK) >> 32)
        return owner

    def _draw(self, hashed: int) -> Any:
        if len(self._crowds) == 1:
            return next(iter(self._crowds.values())).best(hashed)[1]
        first, winner = inf, None
        heaviest = max(self._crowds)
        for power, crowd in self._crowds.items():
            drawn, destination = crowd.best(hashed)
            # The time to a first event, where the weight is the rate of events: first wins.
            time = -log(drawn) * 2.0 ** min(heaviest - power, 1000)
            if time < first:
                first, winner = time, destination
        return winner


def _powers(weight: int) -> tuple[int, ...]:
    """The powers of two that make up a weight, as exactly as it is kept."""
    lowest = max(0, weight.bit_length() - _WEIGHT_BITS)
    return tuple(bit for bit in range(lowest, weight.bit_length()) if weight >> bit & 1)


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
        if binding.destination not in self._ring:
            self._ring.add(binding)

    def _unlink(self, binding: Binding) -> None:
        destination = binding.destination
        # As in RabbitMQ: whichever of its weights is unbound, the queue leaves the ring.
        if destination in self._ring:
            self._ring.remove(destination)


def _octets(value: Any) -> bytes:
    """What is hashed of a header or property; messages without it all go one way."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return repr((kind_of(value), comparable(value))).encode()
