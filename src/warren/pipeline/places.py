"""Folders that a pipeline's file names: where they are, and which of them are the same."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?((?<=[^/:])|/.*)")
#: Names of one file system.
_SAME = {"s3": "s3a", "s3n": "s3a", "abfss": "abfs", "az": "abfs", "gcs": "gs", "wasbs": "wasb"}


def place(path: str, here: Path) -> str:
    """A folder as Spark is told it: from ``here``, unless it says where from.

    Raises:
        ValueError: nobody can tell where it is.
    """
    if match := _URI.fullmatch(path):
        scheme, host, inside = match.groups()
        if scheme.lower() == "file":
            host = _no_host(path, host)
        return f"{scheme}://{host or ''}{inside if host else _one_slash(inside)}"
    if path.lower().startswith("file:"):
        _no_host(path, path)
    local = os.path.expanduser(path)
    if local.startswith("~"):
        user = path.partition("/")[0]
        raise ValueError(f"{user} is nobody's home; for a folder of this name, write ./{path}")
    return _one_slash(str((here / local).absolute()))


def same(places: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Two names whose folders are one, of names and folders; the later one first."""
    seen: dict[str, str] = {}
    for name, path in places:
        other = seen.setdefault(_normal(path), name)
        if other != name:
            return name, other
    return None


def _no_host(path: str, host: str | None) -> str:
    if host in (None, "", "localhost"):
        return ""
    raise ValueError(f"{path} is on no machine; write file:///{path[5:].lstrip('/')}")


def _normal(path: str) -> str:
    """What is equal for all the ways to write a folder.

    Without a host, a file system is the one that Spark has by default, which may be any.
    """
    match = _URI.fullmatch(path)
    scheme, host, inside = match.groups() if match else ("", "", path)
    inside = posixpath.normpath(_one_slash(inside or "/"))
    if not host:
        return os.path.realpath(inside)
    scheme = scheme.lower()
    return f"{_SAME.get(scheme, scheme)}://{host.lower()}{inside}"


def _one_slash(path: str) -> str:
    """Two at the beginning would be a host's to Spark."""
    return re.sub("^/+", "/", path)
