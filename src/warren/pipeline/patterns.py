"""Which messages a table takes: patterns as regular expressions, for Java and Python alike."""

from __future__ import annotations

import re
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as f

from warren.pipeline.model import Take

_SPECIAL = re.compile(r"([^A-Za-z0-9_])")


def glob_regex(pattern: str) -> str:
    """``*`` is any text, ``?`` any letter, as in the option ``queues``; to be matched in full."""
    parts = {"*": "(?s:.*)", "?": "(?s:.)"}
    return "".join(parts.get(letter) or _literal(letter) for letter in pattern)


def topic_regex(pattern: str) -> str:
    """A topic exchange's: ``*`` is a word, ``#`` any number of words, dots are between them.

    To be matched in full with the key's words, each with a dot before it.
    """
    parts = {"*": r"\.[^.]*", "#": r"(?:\.[^.]*)*"}
    words = pattern.split(".") if pattern else []
    return "".join(parts.get(word) or rf"\.{_literal(word)}" for word in words)


def dotted(routing_key: Column) -> Column:
    """The words of a key, each with a dot before it; the empty key has none."""
    return f.when(routing_key == "", "").otherwise(f.concat(f.lit("."), routing_key))


def takes(take: Take) -> Column:
    """True for the messages that are meant; never null."""
    tests = [
        _fits(column, [make(pattern) for pattern in patterns])
        for column, patterns, make in (
            (f.col("type"), take.type, glob_regex),
            (dotted(f.col("routing_key")), take.routing_key, topic_regex),
            (f.col("queue"), take.queue, glob_regex),
            (f.col("app_id"), take.app_id, glob_regex),
        )
        if patterns
    ]
    # A property that is not there fits no pattern: compared with null, it would be neither.
    return f.coalesce(reduce(and_, tests, f.lit(True)), f.lit(False))


def _fits(column: Column, patterns: list[str]) -> Column:
    return reduce(or_, (column.rlike(rf"^(?:{pattern})\z") for pattern in patterns))


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
