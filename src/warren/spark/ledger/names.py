"""What a ledger's files are called."""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote

SEGMENT, SETTLED, UNORDERED = ".arrow", ".settled", ".unordered"
#: Marks the first that is kept.
FORGOTTEN = ".forgotten"
_SUFFIXES = (SEGMENT, SETTLED, UNORDERED, FORGOTTEN)
#: Octets of a file name that most file systems take, less what stands behind the queue's name.
_LONGEST = 200


def stem_of(queue: str) -> str:
    """The queue's name as it stands in its files' names."""
    stem = quote(queue, safe=" ")
    if len(stem) > _LONGEST:
        # Cut, and told apart by a digest; the whole name is inside the segment.
        digest = hashlib.blake2b(queue.encode(), digest_size=8).hexdigest()
        stem = f"{stem[:_LONGEST].rpartition('%')[0] or stem[:_LONGEST]}~{digest}"
    return stem


def name_of(stem: str, start: int, suffix: str) -> str:
    return f"{stem}@{start:020d}{suffix}"


def file_name(queue: str, start: int, suffix: str) -> str:
    return name_of(stem_of(queue), start, suffix)


def parse_name(name: str) -> tuple[str, int, str] | None:
    """Stem, start and suffix of a file's name; None if it is another file."""
    stem, _, rest = name.rpartition("@")
    digits, dot, kind = rest.partition(".")
    suffix = dot + kind
    if not stem or suffix not in _SUFFIXES or not digits.isdigit():
        return None
    return stem, int(digits), suffix


def queue_of(stem: str) -> str:
    """The queue's name; a long one is cut."""
    return unquote(stem)
