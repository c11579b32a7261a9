"""Queues to load, and a look at what became of the load."""

from __future__ import annotations

import secrets

from bench.load import frames
from bench.load.link import Link, LoadError


def unique(word: str) -> str:
    return f"bench-{word}-{secrets.token_hex(4)}"


def exclusive_queue(link: Link) -> str:
    """A new queue that goes when the link does."""
    queue = unique("queue")
    link.call(frames.declare_queue(queue, exclusive=True), (50, 11))
    return queue


def durable_queue(link: Link) -> str:
    """A new queue that survives; to be deleted by ``Link.call(frames.delete_queue(...))``."""
    queue = unique("durable")
    link.call(frames.declare_queue(queue, durable=True), (50, 11))
    return queue


def expect_ready(link: Link, queue: str, count: int) -> None:
    """The broker must hold what it confirmed."""
    ready = link.ready(queue)
    if ready != count:
        raise LoadError(f"{ready} messages in {queue} after {count} were confirmed")
