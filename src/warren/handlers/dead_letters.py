"""Messages that were given up: read from the queue they lie in, and sent back to work.

Reads what handlers write (``letters.py``) and what a broker writes (``x-death``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from warren.client import Channel, Connection, Delivery
from warren.errors import PublishFailed
from warren.handlers import letters

#: Kept when a letter is sent back: where the message was published to, at first.
_ORIGIN = tuple(f"{letters.PREFIX}{name}" for name in ("exchange", "routing-key", "cc"))


@dataclass(frozen=True)
class DeadLetter:
    """A message that was given up, as its headers tell."""

    #: The queue it was taken from; None if nothing tells.
    queue: str | None
    reason: str
    error: str = ""
    attempts: int = 0
    #: Of the last failure, ms since 1970; None if nothing tells.
    at: int | None = None
    message_id: str | None = None
    size: int = 0
    history: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


@dataclass
class Replay:
    """What came of sending letters back. ``left`` are those that stay, with the reason."""

    sent: dict[str, int] = field(default_factory=dict)
    left: list[tuple[DeadLetter, str]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(self.sent.values())


def read_letter(delivery: Delivery) -> DeadLetter:
    """Headers come from anywhere: what can't be true is passed over."""
    headers, size = delivery.headers, len(delivery.body)
    message_id = delivery.properties.message_id
    if f"{letters.PREFIX}reason" not in headers:
        return replace(_by_the_broker(headers), message_id=message_id, size=size)
    following, history = letters.earlier_attempts(headers)
    at = history[-1].get("at") if history else None
    return DeadLetter(
        letters.origin(headers, "queue", "") or None,
        letters.origin(headers, "reason", "?"),
        letters.origin(headers, "error", ""),
        following - 1,
        at if isinstance(at, int) else None,
        message_id,
        size,
        tuple(history),
    )


def _by_the_broker(headers: Mapping[str, Any]) -> DeadLetter:
    deaths = headers.get("x-death")
    found = [each for each in deaths if isinstance(each, dict)] if isinstance(deaths, list) else []
    if not found:
        return DeadLetter(None, "?")
    last = found[0]  # the broker puts the newest in front
    queue, count = last.get("queue"), last.get("count")
    return DeadLetter(
        queue if isinstance(queue, str) else None,
        str(last.get("reason", "?")),
        attempts=count if isinstance(count, int) else 0,
        history=tuple(found),
    )


async def waiting(connection: Connection, queue: str) -> int:
    """How many letters there are.

    Raises:
        NotFound: there is no such queue.
    """
    async with await connection.channel() as channel:
        return (await channel.declare_queue(queue, passive=True)).messages


async def list_letters(connection: Connection, queue: str, limit: int) -> list[DeadLetter]:
    """The first letters; they stay where they are, and are marked as redelivered."""
    async with await connection.channel() as channel:
        return [read_letter(each) async for each in _take(channel, queue, limit)]


async def replay(
    connection: Connection,
    queue: str,
    *,
    limit: int,
    to: str | None = None,
    wanted: Callable[[DeadLetter], bool] = lambda letter: True,
    dry_run: bool = False,
) -> Replay:
    """Send letters back to the queues they came from, the oldest first.

    A letter is acknowledged when the broker has confirmed its copy: a crash in between leaves
    two, never none. One that nobody takes stays, and so do those that are not ``wanted``.
    """
    done = Replay()
    # Those that fail again meanwhile come to the end, and are not sent twice.
    there = await waiting(connection, queue)
    async with await connection.channel() as taking, await connection.channel() as sending:
        async for delivery in _take(taking, queue, there):
            if done.count >= limit:
                break
            letter = read_letter(delivery)
            target = to or letter.queue
            if not wanted(letter):
                continue
            problem = "nothing tells which queue it came from" if target is None else None
            if target is not None and not dry_run:
                problem = await _send_back(sending, delivery, target)
            if problem is not None or target is None:
                done.left.append((letter, problem or ""))
                continue
            done.sent[target] = done.sent.get(target, 0) + 1
    return done


async def _take(channel: Channel, queue: str, most: int) -> AsyncIterator[Delivery]:
    """One after the other; what is not acknowledged goes back in its place with the channel."""
    for _ in range(most):
        delivery = await channel.get(queue)
        if delivery is None:
            return
        yield delivery


async def _send_back(channel: Channel, delivery: Delivery, queue: str) -> str | None:
    """None when it is there, else why not."""
    found = letters.without_copies(delivery.headers)
    kept = {name: found[name] for name in _ORIGIN if name in found}
    headers = letters.clean_headers(found) | kept
    properties = replace(delivery.properties, headers=headers or None)
    try:
        await channel.publish(
            delivery.body, routing_key=queue, properties=properties, mandatory=True
        )
    except PublishFailed as error:
        return str(error)
    delivery.ack()
    return None
