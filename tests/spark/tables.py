"""What a streaming query has written to Parquet, read without Spark: only what it has committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq


def committed_files(folder: Path) -> list[Path]:
    """The files that the sink's own log names: a killed task may have left others."""
    log = folder / "_spark_metadata"
    if not log.is_dir():
        return []
    batches = {path.stem: path for path in log.iterdir() if not path.name.startswith(".")}
    compacts = [int(path.stem) for path in batches.values() if path.suffix == ".compact"]
    first = max(compacts, default=-1)
    files: list[Path] = []
    for number, path in sorted((int(stem), path) for stem, path in batches.items()):
        if number >= first:
            lines = path.read_text().splitlines()[1:]
            files += [Path(unquote(urlsplit(json.loads(line)["path"]).path)) for line in lines]
    return files


def batches(folder: Path) -> list[list[list[dict[str, Any]]]]:
    """The rows of each micro-batch that had any, file by file: one for each task.

    Only of a young table: Spark puts the log of ten batches into one file.
    """
    logs = sorted((folder / "_spark_metadata").glob("[0-9]*"), key=lambda log: int(log.name))
    named = [
        [json.loads(line)["path"] for line in log.read_text().splitlines()[1:]] for log in logs
    ]
    paths = [[Path(unquote(urlsplit(each).path)) for each in batch] for batch in named if batch]
    return [[pq.ParquetFile(path).read().to_pylist() for path in batch] for batch in paths]


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows, by queue and offset."""
    found: list[dict[str, Any]] = []
    for path in committed_files(folder):
        found += pq.ParquetFile(path).read().to_pylist()
    return sorted(found, key=lambda row: (row["queue"], row["offset"]))


def numbers(folder: Path, queue: str | None = None) -> list[int]:
    """The bodies, as numbers."""
    return [int(row["body"]) for row in rows(folder) if queue in (None, row["queue"])]


class GrowingTable:
    """A table that is looked at often: what is committed does not change, and is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: dict[Path, int] = {}
        #: What ``count`` said last.
        self.last_count = 0

    def count(self) -> int:
        """How many rows there are now."""
        files = committed_files(self._folder)
        for path in files:
            if path not in self._counts:
                self._counts[path] = pq.read_metadata(path).num_rows
        self.last_count = sum(self._counts[path] for path in files)
        return self.last_count

    def numbers(self) -> dict[str, list[int]]:
        """The bodies as numbers, of each queue, in the order of offsets."""
        return {queue: [number for number, _ in rows] for queue, rows in self.sums().items()}

    def sums(self) -> dict[str, list[tuple[int, int]]]:
        """The same, each with the sum beside it."""
        found: dict[str, list[tuple[int, int, int]]] = {}
        for path in committed_files(self._folder):
            columns = pq.ParquetFile(path).read(["queue", "offset", "body", "sum"]).to_pydict()
            for queue, offset, body, total in zip(*columns.values(), strict=True):
                found.setdefault(queue, []).append((offset, int(body), total))
        return {
            queue: [(number, total) for _, number, total in sorted(rows)]
            for queue, rows in found.items()
        }
