"""The age of a queue: when its messages end, and when it ends itself for want of use.

Expired messages go only when they reach the head, so one timer a queue is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warren.broker.message import Message

if TYPE_CHECKING:
    from warren.broker.queues.queue import Queue
    from warren.broker.timers import Timer


class Expiry:
    """Watches the head of a queue, and how long nobody has used it."""

    __slots__ = ("_head_timer", "_queue", "_unused_timer", "active")

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        #: Some message of the queue has an end to its life.
        self.active = False
        self._head_timer: Timer | None = None
        self._unused_timer: Timer | None = None

    # -- messages --------------------------------------------------------------------------------
    def ttl_ms(self, message: Message) -> int | None:
        """How long the message may stay: the shorter of its own time and the queue's."""
        own, ttl = message.traits.expiration_ms, self._queue.settings.message_ttl_ms
        if own is None or ttl is None:
            return ttl if own is None else own
        return min(own, ttl)

    def deadline_ms(self, ttl_ms: int) -> int:
        """When a message with so long to live ends."""
        self.active = True
        return self._queue.core.clock.monotonic_ms() + ttl_ms

    def drop(self) -> None:
        """Take off what has expired, as far as it is at the head."""
        queue = self._queue
        now = queue.core.clock.monotonic_ms()
        ready = queue.ready
        while ready.fill():
            entry = ready.peek()
            if not entry[2] or entry[2] > now:
                break
            queue.leave(ready.pop(), "expired")

    def now_or_never(self) -> None:
        """A message without any time to live goes to a waiting consumer, or not at all."""
        self.active = False
        self._queue.deliver()
        self.active = True

    def watch(self) -> None:
        """Keep one timer for the head."""
        queue = self._queue
        due = queue.ready.peek()[2] if queue.ready.fill() else 0
        timer = self._head_timer
        if not due:
            if not len(queue.ready) and not queue.unacked and queue.settings.message_ttl_ms is None:
                self.active = False
            return
        if timer is not None and timer.callback is not None:
            if timer.deadline_ms <= due:
                return
            timer.cancel()
        now = queue.core.clock.monotonic_ms()
        self._head_timer = queue.core.timers.after(max(0, due - now), self._head_expired)

    def _head_expired(self) -> None:
        self._head_timer = None
        if not self._queue.deleted:
            self._queue.core.pending[self._queue] = None

    # -- the queue -------------------------------------------------------------------------------
    def touch(self) -> None:
        """The queue was used: its x-expires time begins anew."""
        if self._unused_timer is not None:
            self._unused_timer.cancel()
            self._unused_timer = None
        queue = self._queue
        expires = queue.settings.expires_ms
        if expires is not None and not len(queue.rota):
            self._unused_timer = queue.core.timers.after(expires, self._unused)

    def _unused(self) -> None:
        if not self._queue.deleted and not len(self._queue.rota):
            self._queue.vhost.delete_queue(self._queue)

    def end(self) -> None:
        """The queue is deleted."""
        for timer in (self._head_timer, self._unused_timer):
            if timer is not None:
                timer.cancel()
