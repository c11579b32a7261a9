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


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows, by queue and offset."""
    found: list[dict[str, Any]] = []
    for path in committed_files(folder):
        found += pq.ParquetFile(path).read().to_pylist()
    return sorted(found, key=lambda row: (row["queue"], row["offset"]))


def numbers(folder: Path, queue: str | None = None) -> list[int]:
    """The bodies, as numbers."""
    return [int(row["body"]) for row in rows(folder) if queue in (None, row["queue"])]
