"""A ledger's path as people write it."""

from __future__ import annotations

import os
import re

_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/(?!/))")


def whole(path: str) -> str:
    """The whole path, or a URI; raises ValueError for a URI that lacks a slash.

    Spark and Hadoop take ``file:/data``, too. A relative path begins where this process does.
    """
    if begins := _ONE_SLASH.match(path):
        scheme = begins[1]
        if scheme.lower() != "file":
            raise ValueError(
                f"'{scheme}:/' is a folder here, called so: write {scheme}://HOST/PATH, or a path "
                "that every executor sees"
            )
        path = path[begins.end() :]
    return path if "://" in path else os.path.abspath(path)
