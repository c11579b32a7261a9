"""The tables of the store's file, and how a batch gets into them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

from warren.store.base import LAST_POSITION, POSITION_BITS, Batch, Put
from warren.store.packing import runs

FORMAT = 2
#: Marks the file as ours ("WRRN").
APPLICATION_ID = 0x5752524E
_CHUNKS = (1000, 100, 10, 1)

# What recovery sums up stands before the content: a long one lies on pages of its own.
SCHEMA = f"""
PRAGMA page_size=8192;
PRAGMA application_id={APPLICATION_ID};
PRAGMA user_version={FORMAT};
BEGIN;
CREATE TABLE journal (id INTEGER PRIMARY KEY, batch BLOB NOT NULL);
CREATE TABLE definitions (kind TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (kind, key))
  WITHOUT ROWID;
CREATE TABLE entries (id INTEGER PRIMARY KEY, size INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  returns INTEGER NOT NULL, transient INTEGER NOT NULL, shared INTEGER NOT NULL,
  exchange TEXT, routing_key TEXT, content BLOB);
CREATE INDEX transient_entries ON entries (id) WHERE transient;
CREATE TABLE shared (id INTEGER PRIMARY KEY, entries INTEGER NOT NULL,
  exchange TEXT, routing_key TEXT, content BLOB);
CREATE INDEX unshared ON shared (id) WHERE entries <= 0;
CREATE TABLE marks (log INTEGER PRIMARY KEY, mark INTEGER NOT NULL);
COMMIT;
"""


def apply_batch(connection: sqlite3.Connection, batch: Batch) -> None:
    """Make a batch's changes, inside a transaction of the caller's."""
    execute, execute_many = connection.execute, connection.executemany
    if batch.shared:
        rows = [(key, 0, *values) for key, values in batch.shared.items()]
        _insert(connection, "shared", rows, "(?,?,?,?,?)")
    if batch.puts:
        _put(connection, batch.puts)
    execute_many("DELETE FROM entries WHERE id BETWEEN ? AND ?", runs(batch.deletes))
    for first, last in batch.cuts:
        _cut(connection, first, last)
    execute_many(
        "UPDATE shared SET entries = entries + ? WHERE id = ?",
        [(change, key) for key, change in batch.references.items()],
    )
    if batch.references or batch.cuts:
        execute("DELETE FROM shared WHERE entries <= 0")
    execute_many(
        "UPDATE entries SET returns = ? WHERE id = ?",
        [(returns, key) for key, returns in batch.returns.items()],
    )
    execute_many("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(batch.marks.items()))
    for (kind, name), value in batch.definitions.items():
        if value is None:
            execute("DELETE FROM definitions WHERE kind = ? AND key = ?", (kind, name))
        else:
            execute("INSERT OR REPLACE INTO definitions VALUES (?, ?, ?)", (kind, name, value))


def drop_transient(connection: sqlite3.Connection) -> None:
    """Entries that were written for want of memory only don't outlive the broker."""
    _unshare(connection, "transient")
    connection.execute("DELETE FROM entries WHERE transient")
    connection.execute("DELETE FROM shared WHERE entries <= 0")


def _put(connection: sqlite3.Connection, puts: dict[int, Put]) -> None:
    """Most entries have nothing but an address and a content: the rest of them is zeros."""
    plain: list[tuple[Any, ...]] = []
    full: list[tuple[Any, ...]] = []
    for key, put in puts.items():
        if not isinstance(put, tuple):
            address = put.address
            plain.append((key, put.body_size, address.exchange, address.routing_key, put.content))
        elif any(put[1:5]):
            full.append((key, *put))
        else:
            plain.append((key, put[0], *put[5:]))
    _insert(connection, "entries", plain, "(?,?,0,0,0,0,?,?,?)")
    _insert(connection, "entries", full, "(?,?,?,?,?,?,?,?,?)")


def _insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]], one: str
) -> None:
    # Many a statement: each statement gives up the interpreter's lock once, and a thread that
    # gives it up for every row would crawl beside a busy event loop.
    waiting = iter(rows)
    rest: list[tuple[Any, ...]] = []
    for size in _CHUNKS:
        statement = f"INSERT INTO {table} VALUES {','.join([one] * size)}"
        while len(rest := rest or list(islice(waiting, size))) >= size:
            connection.execute(statement, list(chain(*rest[:size])))
            rest = rest[size:]


def _cut(connection: sqlite3.Connection, first: int, last: int) -> None:
    _unshare(connection, "id BETWEEN ? AND ?", (first, last))
    connection.execute("DELETE FROM entries WHERE id BETWEEN ? AND ?", (first, last))
    if last & LAST_POSITION == LAST_POSITION:
        connection.execute("DELETE FROM marks WHERE log = ?", (first >> POSITION_BITS,))


def _unshare(connection: sqlite3.Connection, which: str, values: tuple[int, ...] = ()) -> None:
    """Entries are about to go: messages they share have so many less."""
    connection.execute(
        "UPDATE shared SET entries = shared.entries - gone.many FROM (SELECT shared AS id,"
        f" count(*) AS many FROM entries WHERE {which} AND shared != 0 GROUP BY shared) AS gone"
        " WHERE gone.id = shared.id",
        values,
    )
