"""What kind of queue it is, asked over AMQP alone.

A queue can't be asked for its arguments, but a declaration that does not match is refused with
the first argument that differs, and its value. So: look that it is there, declare it as it might
be, correct what the refusal says, and go on until it matches or the answer is known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from warren.errors import NotFound, PreconditionFailed, Refusal

if TYPE_CHECKING:
    from warren.client import Connection

_DIFFERS = re.compile(
    r"inequivalent arg '(?P<name>[^']+)' .*: received .* but current is "
    r"(?:none|'(?P<flag>true|false)'|the value '(?P<value>.*)' of type '(?P<type>\w+)')"
)
_FLAGS = ("durable", "auto_delete", "exclusive")
#: More arguments than this no queue has.
_TRIES = 20


async def is_single_active(connection: Connection, queue: str) -> bool:
    """Whether a queue has one active consumer at a time. False also if that can't be found out."""
    options: dict[str, Any] = {"durable": True, "arguments": {"x-single-active-consumer": True}}
    for _ in range(_TRIES):
        try:
            async with await connection.channel(prefetch=0, confirms=False) as channel:
                await channel.declare_queue(queue, passive=True)
                await channel.declare_queue(queue, **options)
            return True
        except PreconditionFailed as refusal:
            found = _DIFFERS.search(str(refusal))
            if found is None or found["name"] == "x-single-active-consumer":
                return False
            _correct(options, found)
        except (NotFound, Refusal):
            return False
    return False


def _correct(options: dict[str, Any], found: re.Match[str]) -> None:
    name = found["name"]
    if name in _FLAGS:
        options[name] = found["flag"] == "true"
    elif found["value"] is None:
        options["arguments"].pop(name, None)
    else:
        options["arguments"][name] = _value(found["value"], found["type"])


def _value(text: str, kind: str) -> Any:
    if kind == "bool":
        return text == "true"
    return text if kind == "longstr" else int(text)
