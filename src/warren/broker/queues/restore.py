"""Entries as they come back from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warren.amqp.content import HEADER_START, properties_of
from warren.broker.inspection import inspect
from warren.broker.message import Address, Message, Traits
from warren.broker.queues.ready import Entry
from warren.store.base import Row

if TYPE_CHECKING:
    from warren.broker.journal import Journal

_IMPERSONATOR = True  # whose message it was has been checked when it was published


def restore_entry(journal: Journal, position: int, row: Row, seen_before: int) -> Entry:
    """An entry, with its message held once; what was given out before is flagged redelivered."""
    exchange, routing_key, content, expires_at, returns, shared = row
    assert content is not None
    message = restore_message(exchange or "", routing_key or "", content)
    message.shared = shared
    message.holders = 1
    journal.held(len(content))
    if position <= seen_before:
        returns = max(1, returns)
    deadline = journal.to_deadline_ms(expires_at) if expires_at else 0
    return position, message, deadline, returns


def restore_message(exchange: str, routing_key: str, content: bytes) -> Message:
    """A message from its content frames."""
    read = inspect(properties_of(content), "", impersonator=_IMPERSONATOR)
    traits = Traits()
    traits.priority, traits.copies = read.priority, read.copies
    traits.persistent = True  # it lies in the store
    body_size = HEADER_START.unpack_from(content, 7)[2]
    channel = int.from_bytes(content[1:3], "big")
    return Message(Address(exchange, routing_key), content, traits, body_size, channel)
