"""What a body is, and binary bodies as JSON text that Spark's ``from_json`` reads.

A converter is a small value that travels to Spark's workers; what it needs of schemas is made once
a process, where it is used. ``check`` says before anything is consumed what is wrong with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from warren.content_type import parse_content_type
from warren.errors import PackageMissing
from warren.pipeline import avro_datum, json_text, protobuf_message
from warren.pipeline.avro_file import MAGIC, open_container

_KINDS = {
    "application/json": "json",
    "text/json": "json",
    "text/csv": "csv",
    "application/csv": "csv",
    "application/avro": "avro",
    "application/vnd.apache.avro": "avro",
    "application/x-avro": "avro",
    "avro/binary": "avro",
    "application/msgpack": "msgpack",
    "application/vnd.msgpack": "msgpack",
    "application/x-msgpack": "msgpack",
    "application/protobuf": "protobuf",
    "application/vnd.google.protobuf": "protobuf",
    "application/x-protobuf": "protobuf",
}
_SUFFIXES = ("json", "avro", "msgpack", "protobuf")
_SINGLE_OBJECT = b"\xc3\x01"


@lru_cache(maxsize=1024)
def kind_of(content_type: str | None) -> tuple[str | None, str]:
    """What a content-type stands for, and its charset (``utf-8`` where none is named).

    One of json, csv, text, avro, msgpack, protobuf; None if it says none of them, or nothing.
    """
    media_type, charset = parse_content_type(content_type)
    kind = _KINDS.get(media_type)
    suffix = media_type.rpartition("+")[2] if "+" in media_type else ""
    if kind is None and suffix in _SUFFIXES:
        kind = suffix
    elif kind is None and media_type.startswith("text/"):
        kind = "text"
    return kind, charset


@dataclass(frozen=True)
class MessagePack:
    """Reads MessagePack.

    Binary values and those of extension types become base64, timestamps and keys of maps text.
    """

    def check(self) -> None:
        """Raises PackageMissing if the library is not there."""
        try:
            import msgpack  # noqa: F401
        except ImportError:
            raise PackageMissing("msgpack", "MessagePack") from None

    def text(self, body: bytes) -> str:
        """The body as JSON; ValueError with the reason if it is not MessagePack."""
        self.check()
        import msgpack

        try:
            # All its limits come from the body's length: nothing larger can be in it.
            value = msgpack.unpackb(body, strict_map_key=False, timestamp=3, ext_hook=_extension)
            return _dumps(value)
        except UnicodeDecodeError:
            raise ValueError("a string is not UTF-8") from None
        except (msgpack.StackError, RecursionError):
            raise ValueError("it is nested too deeply") from None
        except msgpack.ExtraData as error:
            raise ValueError(f"{len(error.extra)} octets follow its end") from None
        except Exception as error:
            raise ValueError(str(error) or type(error).__name__) from error


def _extension(code: int, data: bytes) -> bytes:
    return data


def _dumps(value: Any) -> str:
    try:
        return _encoder.encode(value)
    except TypeError:
        # JSON takes numbers for keys, and writes them as text; octets and times it does not take.
        return _encoder.encode(_with_text_keys(value))


def _plain(value: Any) -> str:
    """What JSON has no form for."""
    if isinstance(value, datetime):
        return json_text.moment(value)
    return json_text.binary(value)[1:-1]


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_text_keys(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        _plain(key) if isinstance(key, bytes | datetime) else key: _with_text_keys(each)
        for key, each in value.items()
    }


_encoder = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=_plain
)


@dataclass(frozen=True)
class Avro:
    """Reads Avro: a datum of ``schema``, bare or in single-object encoding; or a file.

    A file (an object container) brings its own schema, must hold one record, and needs no
    ``schema`` here. Unions become the value in them, enums their symbol.
    """

    schema: str | None = None

    def check(self) -> None:
        """Raises ValueError with what is wrong with the schema; PackageMissing."""
        avro_datum.compiled('"null"' if self.schema is None else self.schema)

    def text(self, body: bytes) -> str:
        """The body as JSON; ValueError with the reason if it is not what it should be."""
        if body.startswith(MAGIC):
            schema, data = open_container(body)
            return avro_datum.compiled(schema).text(data)
        if self.schema is None:
            raise ValueError("it is no Avro file, and its table has no schema")
        datum = avro_datum.compiled(self.schema)
        marked = body.startswith(_SINGLE_OBJECT)
        if marked and body[2:10] == datum.fingerprint:
            return datum.text(body[10:])
        try:
            return datum.text(body)
        except ValueError:
            # Said only now: a bare datum may begin like this by chance, with an int of -98.
            if marked:
                raise ValueError(f"made with another schema ({body[2:10].hex()})") from None
            raise


@dataclass(frozen=True)
class Protobuf:
    """Reads one kind of Protobuf message.

    ``descriptors`` is what ``protoc --include_imports --descriptor_set_out`` writes, ``message``
    the full name of the message. Fields it does not know are left out.
    """

    descriptors: bytes = field(repr=False)
    message: str

    def check(self) -> None:
        """Raises ValueError with what is wrong with descriptors or name; PackageMissing."""
        protobuf_message.compiled(self.descriptors, self.message)

    def text(self, body: bytes) -> str:
        """The body as JSON; ValueError with the reason if it is not such a message."""
        return protobuf_message.compiled(self.descriptors, self.message)(body)
