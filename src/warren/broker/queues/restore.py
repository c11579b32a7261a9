"""Entries as they come back from the store."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING

from warren.amqp.content import properties_of
from warren.broker.inspection import inspect
from warren.broker.message import OVERHEAD, Address, Message, Traits
from warren.broker.queues.ready import Entry
from warren.store.base import Row

if TYPE_CHECKING:
    from warren.broker.journal import Journal

_IMPERSONATOR = True  # whose message it was has been checked when it was published


def restore_entry(journal: Journal, position: int, row: Row, seen_before: int) -> Entry:
    """An entry, with its message held once; what was given out before is flagged redelivered."""
    _, expires_at, returns, _, shared, _, _, content = row
    assert content is not None
    message = restore_message(row)
    message.shared = shared
    message.holders = 1
    journal.held(len(content) + OVERHEAD)
    if position <= seen_before:
        returns = max(1, returns)
    deadline = journal.to_deadline_ms(expires_at) if expires_at else 0
    return position, message, deadline, returns


def stored(message: Message) -> Message:
    """A copy of a transient message that lies in the store nevertheless."""
    traits = copy(message.traits)
    traits.persistent = True
    return message.with_traits(traits)


def restore_message(row: Row) -> Message:
    """The message of a row, as it was published."""
    body_size, _, _, _, _, exchange, routing_key, content = row
    assert exchange is not None
    assert routing_key is not None
    assert content is not None
    traits = _traits(properties_of(content))
    channel = content[1] << 8 | content[2]
    return Message(_address(exchange, routing_key), content, traits, body_size, channel)


# Messages of a queue mostly have the same address and the same properties.
_address = lru_cache(1024)(Address)


@lru_cache(1024)
def _traits(properties: bytes) -> Traits:
    read = inspect(properties, "", impersonator=_IMPERSONATOR)
    traits = Traits()
    traits.priority, traits.copies = read.priority, read.copies
    traits.persistent = True  # it lies in the store
    return traits
