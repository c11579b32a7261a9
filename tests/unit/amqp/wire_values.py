"""Field-table values of every type, and their bytes made without warren's codec."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

NUMBERS = {
    "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "L": ">q",
    "f": ">f", "d": ">d", "T": ">Q",
}  # fmt: skip
KIND_NAMES = {
    "t": "bool", "b": "byte", "B": "unsignedbyte", "s": "short", "u": "unsignedshort",
    "I": "signedint", "i": "unsignedint", "l": "long", "L": "long", "f": "float", "d": "double",
    "D": "decimal", "S": "longstr", "A": "array", "T": "timestamp", "F": "table", "V": "void",
    "x": "binary",
}  # fmt: skip


@dataclass(frozen=True)
class Typed:
    """A value with its type octet; ``A`` holds a list of Typed, ``F`` a dict of them."""

    octet: str
    value: Any

    @property
    def wire(self) -> bytes:
        """Type octet and value."""
        return self.octet.encode() + self._body()

    def _body(self) -> bytes:
        octet, value = self.octet, self.value
        if octet in NUMBERS:
            return struct.pack(NUMBERS[octet], value)
        if octet == "t":
            return bytes([value])
        if octet == "V":
            return b""
        if octet == "D":
            return struct.pack(">BI", *value)
        if octet == "A":
            return sized(b"".join(item.wire for item in value))
        if octet == "F":
            return sized(entries(value))
        return sized(value.encode() if octet == "S" else value)

    @property
    def plain(self) -> Any:
        """What a decoder makes of it."""
        if self.octet == "A":
            return [item.plain for item in self.value]
        if self.octet == "F":
            return {key: item.plain for key, item in self.value.items()}
        if self.octet == "D":
            scale, digits = self.value
            return Decimal(digits).scaleb(-scale)
        return self.value

    @property
    def rewritten(self) -> bytes:
        """As RabbitMQ writes it again: the two octets for 64-bit integers become one."""
        if self.octet == "L":
            return Typed("l", self.value).wire
        if self.octet == "A":
            return b"A" + sized(b"".join(item.rewritten for item in self.value))
        if self.octet == "F":
            return b"F" + sized(entries(self.value, rewritten=True))
        return self.wire


def sized(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def entries(table: dict[str, Typed], *, rewritten: bool = False) -> bytes:
    """A table without the length in front."""
    return b"".join(
        bytes([len(key.encode())]) + key.encode() + (value.rewritten if rewritten else value.wire)
        for key, value in table.items()
    )


def _integers(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    low = -(1 << bits - 1) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "t": st.booleans(),
    "b": _integers(8, signed=True),
    "B": _integers(8, signed=False),
    "s": _integers(16, signed=True),
    "u": _integers(16, signed=False),
    "I": _integers(32, signed=True),
    "i": _integers(32, signed=False),
    "l": _integers(64, signed=True),
    "L": _integers(64, signed=True),
    "f": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "d": st.floats(allow_nan=False, allow_infinity=False),
    "D": st.tuples(_integers(8, signed=False), _integers(32, signed=False)),
    "S": st.text(max_size=20),
    "T": _integers(64, signed=False),
    "V": st.none(),
    "x": st.binary(max_size=20),
}
keys = st.text(max_size=60)


def typed(octets: str = "tbBsuIilLfdDSTVxAF") -> st.SearchStrategy[Typed]:
    """Values of these types, with tables and arrays inside each other."""
    scalars = st.one_of([st.builds(Typed, st.just(o), SCALARS[o]) for o in octets if o in SCALARS])
    if "A" not in octets:
        return scalars
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.builds(Typed, st.just("A"), st.lists(inner, max_size=4)),
            st.builds(Typed, st.just("F"), st.dictionaries(keys, inner, max_size=4)),
        ),
        max_leaves=8,
    )


def tables(octets: str = "tbBsuIilLfdDSTVxAF") -> st.SearchStrategy[dict[str, Typed]]:
    return st.dictionaries(keys, typed(octets), max_size=6)
