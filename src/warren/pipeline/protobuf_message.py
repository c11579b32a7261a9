"""A Protobuf message, written as JSON text.

Not protobuf's own ``json_format``: that puts 64-bit integers into quotes, which a BIGINT column
does not read. Names are those of the .proto file. A field that knows no absence (proto3 without
``optional``, lists, maps) is always there, with its zero; another only if it was set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from warren.errors import PackageMissing
from warren.pipeline import json_text

Text = Callable[[Any], str]
"""From a value to its JSON text."""

_REPEATED = 3  # descriptor.proto: FieldDescriptorProto.Label
_WRAPPERS = ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")


@lru_cache(maxsize=64)
def compiled(descriptors: bytes, message: str) -> Callable[[bytes], str]:
    """From a body to its JSON text.

    Raises:
        ValueError: what is wrong with the descriptors, or that there is no such message.
        PackageMissing: protobuf is not installed.
    """
    try:
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass
    except ImportError:
        raise PackageMissing("protobuf", "Protobuf") from None
    descriptor = _descriptor(descriptors, message)
    parse = GetMessageClass(descriptor).FromString
    write = _Compiler().message(descriptor)

    def text(body: bytes) -> str:
        try:
            parsed = parse(body)
        except DecodeError:
            raise ValueError(f"it is no {message}") from None
        if not parsed.IsInitialized():
            missing = ", ".join(parsed.FindInitializationErrors()[:5])
            raise ValueError(f"required fields are missing: {missing}")
        try:
            return write(parsed)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    return text


def _descriptor(descriptors: bytes, message: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError

    try:
        files = FileDescriptorSet.FromString(descriptors).file
    except DecodeError:
        files = []
    if not files:
        raise ValueError("not a descriptor set, as protoc --descriptor_set_out writes it")
    pool = DescriptorPool()
    for each in files:
        try:
            pool.Add(each)
        except TypeError as error:
            raise ValueError(
                f"{each.name} can't be used; was it made with --include_imports? ({error})"
            ) from None
    names = sorted(name for each in files for name in _names(each.package, each.message_type))
    if message not in names:
        # Whoever leaves the package out should be told of it.
        near = [each for each in names if each.endswith(f".{message}")]
        near = near or get_close_matches(message, names, n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(names[:10])}"
        raise ValueError(f"there is no message '{message}'; {hint}" if names else "no messages")
    return pool.FindMessageTypeByName(message)


def _names(scope: str, messages: Any) -> Iterator[str]:
    for each in messages:
        name = f"{scope}.{each.name}".lstrip(".")
        if not each.options.map_entry:
            yield name
            yield from _names(name, each.nested_type)


class _Compiler:
    """Turns the messages of one descriptor set into functions."""

    def __init__(self) -> None:
        self._made: dict[str, Text] = {}

    def message(self, descriptor: Any) -> Text:
        name = descriptor.full_name
        if name not in self._made:
            # A message may hold itself: inside, its name leads to what is made afterwards.
            self._made[name] = lambda value: self._made[name](value)
            self._made[name] = self._well_known(descriptor) or self._plain(descriptor)
        return self._made[name]

    def _plain(self, descriptor: Any) -> Text:
        from google.protobuf.descriptor_pb2 import DescriptorProto

        said = DescriptorProto()
        descriptor.CopyToProto(said)
        plan = []
        for field, proto in zip(descriptor.fields, said.field, strict=True):
            repeated = proto.label == _REPEATED
            text = self._repeated(field) if repeated else self._single(field)
            maybe = field.has_presence and not repeated
            plan.append((field.name, f"{json_text.quoted(field.name)}:", text, maybe))

        def write(value: Any) -> str:
            parts = [
                key + text(getattr(value, name))
                for name, key, text, maybe in plan
                if not maybe or value.HasField(name)
            ]
            return f"{{{','.join(parts)}}}"

        return write

    def _repeated(self, field: Any) -> Text:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            key = self._single(entry.fields_by_name["key"])
            value = self._single(entry.fields_by_name["value"])
            return lambda values: _object((key(k), value(v)) for k, v in values.items())
        item = self._single(field)
        return lambda values: f"[{','.join([item(each) for each in values])}]"

    def _single(self, field: Any) -> Text:
        if field.message_type is not None:
            return self.message(field.message_type)
        if field.enum_type is not None:
            names = {
                number: json_text.quoted(each.name)
                for number, each in field.enum_type.values_by_number.items()
            }
            return lambda number: names.get(number) or str(number)
        if field.type == field.TYPE_BYTES:
            return json_text.binary
        by_kind: dict[int, Text] = {
            field.CPPTYPE_BOOL: json_text.boolean,
            field.CPPTYPE_DOUBLE: json_text.real,
            field.CPPTYPE_FLOAT: json_text.real,
            field.CPPTYPE_STRING: _string,
        }
        return by_kind.get(field.cpp_type, str)

    def _well_known(self, descriptor: Any) -> Text | None:
        package, _, name = descriptor.full_name.rpartition(".")
        if package != "google.protobuf":
            return None
        if name.removesuffix("Value") in _WRAPPERS:
            inner = self._single(descriptor.fields_by_name["value"])
            return lambda wrapper: inner(wrapper.value)
        known: dict[str, Text] = {
            "Timestamp": _timestamp,
            "Duration": _duration,
            "Struct": _struct,
            "Value": _value,
            "ListValue": _list_value,
        }
        return known.get(name)


def _string(value: str | bytes) -> str:
    if isinstance(value, bytes):  # in proto2, what is not UTF-8 comes as it is
        raise ValueError("a string is not UTF-8")  # noqa: TRY004
    return json_text.quoted(value)


def _object(entries: Iterator[tuple[str, str]]) -> str:
    quote = '"'
    texts = [
        f"{key}:{value}" if key[0] == quote else f"{quote}{key}{quote}:{value}"
        for key, value in entries
    ]
    return f"{{{','.join(texts)}}}"


def _timestamp(value: Any) -> str:
    if not 0 <= value.nanos < 1_000_000_000:
        raise ValueError("a timestamp is out of range")
    try:
        return json_text.instant(value.seconds * 1_000_000 + value.nanos // 1000)
    except OverflowError:
        raise ValueError("a timestamp is out of range") from None


def _duration(value: Any) -> str:
    """As protobuf's own JSON has it: ``"1.500000s"``."""
    micros = value.seconds * 1_000_000 + int(value.nanos / 1000)
    return f'"{json_text.decimal(micros, 6)}s"'


def _struct(value: Any) -> str:
    return _object((json_text.quoted(key), _value(each)) for key, each in value.fields.items())


def _list_value(value: Any) -> str:
    return f"[{','.join([_value(each) for each in value.values])}]"


def _value(value: Any) -> str:
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        # Struct has doubles only; a whole one is for a BIGINT column too.
        number = value.number_value
        whole = abs(number) < 2**53 and number == int(number)
        return str(int(number)) if whole else json_text.real(number)
    texts: dict[str | None, Text] = {
        "string_value": json_text.quoted,
        "bool_value": json_text.boolean,
        "struct_value": _struct,
        "list_value": _list_value,
    }
    return texts[kind](getattr(value, kind)) if kind in texts else "null"
