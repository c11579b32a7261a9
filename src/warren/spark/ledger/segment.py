"""Segments, and the octets of their files.

A file is an Arrow IPC file. Small segments of several queues, drained at the same moment, share
one: it has the rows of all of them, a record batch each, and a name for each, so that it is written
and synced once.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warren.spark.columns import ARROW_SCHEMA
from warren.spark.ledger.names import stem_of

#: Formats that are read; the last one is written. In format 1 each segment has a file of its own.
FORMATS = (1, 2)
_META = b"warren.segment"
#: Columns that may be heavy, and what a row takes beside them.
_HEAVY = ("queue", "routing_key", "body", "headers", "correlation_id", "message_id")
_ROW_BYTES = 100
#: Stands twice in a file (schema and footer) and is not counted in the checksum it holds.
_SUM = b"warren.crc32:"
_NO_SUM = b"--------"


def weigh(batch: pa.RecordBatch) -> int:
    """About how many octets a batch takes; to ask all columns takes longer than to fill them."""
    octets = sum(int(batch.column(name).nbytes) for name in _HEAVY)
    return octets + _ROW_BYTES * int(batch.num_rows)


@dataclass(frozen=True)
class Segment:
    """A segment with its rows."""

    queue: str
    start: int
    end: int
    batch: pa.RecordBatch
    #: Seconds since 1970, by the clock of who wrote it.
    written_at: float = 0.0
    #: Which run made it: a query's source, or a batch read.
    run: str = ""

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows)

    @cached_property
    def octets(self) -> int:
        """About how much memory it takes."""
        return weigh(self.batch)

    @property
    def body_bytes(self) -> int:
        """Octets of all bodies together."""
        return int(pc.sum(pc.binary_length(self.batch.column("body"))).as_py() or 0)

    def within(self, first: int, until: int | None) -> pa.RecordBatch:
        """Its rows from one offset to another."""
        offsets = self.batch.column("offset")
        wanted = pc.greater_equal(offsets, first)
        if until is not None:
            wanted = pc.and_(wanted, pc.less(offsets, until))
        return self.batch.filter(wanted)


# -- writing -------------------------------------------------------------------------------------
def encode_segments(segments: Sequence[Segment]) -> bytearray:
    """A file of these, one behind the other."""
    about = {"format": FORMATS[-1], "segments": [_about(segment) for segment in segments]}
    # A queue may have any name; the checksum is found by what stands in front of it.
    text = json.dumps(about).encode().replace(_SUM, _SUM[:-1] + b"\\u003a")
    metadata = {_META: text, b"warren.sum": _SUM + _NO_SUM}
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_file(sink, ARROW_SCHEMA.with_metadata(metadata), options=options) as writer:
        for segment in segments:
            writer.write_batch(segment.batch.replace_schema_metadata(metadata))
    data = bytearray(sink.getvalue())
    total = b"%08x" % zlib.crc32(data)
    for at in _sums(data):
        data[at : at + len(total)] = total
    return data


def _about(segment: Segment) -> dict[str, Any]:
    return {
        "queue": segment.queue,
        "start": segment.start,
        "end": segment.end,
        "rows": segment.rows,
        "written_at": segment.written_at,
        "run": segment.run,
    }


# -- reading -------------------------------------------------------------------------------------
def decode_segment(data: bytes, stem: str, start: int) -> Segment:
    """The segment of that name in a file; raises ValueError if it is damaged."""
    _check_sum(data)
    with pa.ipc.open_file(pa.py_buffer(data)) as reader:
        about = json.loads((reader.schema.metadata or {})[_META])
        if about["format"] not in FORMATS:
            raise ValueError(f"it has format {about['format']}")
        held = about.get("segments") or [about]
        place, this = _find(held, stem, start)
        batch = reader.get_batch(place)
    if batch.num_rows != this["rows"]:
        raise ValueError(f"{batch.num_rows} rows where {this['rows']} were written")
    if len(held) > 1:
        # Some of the rows may lie where they were read; the others must not be kept with them.
        batch = batch.take(pa.arange(0, batch.num_rows))
    batch = batch.replace_schema_metadata(None)
    return Segment(this["queue"], start, this["end"], batch, this["written_at"], this["run"])


def _find(held: Sequence[dict[str, Any]], stem: str, start: int) -> tuple[int, dict[str, Any]]:
    for place, each in enumerate(held):
        if each["start"] == start and stem_of(each["queue"]) == stem:
            return place, each
    raise ValueError("it holds another segment than its name says")


# -- the checksum --------------------------------------------------------------------------------
def _sums(data: bytes | bytearray) -> tuple[int, int]:
    """Where the checksum stands: in front of all rows, and behind them."""
    first, last = data.find(_SUM), data.rfind(_SUM)
    if first < 0:
        raise ValueError("it has no checksum")
    return first + len(_SUM), last + len(_SUM)


def _check_sum(data: bytes) -> None:
    first, last = _sums(data)
    size = len(_NO_SUM)
    view = memoryview(data)
    total = zlib.crc32(view[:first])
    total = zlib.crc32(_NO_SUM, total)
    if last > first:
        total = zlib.crc32(view[first + size : last], total)
        total = zlib.crc32(_NO_SUM, total)
    total = zlib.crc32(view[last + size :], total)
    if data[first : first + size] != b"%08x" % total:
        raise ValueError("its checksum is wrong")
