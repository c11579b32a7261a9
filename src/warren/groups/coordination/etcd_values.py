"""What etcd's JSON gateway says, as values: entries, events, comparisons, operations."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A key and its value; ``mod_revision`` grows with every change of it."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int
    lease: int


@dataclass(frozen=True)
class Event:
    """A key that was set, or deleted (no ``entry``)."""

    key: str
    entry: Entry | None


@dataclass(frozen=True)
class Listing:
    entries: Mapping[str, Entry]
    revision: int
    cluster_id: str


@dataclass(frozen=True)
class Batch:
    """Events that happened up to a revision, in their order."""

    events: tuple[Event, ...]
    revision: int
    cluster_id: str


@dataclass(frozen=True)
class Outcome:
    """Whether a transaction's comparisons held, and what its reads found."""

    succeeded: bool
    found: tuple[Entry, ...]
    revision: int


# -- parts of a transaction ----------------------------------------------------------------------
def is_absent(key: str) -> Json:
    return _compare(key, target="VERSION", version=0)


def is_present(key: str) -> Json:
    return {**_compare(key, target="VERSION", version=0), "result": "GREATER"}


def is_unchanged(key: str, mod_revision: int) -> Json:
    """Nobody has set or deleted the key since that revision."""
    return _compare(key, target="MOD", mod_revision=mod_revision)


def is_created_at(key: str, create_revision: int) -> Json:
    """It is still the same incarnation of the key: a lock's fencing number."""
    return _compare(key, target="CREATE", create_revision=create_revision)


def is_under(key: str, lease: int) -> Json:
    return _compare(key, target="LEASE", lease=lease)


def is_empty(prefix: str) -> Json:
    """No key begins so."""
    return {**is_absent(prefix), "range_end": range_end(prefix)}


def is_not_empty(prefix: str) -> Json:
    return {**is_present(prefix), "range_end": range_end(prefix)}


def has_value(key: str, value: str | bytes) -> Json:
    return _compare(key, target="VALUE", value=encode(value))


def _compare(key: str, **what: Any) -> Json:
    return {"key": encode(key), "result": "EQUAL", **what}


def put(key: str, value: str | bytes, *, lease: int = 0) -> Json:
    return {"request_put": {"key": encode(key), "value": encode(value), "lease": lease}}


def delete(key: str) -> Json:
    return {"request_delete_range": {"key": encode(key)}}


def delete_all(prefix: str) -> Json:
    return {"request_delete_range": {"key": encode(prefix), "range_end": range_end(prefix)}}


def only_if(compare: Json, then: Json) -> Json:
    """A transaction within the transaction."""
    return {"request_txn": {"compare": [compare], "success": [then]}}


def get(key: str) -> Json:
    return {"request_range": {"key": encode(key)}}


# -- the gateway's spelling ----------------------------------------------------------------------
def encode(value: str | bytes) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def range_end(prefix: str) -> str:
    """The first key after all that begin with ``prefix``."""
    raw = prefix.encode().rstrip(b"\xff")
    return encode(raw[:-1] + bytes([raw[-1] + 1]) if raw else b"\0")


def decode_entry(told: Json) -> Entry:
    return Entry(
        base64.b64decode(told["key"]).decode(errors="surrogateescape"),
        base64.b64decode(told.get("value", "")),
        int(told.get("create_revision", 0)),
        int(told.get("mod_revision", 0)),
        int(told.get("lease", 0)),
    )


def decode_events(told: Iterable[Json]) -> tuple[Event, ...]:
    events = []
    for each in told:
        entry = decode_entry(each["kv"])
        events.append(Event(entry.key, None if each.get("type") == "DELETE" else entry))
    return tuple(events)
