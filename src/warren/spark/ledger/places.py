"""Which file system a ledger's path means."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from pyarrow import fs as arrow_fs

from warren.errors import ConfigError
from warren.spark.ledger.files import ArrowFiles, Files, LocalFiles, explained
from warren.spark.ledger.objects import object_files
from warren.spark.ledger.paths import whole


def open_files(path: str) -> Files:
    """The files at a path or URI; raises ConfigError."""
    try:
        path = whole(path)
    except ValueError as error:
        raise ConfigError("ledger", str(error)) from None
    scheme = urlsplit(path).scheme if "://" in path else ""
    if scheme in ("", "file"):
        return LocalFiles(unquote(urlsplit(path).path) if scheme else path)
    if scheme in ("hdfs", "viewfs"):
        with explained(path):
            filesystem, folder = arrow_fs.FileSystem.from_uri(path)
        return ArrowFiles(filesystem, folder, path)
    return object_files(path, scheme)
