"""A queue: classic, with priorities, or quorum (on one machine a durable queue that counts).

The law of order. Every message gets a position when it is queued. Messages leave in that order
(highest priority first where the queue has priorities); a message that comes back returns to its
position, flagged redelivered. Expired messages are removed only when they reach the head: one that
lives long hides those behind it. When the queue is full, the head is dropped (or the newcomer
refused); messages that a consumer holds do not count. Consumers are fed in turn; messages that
nobody can take now wait.

Nothing is sent from here while a read is being worked through: what changes is noted in
``core.pending`` and ``deliver`` is called once, when the read is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren.amqp.tables import Table, encode_value
from warren.broker.message import OVERHEAD, Message
from warren.broker.queues.arguments import QueueSettings
from warren.broker.queues.dead_letter import dead_letter
from warren.broker.queues.expiry import Expiry
from warren.broker.queues.kept import Kept
from warren.broker.queues.ready import Entry, PagedReady, PlainReady, PriorityReady
from warren.broker.queues.restore import stored
from warren.broker.queues.rota import Rota
from warren.store.base import ROW_OVERHEAD, LogSummary

if TYPE_CHECKING:
    from warren.broker.connection import BrokerConnection
    from warren.broker.consumer import Consumer
    from warren.broker.journal import Journal
    from warren.broker.vhost import VirtualHost


class Queue:
    """Messages in order, and the consumers that want them."""

    # There may be a hundred thousand of them.
    __slots__ = (
        "_comebacks",
        "_guarded",
        "_keeps_all",
        "_only_kept",
        "acked",
        "arguments",
        "auto_delete",
        "core",
        "deleted",
        "delivered",
        "delivered_unasked",
        "durable",
        "exclusive_consumer",
        "expiry",
        "got",
        "got_nothing",
        "got_unasked",
        "kept",
        "log_id",
        "name",
        "owner",
        "published",
        "ready",
        "ready_bytes",
        "redelivered",
        "rota",
        "settings",
        "unacked",
        "unacked_bytes",
        "vhost",
    )

    def __init__(
        self,
        vhost: VirtualHost,
        name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        owner: BrokerConnection | None = None,
        arguments: Table | None = None,
        log_id: int = 0,
    ) -> None:
        self.vhost = vhost
        self.core = vhost.core
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.owner = owner
        self.arguments = arguments if arguments is not None else Table()
        self.settings = settings = self.core.policies.settings_for(self)
        self.rota = Rota(settings.single_active_consumer, by_priority=settings.kind == "classic")
        #: The queue's log in the store; 0 if nothing of it has to survive.
        self.log_id = log_id
        self.kept = Kept(self.core, log_id)
        self._only_kept = False  # nothing but written down: no limit, no end to any life
        self.ready: PlainReady | PagedReady | PriorityReady
        if settings.max_priority:
            self.ready = PriorityReady(settings.max_priority)
        else:
            self.ready = PagedReady(self._load) if log_id else PlainReady()
        #: A quorum queue keeps what is published as transient, too.
        self._keeps_all = log_id != 0 and settings.kind == "quorum"
        self._comebacks = 0
        self.ready_bytes = self.unacked = self.unacked_bytes = 0
        self.published = self.delivered = self.redelivered = self.acked = 0
        self.delivered_unasked = self.got = self.got_unasked = self.got_nothing = 0
        self.deleted = False
        self.exclusive_consumer: Consumer | None = None
        self._guarded = self._needs_guard()
        self.expiry = Expiry(self)
        self.core.churn["queue_created"] += 1
        self.touch()

    @property
    def where(self) -> str:
        """As RabbitMQ names it in its texts."""
        return f"queue '{self.name}' in vhost '{self.vhost.name}'"

    @property
    def kind(self) -> str:
        return self.settings.kind

    @property
    def message_count(self) -> int:
        return len(self.ready)

    @property
    def paged(self) -> int:
        """How many ready messages lie on disk only."""
        return self.ready.paged if isinstance(self.ready, PagedReady) else 0

    @property
    def head(self) -> Message | None:
        """The next message, if it is in memory."""
        return self.ready.peek()[1] if len(self.ready) > self.paged else None

    @property
    def consumer_count(self) -> int:
        """As declare-ok tells it: of a quorum queue with a single active consumer, that one."""
        if self.kind == "quorum" and self.settings.single_active_consumer:
            return min(1, len(self.rota))
        return len(self.rota)

    def _needs_guard(self) -> bool:
        settings = self.settings
        limited = (
            settings.message_ttl_ms is not None
            or settings.max_length is not None
            or settings.max_length_bytes is not None
            or settings.max_priority is not None
        )
        self._only_kept = self.log_id != 0 and not limited
        return self.log_id != 0 or limited

    def apply_settings(self, settings: QueueSettings) -> None:
        """A policy has changed what holds for the queue; messages keep the time they were given."""
        self.settings = settings
        self._guarded = self._needs_guard()
        self.touch()
        self.core.pending[self] = None

    # -- in --------------------------------------------------------------------------------------
    def publish(self, message: Message) -> bool:
        """Queue a message; False if the queue refuses it."""
        if self._guarded or message.traits.expiration_ms is not None:
            return self._publish_guarded(message)
        ready = self.ready
        ready.last += 1
        message.holders += 1
        self.published += 1
        ready.fresh.append(message)  # type: ignore[union-attr, arg-type]
        self.ready_bytes += message.body_size
        self.core.pending[self] = None
        return True

    def publish_alone(self, message: Message) -> bool:
        """As ``publish``, of a message that nobody holds yet and no other queue gets.

        Hot. It does by itself what most messages need, in most queues.
        """
        core, ready, size = self.core, self.ready, len(message.content)
        traits = message.traits
        if self._guarded or traits.expiration_ms is not None:
            if (
                not self._only_kept
                or not traits.persistent
                or traits.expiration_ms is not None
                or ready.paged  # type: ignore[union-attr]
                or core.held_bytes > core.page_above
            ):
                return self._publish_held(message)
            position = ready.last + 1
            batch, kept = core.journal.batch, self.kept  # type: ignore[union-attr]
            batch.puts[kept.first_id + position] = message
            batch.bytes_waiting += size + ROW_OVERHEAD
            if kept.newest_batch != batch.number:
                kept.begin(batch.number)
            kept.newest = position
            ready.fresh.append((position, message, 0, 0))  # type: ignore[union-attr, arg-type]
        else:
            ready.fresh.append(message)  # type: ignore[union-attr, arg-type]
        ready.last += 1
        message.holders = 1
        core.held_bytes += size + OVERHEAD
        self.published += 1
        self.ready_bytes += message.body_size
        core.pending[self] = None
        return True

    def _publish_held(self, message: Message) -> bool:
        self.core.hold(message)  # until it is known what becomes of it
        accepted = self._publish_guarded(message)
        self.core.release(message)
        return accepted

    def _publish_guarded(self, message: Message) -> bool:
        settings = self.settings
        if self._keeps_all and not message.traits.persistent:
            message = stored(message)
        if settings.overflow != "drop-head" and self._would_overflow(message):
            if settings.overflow == "reject-publish-dlx":
                dead_letter(self, message, "maxlen")
            return False
        ttl_ms = self.expiry.ttl_ms(message)
        expires_at = 0 if ttl_ms is None else self.expiry.deadline_ms(ttl_ms)
        self.published += 1
        self._enqueue(message, expires_at, 0)
        self.ready_bytes += message.body_size
        self.core.pending[self] = None
        if ttl_ms == 0:
            self.expiry.now_or_never()
        return True

    def _enqueue(self, message: Message, expires_at: int, returns: int) -> None:
        """Put a message at the end: in memory, on disk, or both."""
        ready = self.ready
        ready.last += 1
        entry = (ready.last, message, expires_at, returns)
        if self.log_id:
            paged = isinstance(ready, PagedReady) and (ready.paged or self.core.must_page)
            if message.traits.persistent:
                self.kept.put(entry)
            elif paged:
                entry = (ready.last, stored(message), expires_at, returns)
                self.kept.put(entry, transient=True)
            if paged:
                ready.page(self.kept.newest_batch, entry)  # type: ignore[union-attr]
                self.core.waits_for_commit[self] = None
                return
        self.core.hold(message)
        ready.push(entry)

    def _load(self, after: int) -> list[Entry]:
        assert isinstance(self.ready, PagedReady)
        return self.kept.load(self.ready, after)

    def recover(self, journal: Journal, summary: LogSummary) -> None:
        """Take up again what the store has of this queue."""
        self.ready.last = max(summary.last, summary.mark)
        self.kept.recover(summary)
        self.expiry.active = summary.expires
        self.ready_bytes = summary.size
        if isinstance(self.ready, PagedReady):
            self.ready.paged = summary.count
        else:
            for entry in self.kept.read_all(journal):
                self.ready.push(entry)
        self.core.pending[self] = None

    def written(self, batch: int) -> bool:
        """Batches up to this one are safe; True if there is more on its way."""
        return isinstance(self.ready, PagedReady) and self.ready.written(batch)

    def forget(self, entry: Entry) -> None:
        """An entry that lies in the store is done with."""
        self.kept.forget(entry)

    def done_with(self, entry: Entry) -> None:
        """The entry leaves the queue, and the store if it is there."""
        if self.log_id and entry[1].traits.persistent:
            self.forget(entry)
        self.core.release(entry[1])

    def given_out(self, position: int, connection: BrokerConnection | None) -> None:
        """A client is about to see entries up to there."""
        self.kept.given_out(position, connection)

    def stop(self) -> None:
        """The broker stops."""
        if self.log_id:
            self.kept.stop()

    def _would_overflow(self, message: Message) -> bool:
        if self._is_over(1, message.body_size):
            # What a consumer can take right now is as good as gone.
            self.deliver()
            return self._is_over(1, message.body_size)
        return False

    def _is_over(self, more: int = 0, more_bytes: int = 0) -> bool:
        length, size = self.settings.max_length, self.settings.max_length_bytes
        return (length is not None and len(self.ready) + more > length) or (
            size is not None and self.ready_bytes + more_bytes > size
        )

    def _drop_overflow(self) -> None:
        if self.settings.overflow != "drop-head":
            return
        ready = self.ready
        while ready.fill() and self._is_over():
            self.leave(ready.pop(), "maxlen")

    def leave(self, entry: Entry, reason: str) -> None:
        """A ready message goes, dead-lettered if the queue says so."""
        message = entry[1]
        self.ready_bytes -= message.body_size
        dead_letter(self, message, reason, entry)

    # -- out -------------------------------------------------------------------------------------
    def deliver(self) -> None:
        """Give out what can be given out now."""
        if self.expiry.active:
            self.expiry.drop()
        ready, rota = self.ready, self.rota
        while ready.fill():
            consumer = rota.next()
            if consumer is None:
                break
            limit = consumer.room() if rota.alone and not self.expiry.active else 1
            consumer.feed(self, limit)
            if self.expiry.active:
                self.expiry.drop()
        if self._guarded:
            self._drop_overflow()
        if self.expiry.active:
            self.expiry.watch()

    def take(self, connection: BrokerConnection | None = None) -> Entry | None:
        """The head of the queue, for basic.get."""
        if self.expiry.active:
            self.expiry.drop()
        if not self.ready.fill():
            return None
        entry = self.ready.pop()
        self.ready_bytes -= entry[1].body_size
        if self.log_id:
            self.given_out(entry[0], connection)
        self.delivered += 1
        self.redelivered += 1 if entry[3] else 0
        if self.expiry.active:
            self.expiry.drop()
            self.expiry.watch()
        return entry

    def hold(self, entry: Entry) -> None:
        """A taken message is not acknowledged yet."""
        self.unacked += 1
        self.unacked_bytes += entry[1].body_size

    def counted_content(self, entry: Entry, content: bytes, channel: int, frame_max: int) -> bytes:
        """The content; a quorum queue tells in it how often the message was given back."""
        if self.kind != "quorum":
            return content
        headers = entry[1].raw_headers
        headers["x-delivery-count"] = encode_value(entry[3], "long")
        copy = entry[1].with_headers(dict(sorted(headers.items())))
        return copy.content_for(channel, frame_max)

    # -- settling --------------------------------------------------------------------------------
    def settle(self, entry: Entry) -> None:
        """Acknowledged: the message is done with."""
        self.unacked -= 1
        self.unacked_bytes -= entry[1].body_size
        self.acked += 1
        self.done_with(entry)

    def reject(self, entry: Entry) -> None:
        """Refused for good."""
        self.unacked -= 1
        self.unacked_bytes -= entry[1].body_size
        if self.deleted:
            self.core.release(entry[1])
            return
        dead_letter(self, entry[1], "rejected", entry)

    def give_back(self, entry: Entry) -> None:
        """Unacknowledged: the message returns to its place."""
        message = entry[1]
        self.unacked -= 1
        self.unacked_bytes -= message.body_size
        if self.deleted:
            self.core.release(message)
            return
        returns = entry[3] + 1
        limit = self.settings.delivery_limit
        if limit is not None and returns > limit:
            dead_letter(self, message, "delivery_limit", entry)
            return
        place = entry[0]
        if self.kind == "quorum":
            # Quorum queues hand out what comes back first, in the order in which it came back.
            self._comebacks = place = self._comebacks + 1
            if self.log_id:
                self.kept.returned(entry[0], returns)
        self.ready.give_back((entry[0], message, entry[2], returns), place)
        self.ready_bytes += message.body_size
        self.core.pending[self] = None

    def requeue(self, entry: Entry) -> None:
        """Given back by the client's own wish.

        A quorum queue without a delivery limit puts such a message at its end.
        """
        if self.kind != "quorum" or self.settings.delivery_limit is not None or self.deleted:
            self.give_back(entry)
            return
        message = entry[1]
        self.unacked -= 1
        self.unacked_bytes -= message.body_size
        self._enqueue(message, entry[2], entry[3] + 1)
        self.done_with(entry)
        self.ready_bytes += message.body_size
        self.core.pending[self] = None

    def check_refusable(self) -> None:
        """Messages of any queue but a stream can be refused."""

    def touch(self) -> None:
        """The queue was used."""
        self.expiry.touch()

    # -- consumers -------------------------------------------------------------------------------
    def add_consumer(self, consumer: Consumer) -> None:
        self.rota.add(consumer)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self.touch()
        self.core.pending[self] = None

    def remove_consumer(self, consumer: Consumer) -> None:
        """A consumer has gone; the last one takes an auto-delete queue with it."""
        self.rota.remove(consumer)
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None
        if self.deleted:
            return
        self.touch()
        self.core.pending[self] = None
        if self.auto_delete and not len(self.rota):
            self.vhost.delete_queue(self)

    # -- ending ----------------------------------------------------------------------------------
    def purge(self) -> int:
        """Drop all that is ready; what consumers hold stays theirs."""
        count = len(self.ready)
        if isinstance(self.ready, PagedReady) and self.ready.paged:
            self.kept.cut(self.ready.after + 1, self.ready.last)
        for entry in self.ready:
            self.done_with(entry)
        if isinstance(self.ready, PagedReady):
            self.ready.clear(self.ready.last)
        else:
            self.ready.clear()
        self.ready_bytes = 0
        return count

    def end(self) -> int:
        """The queue is deleted: drop its messages and tell its consumers."""
        self.deleted = True
        self.core.churn["queue_deleted"] += 1
        count = self.purge()
        self.expiry.end()
        for consumer in self.rota:
            consumer.channel.queue_gone(consumer)
        self.core.pending.pop(self, None)
        return count

    def snapshot(self) -> dict[str, Any]:
        """What people want to know of a queue; names follow RabbitMQ's management API."""
        active = self.rota.active
        return {
            "name": self.name,
            "vhost": self.vhost.name,
            "type": self.kind,
            "durable": self.durable,
            "auto_delete": self.auto_delete,
            "exclusive": self.owner is not None,
            "arguments": dict(self.arguments),
            "messages_ready": len(self.ready),
            "messages_unacknowledged": self.unacked,
            "messages": len(self.ready) + self.unacked,
            "message_bytes_ready": self.ready_bytes,
            "consumers": len(self.rota),
            "single_active_consumer_tag": active.tag if active is not None else None,
        }
