"""A batch as one blob, and back: what there is little of as JSON, entries as columns.

    checksum of all that follows, length of the JSON, the JSON, the columns, the contents

All numbers are little-endian. A column that is all zeros is left out.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from warren.store.base import Batch, Put, as_row

_HEAD = Struct("<II")
#: Size, expiry, times given back, transient, shared: the columns a row begins with.
_KINDS = ("Q", "Q", "I", "B", "Q")
#: All of them but the size, of entries without any.
_NOTHING: tuple[tuple[int, ...], ...] = ((),) * 4


def pack_batch(batch: Batch) -> bytearray:
    """All of a batch."""
    puts = batch.puts
    count = len(puts)
    table = _rows_as_columns(puts) if _has_rows(puts) else _plain_as_columns(puts)
    addresses = {place: number for number, place in enumerate(dict.fromkeys(table.places))}
    columns: list[tuple[str, Iterable[int]]] = [("Q", puts)]
    for kind, column in zip(_KINDS, table.numbers, strict=True):
        columns.append((kind, column) if any(column) else ("", ()))
    columns.append(("I", map(addresses.__getitem__, table.places)))
    columns.append(("I", map(len, table.contents)))
    rest = {
        "count": count,
        "kinds": [kind for kind, _ in columns],
        "addresses": list(map(table.name, addresses)),
        "shared": [[key, *value[:2], len(value[2])] for key, value in batch.shared.items()],
        "deletes": runs(batch.deletes),
        "cuts": batch.cuts,
        "references": list(batch.references.items()),
        "returns": list(batch.returns.items()),
        "marks": list(batch.marks.items()),
        "definitions": [[*key, value] for key, value in batch.definitions.items()],
    }
    text = json.dumps(rest, separators=(",", ":")).encode()
    parts = [bytes(_HEAD.size), text]
    parts += [_pack(kind, column) for kind, column in columns if kind]
    parts += table.contents
    parts += [value[2] for value in batch.shared.values()]
    blob = bytearray().join(parts)
    with memoryview(blob) as view:
        _HEAD.pack_into(blob, 0, zlib.crc32(view[_HEAD.size :]), len(text))
    return blob


def _pack(kind: str, column: Iterable[int]) -> bytes:
    numbers = array(kind, column)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


class _Columns(NamedTuple):
    """Entries side by side: a list for each thing that is to be said of them."""

    #: As ``_KINDS`` has them.
    numbers: Sequence[Sequence[int]]
    #: Where they were published, and how such a place is called.
    places: Sequence[Any]
    name: Callable[[Any], tuple[str | None, str | None]]
    contents: list[bytes]


def _has_rows(puts: dict[int, Put]) -> bool:
    return tuple in set(map(type, puts.values()))


def _plain_as_columns(puts: dict[int, Put]) -> _Columns:
    """Messages of the same publisher mostly have the same address: one is looked up by itself."""
    plain: list[Any] = list(puts.values())
    sizes = [put.body_size for put in plain]
    places = [put.address for put in plain]
    contents = [put.content for put in plain]
    return _Columns((sizes, *_NOTHING), places, attrgetter("exchange", "routing_key"), contents)


def _rows_as_columns(puts: dict[int, Put]) -> _Columns:
    *numbers, exchanges, routing_keys, contents = zip(*map(as_row, puts.values()), strict=True)
    places = list(zip(exchanges, routing_keys, strict=True))
    return _Columns(numbers, places, tuple, [content or b"" for content in contents])


def unpack_batch(number: int, blob: bytes) -> Batch:
    """The batch of a blob.

    Raises:
        ValueError: the blob is not as it was packed.
    """
    if len(blob) < _HEAD.size:
        raise ValueError("it is cut short")
    checksum, at = _HEAD.unpack_from(blob)
    if zlib.crc32(memoryview(blob)[_HEAD.size :]) != checksum:
        raise ValueError("its checksum is wrong")
    at += _HEAD.size
    rest = json.loads(blob[_HEAD.size : at])
    count = rest["count"]
    columns: list[tuple[int, ...]] = []
    for kind in rest["kinds"]:
        column = unpack_from(f"<{count}{kind}", blob, at) if kind else (0,) * count
        at += Struct(f"<{count}{kind}").size if kind else 0
        columns.append(column)
    keys, *numbers, places, sizes = columns
    contents: list[bytes] = []
    for size in (*sizes, *(each[3] for each in rest["shared"])):
        contents.append(blob[at : at + size])
        at += size
    addresses = [tuple(address) for address in rest["addresses"]]
    return Batch(
        number,
        puts=_rows(keys, numbers, [addresses[place] for place in places], contents),
        deletes=[key for first, last in rest["deletes"] for key in range(first, last + 1)],
        cuts=[(first, last) for first, last in rest["cuts"]],
        shared={
            key: (exchange, routing_key, content)
            for (key, exchange, routing_key, _), content in zip(
                rest["shared"], contents[count:], strict=True
            )
        },
        references=dict(rest["references"]),
        returns=dict(rest["returns"]),
        marks=dict(rest["marks"]),
        definitions={(kind, key): value for kind, key, value in rest["definitions"]},
    )


def _rows(
    keys: tuple[int, ...],
    numbers: list[tuple[int, ...]],
    addresses: list[tuple[Any, ...]],
    contents: list[bytes],
) -> dict[int, Put]:
    """Entries from their columns; one that shares its message has no content of its own."""
    return {
        key: (*row, *address, None if row[4] else content)
        for key, row, address, content in zip(
            keys, zip(*numbers, strict=True), addresses, contents, strict=False
        )
    }


def runs(ids: list[int]) -> list[tuple[int, int]]:
    """Ids as stretches without a gap: acknowledgements mostly come in order."""
    found: list[tuple[int, int]] = []
    first = last = -1
    for number in sorted(ids):
        if number == last + 1 and last >= 0:
            last = number
            continue
        if last >= 0:
            found.append((first, last))
        first = last = number
    if last >= 0:
        found.append((first, last))
    return found
