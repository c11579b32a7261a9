"""``NAME=VALUE`` on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from warren.errors import ConfigError


def pairs(texts: Iterable[str], option: str) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(option, f"{text!r} is not like NAME=VALUE")
        yield name, value


def value_of(text: str) -> Any:
    """JSON where it is JSON, text where it is not: ``5``, ``true``, ``hello``."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if value is None else value
