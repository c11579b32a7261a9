"""What the methods of AMQP have in common: fields with wire types, and a codec made from them.

A field's annotation is its wire type; the codec of a class is derived from its annotations once,
when the class is made. The methods themselves are in ``methods``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any, ClassVar, TypeVar, dataclass_transform

from warren.amqp.tables import Table, TableError, decode_table, encode_table, raw

Octet = int
Short = int
Long = int
LongLong = int
ShortStr = str
LongStr = bytes
Bit = bool
FieldTable = Table

#: A field's annotation, by its name, to its wire type.
_DOMAINS = {
    "Octet": "octet",
    "Short": "short",
    "Long": "long",
    "LongLong": "longlong",
    "ShortStr": "shortstr",
    "LongStr": "longstr",
    "Bit": "bit",
    "FieldTable": "table",
}
_NUMBERS = {
    "octet": Struct(">B"),
    "short": Struct(">H"),
    "long": Struct(">I"),
    "longlong": Struct(">Q"),
}
_LONG = _NUMBERS["long"]
_IDS = Struct(">HH")


class MethodError(ValueError):
    """Arguments that do not fit the method."""


class NotUtf8(MethodError):
    """A short string in a method that is not UTF-8."""


class BadTable(MethodError):
    """A field table of the right length that can't be read."""


class Method:
    """Base of every method: knows its ids and its codec. A value: never changed once made.

    A dataclass would say the same, but making sixty of them takes a third of the time in which
    the broker has to be up.
    """

    class_id: ClassVar[int]
    method_id: ClassVar[int]
    name: ClassVar[str]
    has_content: ClassVar[bool]
    _plan: ClassVar[tuple[tuple[str, str], ...]]
    _head: ClassVar[bytes]

    def __init__(self, *values: Any, **named: Any) -> None:
        plan = self._plan
        given = dict(zip((name for name, _ in plan), values, strict=False))
        given.update(named)
        self.__dict__.update(given)
        if len(given) < len(plan):
            missing = [name for name, _ in plan if not hasattr(self, name)]
            if missing:
                raise TypeError(f"{self.name} needs {', '.join(missing)}")
        elif len(given) > len(plan) or len(values) > len(plan):
            raise TypeError(f"{self.name} has {len(plan)} fields, not {len(given)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self.name} can't be changed")

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name, _ in self._plan}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields().items())
        return f"{type(self).__name__}({fields})"

    def encode(self) -> bytes:
        """The payload of a method frame."""
        parts = [self._head]
        bits: list[bool] = []
        for name, domain in self._plan:
            value = getattr(self, name)
            if domain == "bit":
                bits.append(value)
                continue
            if bits:
                parts.append(_encode_bits(bits))
                bits = []
            parts.append(_encode_field(domain, value))
        if bits:
            parts.append(_encode_bits(bits))
        return b"".join(parts)


M = TypeVar("M", bound=type[Method])

#: (class id, method id) to class; ``methods`` fills it.
METHODS: dict[tuple[int, int], type[Method]] = {}


@dataclass_transform(frozen_default=True)
def method(class_id: int, method_id: int, name: str, content: bool = False) -> Callable[[M], M]:
    """Make a class with annotated fields a method of AMQP."""

    def register(cls: M) -> M:
        cls.class_id, cls.method_id, cls.name, cls.has_content = class_id, method_id, name, content
        annotations = inspect.get_annotations(cls)
        cls._plan = tuple((field, _DOMAINS[kind]) for field, kind in annotations.items())
        cls._head = _IDS.pack(class_id, method_id)
        METHODS[class_id, method_id] = cls
        return cls

    return register


def _encode_bits(bits: list[bool]) -> bytes:
    return bytes((sum(1 << place for place, bit in enumerate(bits) if bit),))


def shortstr(value: str) -> bytes:
    """A short string with its length in front."""
    octets = raw(value)
    if len(octets) > 255:
        raise MethodError(f"a short string of {len(octets)} octets; 255 is the most")
    return bytes((len(octets),)) + octets


def _encode_field(domain: str, value: Any) -> bytes:
    if domain == "shortstr":
        return shortstr(value)
    if domain == "longstr":
        return _LONG.pack(len(value)) + bytes(value)
    if domain == "table":
        return encode_table(value)
    return bytes(_NUMBERS[domain].pack(value))


def decode_method(payload: bytes) -> Method:
    """The method in a method frame.

    Raises:
        KeyError: no such method; the argument is (class id, method id).
        MethodError: the arguments can't be read.
    """
    try:
        ids = _IDS.unpack_from(payload)
    except StructError as error:
        raise MethodError("a method frame without a method") from error
    cls = METHODS[ids]
    values: dict[str, Any] = {}
    at, bit = 4, 8
    try:
        for name, domain in cls._plan:
            if domain == "bit":
                if bit == 8:
                    bit, at = 0, at + 1
                values[name] = bool(payload[at - 1] & (1 << bit))
                bit += 1
                continue
            bit = 8
            values[name], at = _decode_field(domain, payload, at)
    except (StructError, IndexError) as error:
        raise MethodError(f"cannot decode {cls.name}") from error
    except TableError as error:
        raise BadTable(f"cannot decode {cls.name}") from error
    if at != len(payload):
        raise MethodError(f"cannot decode {cls.name}")
    return cls(**values)


def _decode_field(domain: str, data: bytes, at: int) -> tuple[Any, int]:
    number = _NUMBERS.get(domain)
    if number is not None:
        return number.unpack_from(data, at)[0], at + number.size
    if domain == "shortstr":
        stop = at + 1 + data[at]
        if stop > len(data):
            raise MethodError("a short string reaches beyond its frame")
        try:
            return data[at + 1 : stop].decode(), stop
        except UnicodeDecodeError:
            raise NotUtf8("Malformed UTF-8 in shortstr") from None
    start = at + 4
    stop = start + _LONG.unpack_from(data, at)[0]
    if stop > len(data):
        raise MethodError("a long string or table reaches beyond its frame")
    if domain == "longstr":
        return data[start:stop], stop
    return decode_table(data, start, stop), stop
