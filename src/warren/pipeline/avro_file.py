"""Avro's object container file with one record in it, as some send it for a message."""

from __future__ import annotations

from warren.content_encoding import expand
from warren.errors import DecodeFailed
from warren.pipeline.avro_datum import read_long, read_octets

MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
#: The file's codec -> the content-encoding that is the same.
_CODECS = {"null": "identity", "deflate": "deflate", "zstandard": "zstd"}


def open_container(body: bytes) -> tuple[str, bytes]:
    """The schema in JSON and the datum of a file that holds one record.

    Raises:
        ValueError: it is no such file, or holds none or several.
        PackageMissing: it is packed with zstd, and the package for that is not installed.
    """
    try:
        meta, at = _metadata(body, len(MAGIC))
        schema = meta["avro.schema"].decode()
        codec = meta.get("avro.codec", b"null").decode()
    except KeyError:
        raise ValueError("the file has no schema") from None
    except IndexError:
        raise ValueError("the file ends too early") from None
    if codec not in _CODECS:
        raise ValueError(f"the file's codec '{codec[:40]}' is not known")
    data = _only_record(body, at)
    try:
        return schema, expand(data, _CODECS[codec])
    except DecodeFailed as error:
        raise ValueError(f"the file's block is {error}") from None


def _metadata(body: bytes, at: int) -> tuple[dict[str, bytes], int]:
    found: dict[str, bytes] = {}
    while True:
        count, at = read_long(body, at)
        if count == 0:
            return found, at
        if count < 0:
            _, at = read_long(body, at)
        for _ in range(abs(count)):
            key, at = read_octets(body, at)
            found[key.decode()], at = read_octets(body, at)


def _only_record(body: bytes, at: int) -> bytes:
    """The one record's octets, packed as they are."""
    sync = body[at : at + _SYNC_SIZE]
    at += _SYNC_SIZE
    records, data = 0, b""
    try:
        while at < len(body):
            count, at = read_long(body, at)
            block, at = read_octets(body, at)
            if count < 0 or body[at : at + _SYNC_SIZE] != sync:
                raise ValueError("the file is damaged")
            at += _SYNC_SIZE
            records += count
            data = block if count else data
    except IndexError:
        raise ValueError("the file ends too early") from None
    if records != 1:
        raise ValueError(f"the file holds {records or 'no'} records, a message is one")
    return data
