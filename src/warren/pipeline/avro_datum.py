"""Avro's binary encoding, read into JSON text.

fastavro parses the schema. Its reader is not used: a body of some kilobytes can end the process
(records in records), keep it busy for minutes (a long decimal) or fill its memory (an array of
nulls), and it takes the branch -1 of a union for the last one. Bodies come from strangers. Here
each type of the schema becomes a function that takes the body and a place in it, and returns the
JSON text of the value there and the place after it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from warren.content_encoding import MOST_BYTES
from warren.errors import PackageMissing
from warren.pipeline import json_text

Read = Callable[[bytes, int], tuple[str, int]]

#: Schemas come in files, and so from strangers too. Beyond this they are meant to do harm.
_MOST_NESTED, _MOST_EMPTY, _MOST_DIGITS = 100, 1000, 1000
_TOO_LARGE = f"it grows beyond {MOST_BYTES} octets"
_DAY_US = 86_400_000_000
_DAY_ZERO = date(1970, 1, 1).toordinal()
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_LONG_MICROS = {"millis": (1000, 1), "micros": (1, 1), "nanos": (1, 1000)}


@dataclass(frozen=True)
class Datum:
    """How a datum of one schema is read."""

    read: Read
    #: CRC-64-AVRO of the schema, as single-object encoding writes it.
    fingerprint: bytes

    def text(self, body: bytes) -> str:
        """The datum as JSON; ValueError if the body is not that, or more than that."""
        try:
            text, at = self.read(body, 0)
        except (IndexError, struct.error):
            raise ValueError("it ends too early") from None
        except UnicodeDecodeError:
            raise ValueError("a string is not UTF-8") from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except OverflowError:
            raise ValueError("a date or time is out of range") from None
        if at != len(body):
            raise ValueError(f"{len(body) - at} octets follow its end")
        return text


@lru_cache(maxsize=64)
def compiled(schema: str) -> Datum:
    """The reader of a schema in JSON.

    Raises:
        ValueError: what is wrong with the schema.
        PackageMissing: fastavro is not installed.
    """
    try:
        from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form
    except ImportError:
        raise PackageMissing("fastavro", "Avro") from None
    try:
        raw = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the schema is not JSON: {error}") from None
    _refuse_deep(raw)
    try:
        parsed = parse_schema(raw)
        crc = fingerprint(to_parsing_canonical_form(parsed), "CRC-64-AVRO")
        part = _Compiler().part(parsed)
    except Exception as error:
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        raise ValueError(f"the schema is not good: {kind}{error}") from error
    return Datum(part.read, bytes.fromhex(crc))


def _refuse_deep(schema: Any) -> None:
    # fastavro parses in C, by recursion that nobody bounds.
    level = [schema]
    for _ in range(_MOST_NESTED):
        level = [
            child
            for each in level
            if isinstance(each, list | dict)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError("the schema is nested too deeply")


@dataclass(frozen=True)
class _Part:
    """How a type is read."""

    read: Read
    #: Some types take no octets at all: null, and what is made of nulls only.
    takes_octets: bool = True
    #: How many values they make of nothing.
    empties: int = 0


class _Compiler:
    """Turns the types of one parsed schema into functions."""

    def __init__(self) -> None:
        self._named: dict[str, _Part] = {}

    def part(self, schema: Any) -> _Part:
        if isinstance(schema, list):
            return _Part(_union([self.part(each).read for each in schema]))
        if isinstance(schema, str):
            schema = {"type": schema}
        kind = schema["type"]
        if kind == "null":
            return _Part(lambda body, at: ("null", at), takes_octets=False, empties=1)
        if kind in self._named:
            return self._named[kind]
        if kind in ("record", "error"):
            return self._record(schema["name"], schema["fields"])
        if kind == "enum":
            made = _Part(_enum(schema["symbols"]))
        elif kind == "fixed":
            made = self._fixed(schema)
        elif kind == "array":
            return _Part(_array(self._item(schema["items"])))
        elif kind == "map":
            return _Part(_map(self.part(schema["values"]).read))
        else:
            return _Part(_primitive(kind, schema))
        self._named[schema["name"]] = made
        return made

    def _record(self, name: str, fields: list[Any]) -> _Part:
        # A record may hold itself: inside, its name leads to what is made only afterwards.
        self._named[name] = _Part(lambda body, at: self._named[name].read(body, at))
        parts = {str(each["name"]): self.part(each["type"]) for each in fields}
        empties = 1 + sum(each.empties for each in parts.values())
        if empties > _MOST_EMPTY:
            raise ValueError(f"record '{name}' makes {empties} values of no octets")
        takes_octets = any(each.takes_octets for each in parts.values())
        read = _record({name: each.read for name, each in parts.items()})
        self._named[name] = _Part(read, takes_octets, 0 if takes_octets else empties)
        return self._named[name]

    def _fixed(self, schema: dict[str, Any]) -> _Part:
        size = schema["size"]
        if not isinstance(size, int) or size < 0:
            raise ValueError(f"fixed '{schema['name']}' has size {size!r}")
        octets = _octets(lambda body, at: (size, at))
        return _Part(_binary(octets, schema), takes_octets=size > 0, empties=int(size == 0))

    def _item(self, schema: Any) -> Read:
        part = self.part(schema)
        if not part.takes_octets:
            # Three octets could say that there are a million of them.
            raise ValueError("the items of an array take no octets")
        return part.read


def read_long(body: bytes, at: int) -> tuple[int, int]:
    octet = body[at]
    value, shift = octet & 0x7F, 7
    while octet & 0x80:
        if shift > 63:
            raise ValueError("a number has more than 64 bits")
        at += 1
        octet = body[at]
        value |= (octet & 0x7F) << shift
        shift += 7
    if value >> 64:
        raise ValueError("a number has more than 64 bits")
    return (value >> 1) ^ -(value & 1), at + 1


def _int(body: bytes, at: int) -> tuple[int, int]:
    value, at = read_long(body, at)
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError("an int has more than 32 bits")
    return value, at


Octets = Callable[[bytes, int], tuple[bytes, int]]


def _octets(length: Callable[[bytes, int], tuple[int, int]]) -> Octets:
    def read(body: bytes, at: int) -> tuple[bytes, int]:
        size, at = length(body, at)
        if not 0 <= size <= len(body) - at:
            raise ValueError("a length is negative" if size < 0 else "it ends too early")
        return body[at : at + size], at + size

    return read


read_octets = _octets(read_long)


def _string(body: bytes, at: int) -> tuple[str, int]:
    octets, at = read_octets(body, at)
    return json_text.quoted(octets.decode()), at


def _boolean(body: bytes, at: int) -> tuple[str, int]:
    if body[at] > 1:
        raise ValueError("a boolean is neither 0 nor 1")
    return json_text.boolean(body[at]), at + 1


def _real(form: struct.Struct) -> Read:
    return lambda body, at: (json_text.real(form.unpack_from(body, at)[0]), at + form.size)


def _primitive(kind: str, schema: dict[str, Any]) -> Read:
    if kind in ("int", "long"):
        return _number(kind, str(schema.get("logicalType")))
    if kind == "bytes":
        return _binary(read_octets, schema)
    plain: dict[str, Read] = {
        "string": _string,
        "boolean": _boolean,
        "float": _real(_FLOAT),
        "double": _real(_DOUBLE),
    }
    if kind not in plain:
        raise ValueError(f"there is no type {kind!r}")
    return plain[kind]


def _number(kind: str, logical: str) -> Read:
    number = _int if kind == "int" else read_long
    text: Callable[[int], str] = str
    unit = logical.rpartition("-")[2]
    if (kind, logical) == ("int", "date"):
        text = _date
    elif (kind, logical) in (("int", "time-millis"), ("long", "time-micros")):
        text = _time_of_day(1000 if kind == "int" else 1)
    elif kind == "long" and unit in _LONG_MICROS and logical == f"timestamp-{unit}":
        text = _timestamp(unit, json_text.instant)
    elif kind == "long" and unit in _LONG_MICROS and logical == f"local-timestamp-{unit}":
        # No zone: what a TIMESTAMP_NTZ column reads.
        text = _timestamp(unit, lambda micros: json_text.instant(micros).replace("Z", ""))

    def read(body: bytes, at: int) -> tuple[str, int]:
        value, at = number(body, at)
        return text(value), at

    return read


def _date(days: int) -> str:
    if not 0 < days + _DAY_ZERO <= date.max.toordinal():
        raise OverflowError
    return f'"{date.fromordinal(days + _DAY_ZERO).isoformat()}"'


def _time_of_day(times: int) -> Callable[[int], str]:
    midnight = datetime(1970, 1, 1, tzinfo=UTC)

    def text(value: int) -> str:
        if not 0 <= value * times < _DAY_US:
            raise OverflowError
        at = midnight + timedelta(microseconds=value * times)
        return f'"{at.time().isoformat(timespec="microseconds")}"'

    return text


def _timestamp(unit: str, text: Callable[[int], str]) -> Callable[[int], str]:
    times, over = _LONG_MICROS[unit]
    return lambda value: text(value * times // over)


def _binary(octets: Octets, schema: dict[str, Any]) -> Read:
    """bytes and fixed: base64, unless they stand for something else."""
    text: Callable[[bytes], str] = json_text.binary
    logical = schema.get("logicalType")
    if logical == "decimal":
        text = _decimal(schema["precision"], schema.get("scale", 0))
    elif logical == "uuid" and schema.get("size") == 16:
        text = _uuid

    def read(body: bytes, at: int) -> tuple[str, int]:
        value, at = octets(body, at)
        return text(value), at

    return read


def _uuid(octets: bytes) -> str:
    return f'"{UUID(bytes=octets)}"'


def _decimal(precision: int, scale: int) -> Callable[[bytes], str]:
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        raise ValueError(f"a decimal of {precision} digits, {scale} after the point")
    limit = 10**precision

    def text(octets: bytes) -> str:
        unscaled = int.from_bytes(octets, signed=True)
        if not -limit < unscaled < limit:
            raise ValueError(f"a decimal has more than {precision} digits")
        return json_text.decimal(unscaled, scale)

    return text


def _enum(symbols: list[str]) -> Read:
    texts = [json_text.quoted(each) for each in symbols]

    def read(body: bytes, at: int) -> tuple[str, int]:
        index, at = _int(body, at)
        if not 0 <= index < len(texts):
            raise ValueError("an enum has no such symbol")
        return texts[index], at

    return read


def _union(branches: list[Read]) -> Read:
    def read(body: bytes, at: int) -> tuple[str, int]:
        index, at = read_long(body, at)
        if not 0 <= index < len(branches):
            raise ValueError("a union has no such branch")
        return branches[index](body, at)

    return read


def _record(fields: dict[str, Read]) -> Read:
    plan = [(f"{json_text.quoted(name)}:", read) for name, read in fields.items()]

    def read(body: bytes, at: int) -> tuple[str, int]:
        parts = []
        for key, field in plan:
            text, at = field(body, at)
            parts.append(key + text)
        whole = f"{{{','.join(parts)}}}"
        if len(whole) > MOST_BYTES:
            raise ValueError(_TOO_LARGE)
        return whole, at

    return read


def _blocks(body: bytes, at: int, item: Read) -> tuple[list[str], int]:
    """The items of an array or a map: block after block, an empty one is the last."""
    texts: list[str] = []
    size = 0
    while True:
        count, at = read_long(body, at)
        if count == 0:
            return texts, at
        if count < 0:
            _, at = read_long(body, at)  # the block's size, for those who skip it
        for _ in range(abs(count)):
            text, at = item(body, at)
            texts.append(text)
            size += len(text)
            if size > MOST_BYTES:
                raise ValueError(_TOO_LARGE)


def _array(item: Read) -> Read:
    def read(body: bytes, at: int) -> tuple[str, int]:
        texts, at = _blocks(body, at, item)
        return f"[{','.join(texts)}]", at

    return read


def _map(value: Read) -> Read:
    def entry(body: bytes, at: int) -> tuple[str, int]:
        key, at = _string(body, at)
        text, at = value(body, at)
        return f"{key}:{text}", at

    def read(body: bytes, at: int) -> tuple[str, int]:
        texts, at = _blocks(body, at, entry)
        return f"{{{','.join(texts)}}}", at

    return read
