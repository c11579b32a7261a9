"""Where a message goes that a queue gives up: x-death, first-death headers, cycles.

Rules after RabbitMQ's: one x-death entry for each pair of queue and reason, the newest in front,
counted up when it happens again; the first death is also told in headers of its own; the
per-message expiration is taken off (and kept in the entry), so that the message does not expire
again; a message that would return to a queue without ever having been rejected on the way is
dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren.amqp.tables import (
    Timestamp,
    decode_integer,
    encode_value,
    join_array,
    join_table,
    raw,
    split_array,
    split_table,
    text,
)
from warren.broker.message import Address, Message, Traits

if TYPE_CHECKING:
    from warren.broker.queues.queue import Queue
    from warren.broker.queues.ready import Entry

#: One entry of x-death, its values still as they lie on the wire: chains of queues can be long.
Death = dict[str, bytes]
_REJECTED = encode_value("rejected")


def dead_letter(queue: Queue, message: Message, reason: str, entry: Entry | None = None) -> None:
    """Give a message up, and with it the entry that it is in.

    It goes on when the broker settles: chains of queues need no stack. Until then the entry stays
    in the store, so that the batch that forgets it is the one that has the letter.
    """
    if queue.settings.dead_letter_exchange is not None:
        queue.core.dead_letters.append((queue, message, reason, entry))
    elif entry is not None:
        queue.done_with(entry)


def send_letter(queue: Queue, message: Message, reason: str, entry: Entry | None) -> None:
    """Publish a message to its queue's dead-letter exchange; then its entry is done with."""
    settings, vhost = queue.settings, queue.vhost
    exchange = vhost.exchanges.get(settings.dead_letter_exchange or "")
    key = settings.dead_letter_routing_key
    if exchange is not None and (key is None or len(raw(key)) <= 255):
        now_s = vhost.core.clock.wall_ms() // 1000
        letter, deaths = make_letter(
            message, queue.name, reason, now_s, exchange=exchange.name, routing_key=key
        )
        keys = (letter.address.routing_key, *letter.traits.copies)
        targets = vhost.route(exchange, keys, letter)
        if reason != "rejected":
            targets = [target for target in targets if not _is_cycle(target.name, deaths)]
        vhost.deliver(letter, targets)
    if entry is not None:
        if queue.deleted:
            queue.core.release(message)
        else:
            queue.done_with(entry)


def make_letter(
    message: Message,
    queue: str,
    reason: str,
    now_s: int,
    *,
    exchange: str,
    routing_key: str | None,
) -> tuple[Message, list[Death]]:
    """The message as it is dead-lettered, and its deaths, the newest first."""
    entries = message.raw_headers
    fresh: dict[str, Any] = {
        "count": 1,
        "reason": reason,
        "queue": queue,
        "time": Timestamp(now_s),
        "exchange": message.address.exchange,
        "routing-keys": [message.address.routing_key, *_copies(entries)],
    }
    expiration = message.property("expiration")
    if expiration is not None:
        fresh["original-expiration"] = expiration
    raw_fresh = {key: encode_value(value) for key, value in fresh.items()}
    raw_fresh["count"] = encode_value(1, "long")
    if "x-death" not in entries:
        for key in ("reason", "queue", "exchange"):
            entries[f"x-first-death-{key}"] = raw_fresh[key]
    deaths = _with_death(entries.get("x-death"), raw_fresh)
    entries["x-death"] = join_array([b"F" + join_table(death) for death in deaths])
    copies: tuple[str, ...] = message.traits.copies
    if routing_key is not None:
        entries.pop("CC", None)
        copies = ()
    traits = Traits()
    traits.priority = message.traits.priority
    # By its own word: a transient message may lie on disk for the sake of its queue.
    traits.persistent = message.parts.get("delivery_mode") == b"\x02"
    traits.copies = copies
    key = message.address.routing_key if routing_key is None else routing_key
    letter = message.with_headers(
        dict(sorted(entries.items())),
        without="expiration",
        address=Address(exchange, key),
        traits=traits,
    )
    return letter, deaths


def _copies(entries: dict[str, bytes]) -> list[str]:
    keys: list[str] = []
    for name in ("CC", "BCC"):
        value = entries.get(name, b"")
        if value.startswith(b"A"):
            keys += [text(item[5:]) for item in split_array(value[5:]) if item.startswith(b"S")]
    return keys


def _with_death(old: bytes | None, fresh: Death) -> list[Death]:
    """The list of deaths with a new one in front, or with its like counted up."""
    if old is None or not old.startswith(b"A"):
        # Some clients turn headers into strings before they publish again: begin anew.
        return [fresh]
    items = split_array(old[5:])
    # What is no entry at all stays out.
    grouped = _grouped([split_table(item[5:]) for item in items if item.startswith(b"F")])
    others = []
    for death in grouped:
        if (death.get("queue"), death.get("reason")) == (fresh["queue"], fresh["reason"]):
            fresh = {**death, "count": _one_more(death.get("count"))}
        else:
            others.append(death)
    return [dict(sorted(fresh.items())), *others]


def _one_more(count: bytes | None) -> bytes:
    """RabbitMQ counts in 64 bits, and so far that they wrap."""
    number = decode_integer(count) if count is not None else None
    number = 0 if number is None else number
    wrapped = (number + 1 + 2**63) % 2**64 - 2**63
    return encode_value(wrapped, "long")


def _grouped(deaths: list[Death]) -> list[Death]:
    """One entry a pair of queue and reason.

    RabbitMQ turns a list of several round while it groups them, and so do we: the order decides
    which cycles are cut.
    """
    if len(deaths) < 2:
        return deaths
    groups: dict[tuple[bytes | None, bytes | None], list[Death]] = {}
    for death in deaths:
        groups.setdefault((death.get("queue"), death.get("reason")), []).append(death)
    return [
        group[0] if "count" in group[0] else {"count": encode_value(len(group), "long"), **group[0]}
        for group in reversed(groups.values())
    ]


def _is_cycle(queue: str, deaths: list[Death]) -> bool:
    """Was the message in this queue before, with no reject since?"""
    wanted = encode_value(queue)
    for death in deaths:
        if death.get("reason") == _REJECTED:
            return False
        if death.get("queue") == wanted:
            return True
    return False
