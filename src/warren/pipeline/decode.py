"""From bodies to text that Spark can parse: unpacked, in UTF-8, binary formats as JSON.

Runs in Spark's Python workers, a batch of rows at a time. Whatever is wrong with a body becomes the
row's ``problem``; what is wrong with the machine (a package that is not there) is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from warren.content_encoding import ENCODINGS, expand
from warren.errors import DecodeFailed
from warren.pipeline.formats import Avro, MessagePack, Protobuf, kind_of
from warren.pipeline.model import Table

#: What is added to a message's columns.
TABLE, TEXT, KIND, PROBLEM = "_table", "_text", "_kind", "_problem"
#: How a problem begins that is the content-encoding's: what follows, to the next colon, is of few
#: kinds.
ENCODING = "content-encoding"
#: Formats whose text is the body itself.
_AS_IT_IS = ("json", "csv", "text")
#: The most that a body may grow to. Java holds a text several times while it parses it: with 1 GiB,
#: two tasks at once manage 32 MiB each, and not 64.
MOST_OCTETS = 32 << 20
#: So much text makes a batch of rows: Arrow takes 2 GiB, and a small message can grow a lot.
_PART_OCTETS = 64 << 20


class _Converter(Protocol):
    def text(self, body: bytes) -> str: ...


@dataclass(frozen=True)
class Decoding:
    """How the bodies of one table are read."""

    #: Whatever the content-type says; None: as that says.
    body: str | None = None
    avro: str | None = None
    protobuf: tuple[bytes, str] | None = None

    @classmethod
    def of(cls, table: Table) -> Decoding:
        return cls(table.body, table.avro, table.protobuf)

    def converters(self) -> dict[str, _Converter]:
        found: dict[str, _Converter] = {"msgpack": MessagePack(), "avro": Avro(self.avro)}
        if self.protobuf is not None:
            found["protobuf"] = Protobuf(*self.protobuf)
        return found


@dataclass(frozen=True)
class Read:
    """A body that was read: its text and what the text is; or the problem."""

    text: str | None
    kind: str | None
    problem: str | None = None


class BodyReader:
    """Reads the bodies of one table."""

    def __init__(self, decoding: Decoding) -> None:
        self._as = decoding.body
        self._converters = decoding.converters()

    def read(self, body: bytes, content_type: str | None, encoding: str | None) -> Read:
        kind, charset = kind_of(content_type)
        if self._as is not None:
            kind = self._as
        elif kind is None:
            if content_type:
                return Read(None, None, "its content-type is not known")
            kind = "json"
        try:
            body = expand(body, encoding, MOST_OCTETS)
        except DecodeFailed as error:
            return Read(None, kind, f"{ENCODING}: {_short(error)}")
        if not body:
            return Read(None, kind, "empty")
        if kind in _AS_IT_IS:
            found = self._decoded(body, kind, charset)
            return _record(found) if kind == "csv" else found
        return self._converted(body, kind)

    @staticmethod
    def _decoded(body: bytes, kind: str, charset: str) -> Read:
        try:
            text = body.decode(charset)
            if charset != "utf-8":
                text.encode()  # some make what is in no text: half a surrogate pair
        except UnicodeError:  # not all of them say which octet: idna, undefined
            return Read(None, kind, "not in its charset" if charset != "utf-8" else "not UTF-8")
        except (LookupError, ValueError):
            return Read(None, kind, "its charset is not known")
        return Read(text, kind)

    def _converted(self, body: bytes, kind: str) -> Read:
        converter = self._converters.get(kind)
        if converter is None:
            return Read(None, kind, f"no {kind} descriptors for its table")
        try:
            text = converter.text(body)
        except ValueError as error:
            return Read(None, kind, f"not {_NAMES[kind]}: {error}")
        if _octets(text) > MOST_OCTETS:
            return Read(None, kind, f"grows beyond {MOST_OCTETS} octets")
        return Read(text, "json")


_NAMES = {"avro": "Avro", "msgpack": "MessagePack", "protobuf": "Protobuf"}


class Decoder:
    """What ``mapInArrow`` calls; it travels to the workers."""

    def __init__(self, decodings: dict[str, Decoding], names: Iterable[str]) -> None:
        self._decodings, self._names = decodings, list(names)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        readers = {table: BodyReader(each) for table, each in self._decodings.items()}
        for batch in batches:
            added = self._plain(batch, readers)
            if added is not None:
                yield self._with(batch, added)
                continue
            at = 0
            for reads in self._parts(batch, readers):
                yield self._with(batch.slice(at, len(reads)), _arrays(reads))
                at += len(reads)

    def _with(self, batch: pa.RecordBatch, added: list[pa.Array]) -> pa.RecordBatch:
        kept = [batch.column(name) for name in self._names]
        return pa.RecordBatch.from_arrays([*kept, *added], [*self._names, TEXT, KIND, PROBLEM])

    @staticmethod
    def _plain(batch: pa.RecordBatch, readers: dict[str, BodyReader]) -> list[pa.Array] | None:
        """All at once, if all are JSON in UTF-8 and not packed: most batches are."""
        for name in ("content_encoding", "content_type", TABLE):
            column = batch.column(name)
            distinct = column.unique().to_pylist()
            if name == "content_encoding" and distinct not in ([], [None]):
                return None
            if name == "content_type" and any(
                kind_of(each) != ("json", "utf-8") for each in distinct if each
            ):
                return None
            if name == TABLE and any(
                each in readers and readers[each]._as not in (None, "json") for each in distinct
            ):
                return None
        body = batch.column("body")
        if pa.compute.any(pa.compute.equal(pa.compute.binary_length(body), 0)).as_py():
            return None
        try:
            text = body.cast(pa.string())
        except pa.ArrowInvalid:
            return None
        rows = len(batch)
        return [text, pa.array(["json"] * rows, pa.string()), pa.nulls(rows, pa.string())]

    @staticmethod
    def _parts(batch: pa.RecordBatch, readers: dict[str, BodyReader]) -> Iterator[list[Read]]:
        """One by one, and handed on before they are too much for an array, or for the machine."""
        nobody = Read(None, None)
        columns = [
            batch.column(name).to_pylist()
            for name in (TABLE, "body", "content_type", "content_encoding")
        ]
        reads: list[Read] = []
        octets = 0
        for table, body, kind, encoding in zip(*columns, strict=True):
            read = readers[table].read(body, kind, encoding) if table in readers else nobody
            reads.append(read)
            octets += _octets(read.text)
            if octets >= _PART_OCTETS:
                yield reads
                reads, octets = [], 0
        if reads:
            yield reads


def _arrays(reads: list[Read]) -> list[pa.Array]:
    return [
        pa.array([each.text for each in reads], pa.string()),
        pa.array([each.kind for each in reads], pa.string()),
        pa.array([each.problem for each in reads], pa.string()),
    ]


def _octets(text: str | None) -> int:
    """As UTF-8."""
    if text is None or text.isascii():
        return len(text or "")
    return len(text.encode())


def _record(found: Read) -> Read:
    """A record of CSV without the end of its line, which most writers put there."""
    if found.text is None:
        return found
    text = found.text.removesuffix("\n").removesuffix("\r")
    return replace(found, text=text) if text else Read(None, found.kind, "empty")


def _short(error: DecodeFailed) -> str:
    if error.kind not in ENCODINGS:
        return f"not known: {error.kind}"
    return str(error).partition("\n")[0]
