"""Where a message goes that a queue gives up: x-death, first-death headers, cycles.

Rules after RabbitMQ's: one x-death entry for each pair of queue and reason, the newest in front,
counted up when it happens again; the first death is also told in headers of its own; the
per-message expiration is taken off (and kept in the entry), so that the message does not expire
again; a message that would return to a queue without ever having been rejected on the way is
dropped.

Chains of thousands of queues must not cost the square of their length: an entry of x-death is read
once, and a letter that has died often keeps what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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

_REJECTED = encode_value("rejected")
#: So many deaths are worth remembering, beside the header that tells of them.
_MANY = 32


class Deaths(NamedTuple):
    """The entries of x-death, the newest first; everything as it lies on the wire."""

    queues: list[bytes | None]
    reasons: list[bytes | None]
    items: list[bytes]

    def turned(self) -> Deaths:
        return Deaths(self.queues[::-1], self.reasons[::-1], self.items[::-1])

    def find(self, queue: bytes, reason: bytes) -> int | None:
        if queue not in self.queues:
            return None
        pairs = zip(self.queues, self.reasons, strict=True)
        return next((at for at, pair in enumerate(pairs) if pair == (queue, reason)), None)

    def pop(self, at: int) -> dict[str, bytes]:
        del self.queues[at], self.reasons[at]
        return split_table(self.items.pop(at)[5:])

    def put_first(self, table: dict[str, bytes]) -> None:
        self.queues.insert(0, table.get("queue"))
        self.reasons.insert(0, table.get("reason"))
        self.items.insert(0, b"F" + join_table(table))


class Letter(Message):
    """A message that has died often, with its deaths."""

    __slots__ = ("deaths",)

    def __init__(self, message: Message, deaths: Deaths) -> None:
        super().__init__(
            message.address, message.content, message.traits, message.body_size, message.channel
        )
        self.origin = message.origin
        self.deaths = deaths

    def with_traits(self, traits: Traits) -> Message:
        return Letter(super().with_traits(traits), self.deaths)


def dead_letter(queue: Queue, message: Message, reason: str, entry: Entry | None = None) -> None:
    """Give a message up, and with it the entry that it is in.

    It goes on when the broker settles: chains of queues need no stack. Until then the entry stays
    in the store, so that the batch that forgets it is the one that has the letter.
    """
    if queue.settings.dead_letter_exchange is not None:
        queue.core.dead_lettered[queue.kind, reason, "at_most_once"] += 1
        queue.core.dead_letters.append((queue, message, reason, entry))
        return
    queue.core.dead_lettered[queue.kind, reason, "disabled"] += 1
    if entry is not None:
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
) -> tuple[Message, Deaths]:
    """The message as it is dead-lettered, and its deaths."""
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
    known = message.deaths if isinstance(message, Letter) else _read(entries.get("x-death"))
    deaths = _with_death(known, raw_fresh)
    entries["x-death"] = join_array(deaths.items)
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
    return (Letter(letter, deaths) if len(deaths.items) >= _MANY else letter), deaths


def _copies(entries: dict[str, bytes]) -> list[str]:
    keys: list[str] = []
    for name in ("CC", "BCC"):
        value = entries.get(name, b"")
        if value.startswith(b"A"):
            keys += [text(item[5:]) for item in split_array(value[5:]) if item.startswith(b"S")]
    return keys


def _read(header: bytes | None) -> Deaths | None:
    """The deaths that an x-death header tells of, one a pair of queue and reason."""
    if header is None or not header.startswith(b"A"):
        # Some clients turn headers into strings before they publish again: begin anew.
        return None
    # What is no entry at all stays out.
    items = [item for item in split_array(header[5:]) if item.startswith(b"F")]
    deaths = Deaths([], [], [])
    for table in reversed(_grouped([split_table(item[5:]) for item in items])):
        deaths.put_first(table)
    return deaths


def _with_death(known: Deaths | None, fresh: dict[str, bytes]) -> Deaths:
    """The deaths with a new one in front, or with its like counted up.

    RabbitMQ turns a list of several round at each death, and so do we: the order decides which
    cycles are cut. It sorts the entries but for the first.
    """
    if known is None:
        deaths = Deaths([], [], [])
        deaths.put_first(fresh)
        return deaths
    deaths = known.turned()
    at = deaths.find(fresh["queue"], fresh["reason"])
    if at is not None:
        before = deaths.pop(at)
        fresh = {**before, "count": _one_more(before.get("count"))}
    deaths.put_first(dict(sorted(fresh.items())))
    return deaths


def _one_more(count: bytes | None) -> bytes:
    """RabbitMQ counts in 64 bits, and so far that they wrap."""
    number = decode_integer(count) if count is not None else None
    number = 0 if number is None else number
    wrapped = (number + 1 + 2**63) % 2**64 - 2**63
    return encode_value(wrapped, "long")


def _grouped(tables: list[dict[str, bytes]]) -> list[dict[str, bytes]]:
    """One a pair of queue and reason, each with a count."""
    if len(tables) < 2:
        return tables
    groups: dict[tuple[bytes | None, bytes | None], list[dict[str, bytes]]] = {}
    for table in tables:
        groups.setdefault((table.get("queue"), table.get("reason")), []).append(table)
    return [
        group[0] if "count" in group[0] else {"count": encode_value(len(group), "long"), **group[0]}
        for group in groups.values()
    ]


def _is_cycle(queue: str, deaths: Deaths) -> bool:
    """Was the message in this queue before, with no reject since?"""
    wanted = encode_value(queue)
    if wanted not in deaths.queues:
        return False
    return _REJECTED not in deaths.reasons[: deaths.queues.index(wanted) + 1]
