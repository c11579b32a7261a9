"""What Spark is told, as far as it can be judged before Java runs: that complains with a stack."""

from __future__ import annotations

import re

_MASTER = re.compile(
    r"local|local\[(\d+|\*)(,\s*\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^/\s]+:\d+(,[^/\s]+:\d+)*|yarn|k8s://\S+"
)
#: As Spark reads sizes: no fractions.
_SIZE = re.compile(r"\d+\s*([bkmgtp]|[kmgtp]i?b)?", re.IGNORECASE)
_SIZES = (".memory", ".memoryoverhead", ".maxresultsize")


def wrong_master(master: str) -> str | None:
    """What is wrong with a master, if something is."""
    if _MASTER.fullmatch(master):
        return None
    return (
        f"'{master}' is no master of Spark's; there are local[2], spark://host:7077, yarn, k8s://"
    )


def wrong_setting(name: str, value: str) -> str | None:
    """What is wrong with one of Spark's settings, if something is."""
    if name.lower().endswith(_SIZES) and not _SIZE.fullmatch(value):
        return f"{name}: '{value}' is no size; write 512m or 4g"
    return None
