"""Where a message goes that a queue gives up: x-death, first-death headers, cycles.

Rules after RabbitMQ's: one x-death entry for each pair of queue and reason, the newest in front,
counted up when it happens again; the first death is also told in headers of its own; the
per-message expiration is taken off (and kept in the entry), so that the message does not expire
again; a message that would return to a queue without ever having been rejected on the way is
dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren.amqp.properties import decode_property
from warren.amqp.tables import Table, Timestamp, encode_value, join_table, raw, split_table
from warren.broker.message import Address, Message, Traits

if TYPE_CHECKING:
    from warren.broker.queues.queue import Queue


def dead_letter(queue: Queue, message: Message, reason: str) -> None:
    """Give a message up. It goes on when the broker settles: chains of queues need no stack."""
    if queue.settings.dead_letter_exchange is not None:
        queue.core.dead_letters.append((queue, message, reason))


def send_letter(queue: Queue, message: Message, reason: str) -> None:
    """Publish a message to its queue's dead-letter exchange, if there is one."""
    settings, vhost = queue.settings, queue.vhost
    exchange = vhost.exchanges.get(settings.dead_letter_exchange or "")
    key = settings.dead_letter_routing_key
    if exchange is None or (key is not None and len(raw(key)) > 255):
        return
    now_s = vhost.core.clock.wall_ms() // 1000
    letter, deaths = make_letter(
        message, queue.name, reason, now_s, exchange=exchange.name, routing_key=key
    )
    keys = (letter.address.routing_key, *letter.traits.copies)
    targets = vhost.route(exchange, keys, letter)
    if reason != "rejected":
        targets = [target for target in targets if not _is_cycle(target.name, deaths)]
    vhost.deliver(letter, targets)


def make_letter(
    message: Message,
    queue: str,
    reason: str,
    now_s: int,
    *,
    exchange: str,
    routing_key: str | None,
) -> tuple[Message, list[Any]]:
    """The message as it is dead-lettered, and its deaths."""
    parts = dict(message.parts)
    entries = split_table(parts["headers"][4:]) if "headers" in parts else {}
    headers = decode_property("headers", parts["headers"]) if "headers" in parts else Table()
    routing_keys = [message.address.routing_key, *_copies(headers)]
    death: dict[str, Any] = {
        "reason": reason,
        "queue": queue,
        "time": Timestamp(now_s),
        "exchange": message.address.exchange,
        "routing-keys": routing_keys,
    }
    expiration = parts.pop("expiration", None)
    if expiration is not None:
        death["original-expiration"] = decode_property("expiration", expiration)
    deaths = _with_death(headers, death)
    if "x-death" not in headers:
        for key, value in (("reason", reason), ("queue", queue), ("exchange", death["exchange"])):
            entries[f"x-first-death-{key}"] = encode_value(value)
    entries["x-death"] = encode_value(deaths)
    copies: tuple[str, ...] = message.traits.copies
    if routing_key is not None:
        entries.pop("CC", None)
        copies = ()
    parts["headers"] = join_table(dict(sorted(entries.items())))
    traits = Traits()
    traits.priority, traits.persistent = message.traits.priority, message.traits.persistent
    traits.copies = copies
    key = message.address.routing_key if routing_key is None else routing_key
    return message.rewritten(parts, Address(exchange, key), traits), deaths


def _copies(headers: Table) -> list[str]:
    keys: list[str] = []
    for name in ("CC", "BCC"):
        value = headers.get(name)
        if isinstance(value, list):
            keys += [key for key in value if isinstance(key, str)]
    return keys


def _with_death(headers: Table, death: dict[str, Any]) -> list[Any]:
    old = headers.get("x-death")
    fresh = Table({"count": 1, **death})
    fresh.kinds["count"] = "long"
    if not isinstance(old, list):
        # Some clients turn headers into strings before they publish again: begin anew.
        return [fresh]
    grouped = _grouped(old)
    others = []
    for entry in grouped:
        if _same_death(entry, death):
            count = entry.get("count")
            fresh = Table(entry, dict(entry.kinds))
            fresh["count"] = count + 1 if isinstance(count, int) else 1
            fresh.kinds["count"] = "long"
        else:
            others.append(entry)
    return [Table(dict(sorted(fresh.items())), fresh.kinds), *others]


def _grouped(deaths: list[Any]) -> list[Any]:
    """One entry a pair of queue and reason; what is no entry at all stays out.

    RabbitMQ turns a list of several round while it groups them, and so do we: the order decides
    which cycles are cut.
    """
    tables = [entry for entry in deaths if isinstance(entry, Table)]
    if len(tables) < 2:
        return tables
    groups: dict[tuple[Any, Any], list[Table]] = {}
    for entry in tables:
        groups.setdefault((entry.get("queue"), entry.get("reason")), []).append(entry)
    return [_with_count(group[0], len(group)) for group in reversed(groups.values())]


def _with_count(entry: Table, count: int) -> Table:
    if "count" in entry:
        return entry
    return Table({"count": count, **entry}, {"count": "long", **entry.kinds})


def _same_death(entry: Any, death: dict[str, Any]) -> bool:
    return (
        isinstance(entry, Table)
        and entry.get("queue") == death["queue"]
        and entry.get("reason") == death["reason"]
    )


def _is_cycle(queue: str, deaths: list[Any]) -> bool:
    """Was the message in this queue before, with no reject since?"""
    for entry in deaths:
        if not isinstance(entry, Table) or entry.get("reason") == "rejected":
            return False
        if entry.get("queue") == queue:
            return True
    return False
