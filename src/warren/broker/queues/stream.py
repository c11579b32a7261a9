"""A stream: a log that many consumers read, each from where it likes; reading removes nothing.

On one machine, in memory: offsets count from 0, every message carries its own in the header
``x-stream-offset``, retention drops whole stretches from the front.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from warren.amqp import methods as m
from warren.amqp.tables import Table, Timestamp, encode_value
from warren.broker.message import OVERHEAD, Message
from warren.broker.queues.arguments import QueueSettings, parse_age_s
from warren.broker.queues.ready import Entry, Ready
from warren.broker.queues.restore import restore_message
from warren.broker.queues.rota import Rota
from warren.errors import NotImplementedByBroker, PreconditionFailed
from warren.store.base import LogSummary

if TYPE_CHECKING:
    from warren.broker.connection import BrokerConnection
    from warren.broker.consumer import Consumer
    from warren.broker.journal import Journal
    from warren.broker.vhost import VirtualHost


class StreamQueue:
    """An append-only queue."""

    kind = "stream"

    def __init__(
        self,
        vhost: VirtualHost,
        name: str,
        *,
        durable: bool = True,
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
        self.settings: QueueSettings = self.core.policies.settings_for(self)
        self.rota = Rota(single=False, turns=False)
        self.log_id = log_id
        self.ready = Ready()  # what the consumer being fed reads next
        self.deleted = False
        self.ready_bytes = self.unacked = self.unacked_bytes = 0
        self.published = self.delivered = self.redelivered = self.acked = 0
        self.delivered_unasked = self.got = self.got_unasked = self.got_nothing = 0
        self._first = 0  # offset of the oldest message kept
        self._log: list[Message] = []
        self._written_ms: list[int] = []
        self._bytes = 0
        self._cursors: dict[Consumer, int] = {}
        self.core.churn["queue_created"] += 1

    @property
    def where(self) -> str:
        return f"queue '{self.name}' in vhost '{self.vhost.name}'"

    @property
    def message_count(self) -> int:
        return len(self._log)

    @property
    def consumer_count(self) -> int:
        return len(self.rota)

    def apply_settings(self, settings: QueueSettings) -> None:
        """A policy has changed what holds for the stream."""
        self.settings = settings
        self._retain()

    # -- writing ---------------------------------------------------------------------------------
    def publish(self, message: Message) -> bool:
        """Append; the stream keeps a copy of its own, with the offset in it."""
        offset = self._first + len(self._log)
        headers = message.raw_headers
        headers["x-stream-offset"] = encode_value(offset, "long")
        kept = message.with_headers(headers)
        self.core.hold(kept)
        now_ms = self.core.clock.wall_ms()
        if self.log_id:
            # Position 0 is never written; the time of writing stands where the expiry would.
            deadline = self.core.clock.monotonic_ms()
            self.core.journal.put(self.log_id, (offset + 1, kept, deadline, 0))  # type: ignore[union-attr]
        self._append(kept, now_ms)
        self.published += 1
        self._retain()
        self.core.pending[self] = None
        return True

    def _append(self, message: Message, written_ms: int) -> None:
        self._log.append(message)
        self._written_ms.append(written_ms)
        self._bytes += message.body_size

    def recover(self, journal: Journal, summary: LogSummary) -> None:
        """Read the whole log back."""
        after = 0
        self._first = max(0, summary.first - 1)
        while rows := journal.read(self.log_id, after, 1000):
            for _, row in rows:
                message = restore_message(row)
                message.holders = 1
                journal.held(len(message.content) + OVERHEAD)
                self._append(message, row[1])
            after = rows[-1][0]

    def forget(self, entry: Entry) -> None:
        """Acknowledging removes nothing from a stream."""

    def done_with(self, entry: Entry) -> None:
        self.core.release(entry[1])

    def given_out(self, position: int, connection: BrokerConnection | None) -> None:
        """A stream has no memory of what was read."""

    def stop(self) -> None:
        """Nothing is left to say."""

    def _retain(self) -> None:
        """Drop a stretch from the front when limits are passed by a whole segment."""
        settings = self.settings
        limit = settings.max_length_bytes
        drop = 0
        if limit is not None and self._bytes > limit + settings.segment_bytes:
            excess, drop = self._bytes - limit, 0
            while excess > 0:
                excess -= self._log[drop].body_size
                drop += 1
        if settings.max_age_s and self._bytes > settings.segment_bytes:
            oldest = self.core.clock.wall_ms() - settings.max_age_s * 1000
            drop = max(drop, bisect_left(self._written_ms, oldest))
        if drop:
            for message in self._log[:drop]:
                self._bytes -= message.body_size
                self.core.release(message)
            del self._log[:drop], self._written_ms[:drop]
            if self.log_id:
                self.core.journal.cut(  # type: ignore[union-attr]
                    self.log_id, self._first + 1, self._first + drop
                )
            self._first += drop

    # -- reading ---------------------------------------------------------------------------------
    def check_consume(self, method: m.BasicConsume, prefetch: int) -> None:
        """Refuse what a stream can't do."""
        if prefetch == 0:
            raise PreconditionFailed(f"consumer prefetch count is not set for '{self.where}'")
        if method.no_ack:
            raise NotImplementedByBroker(
                f"automatic acknowledgement not supported by stream queues {self.where}"
            )

    def add_consumer(self, consumer: Consumer) -> None:
        self._cursors[consumer] = self._start(consumer.arguments)
        self.rota.add(consumer)
        self.core.pending[self] = None

    def _start(self, arguments: Table) -> int:
        """The offset a consumer begins at."""
        wanted = arguments.get("x-stream-offset", "next")
        end = self._first + len(self._log)
        if isinstance(wanted, Timestamp):
            return self._first + bisect_left(self._written_ms, int(wanted) * 1000)
        if isinstance(wanted, int):
            return max(self._first, wanted)
        if wanted == "first":
            return self._first
        if wanted == "last":
            return max(self._first, end - 1)
        age_s = parse_age_s(wanted)
        if age_s:
            since = self.core.clock.wall_ms() - age_s * 1000
            return self._first + bisect_left(self._written_ms, since)
        return end

    def deliver(self) -> None:
        """Feed every consumer that has room from its own place."""
        for consumer in self.rota:
            cursor = max(self._cursors[consumer], self._first)
            room = min(consumer.room(), self._first + len(self._log) - cursor)
            if room <= 0:
                if cursor < self._first + len(self._log):
                    consumer.parked = True
                continue
            consumer.parked = False
            at = cursor - self._first
            for offset, message in enumerate(self._log[at : at + room], cursor):
                message.holders += 1
                self.ready.push((offset, message, 0, 0))
            self.ready_bytes = 0
            consumer.feed(self, room)  # type: ignore[arg-type]
            left = len(self.ready)
            for _ in range(left):
                self.core.release(self.ready.pop()[1])
            self._cursors[consumer] = cursor + room - left
            if left or self._cursors[consumer] < self._first + len(self._log):
                consumer.parked = True
                consumer.can_take()  # asked, it says to its connection that it waits for it

    def check_refusable(self) -> None:
        raise NotImplementedByBroker(
            f"basic.nack and basic.reject not supported by stream queues {self.where}"
        )

    def requeue(self, entry: Entry) -> None:
        self.settle(entry)

    def counted_content(self, entry: Entry, content: bytes, channel: int, frame_max: int) -> bytes:
        return content

    def take(self, connection: BrokerConnection | None = None) -> Entry | None:
        return None

    # -- settling: a stream only counts ----------------------------------------------------------
    def settle(self, entry: Entry) -> None:
        self.unacked -= 1
        self.unacked_bytes -= entry[1].body_size
        self.acked += 1
        self.core.release(entry[1])

    def reject(self, entry: Entry) -> None:
        self.settle(entry)

    def give_back(self, entry: Entry) -> None:
        self.settle(entry)

    # -- the rest --------------------------------------------------------------------------------
    def touch(self) -> None:
        """Streams don't expire."""

    def remove_consumer(self, consumer: Consumer) -> None:
        self.rota.remove(consumer)
        self._cursors.pop(consumer, None)

    def purge(self) -> int:
        count = len(self._log)
        for message in self._log:
            self.core.release(message)
        self._log.clear()
        self._written_ms.clear()
        return count

    def end(self) -> int:
        self.deleted = True
        self.core.churn["queue_deleted"] += 1
        count = self.purge()
        for consumer in self.rota:
            consumer.channel.queue_gone(consumer)
        self.core.pending.pop(self, None)
        return count

    def snapshot(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "vhost": self.vhost.name,
            "type": self.kind,
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "arguments": dict(self.arguments),
            "messages_ready": len(self._log),
            "messages_unacknowledged": self.unacked,
            "messages": len(self._log),
            "message_bytes_ready": self._bytes,
            "consumers": len(self.rota),
            "single_active_consumer_tag": None,
        }
