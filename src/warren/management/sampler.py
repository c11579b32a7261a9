"""Rates and samples: counters looked at every five seconds, while somebody asks for them.

Nobody asking costs nothing: sampling ends some minutes after the last request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from warren.broker.core import BrokerCore
from warren.broker.vhost import VirtualHost
from warren.management.history import BASIC, GLOBAL, Counts, History, Span
from warren.management.machine import free_disk_bytes, open_files, resident_bytes

PERIOD_MS = 5000
#: How long after the last request sampling goes on.
KEEP_MS = 300_000
#: With more objects than this, samples are kept of the broker as a whole and of no object.
OBJECTS = 1000
PUBLISHING = ("publish", "confirm", "return_unroutable", "drop_unroutable")
DELIVERING = (
    *("ack", "deliver", "deliver_get", "deliver_no_ack"),
    *("get", "get_empty", "get_no_ack", "redeliver"),
)
_DELIVER_GET = ("deliver", "deliver_no_ack", "get", "get_no_ack")

_NO_PAST = History()
#: So many queues are looked at at a time, and so long clients have their turn.
_SLICE = 200
_PAUSE_MS = 2
_DONE = object()


class Sampler:
    """The last two looks at every counter, and samples of those before."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._asked_ms = 0
        self._running = False
        self._times = (0, 0)
        self._last: dict[Any, Counts] = {}
        self._before: dict[Any, Counts] = {}
        #: Since when an object's counters have not moved, by the wall clock.
        self._still: dict[Any, int] = {}
        self._past: dict[Any, History] = {}

    def asked(self) -> None:
        """Somebody wants to know."""
        self._asked_ms = self._core.clock.monotonic_ms()
        if not self._running:
            self._running = True
            self._sample()

    def forget(self) -> None:
        self._last, self._before, self._still, self._past = {}, {}, {}, {}

    def _sample(self) -> None:
        now = self._core.clock.monotonic_ms()
        if now - self._asked_ms > KEEP_MS:
            self._running = False
            self.forget()
            return
        seen: dict[Any, Counts] = {}
        self._go_on(self._look(seen), seen)

    def _go_on(self, looking: Iterator[None], seen: dict[Any, Counts]) -> None:
        """Look at some, and at the others after clients had their turn."""
        if next(looking, _DONE) is _DONE:
            self._looked(seen)
        else:
            self._core.timers.after(_PAUSE_MS, lambda: self._go_on(looking, seen))

    def _looked(self, seen: dict[Any, Counts]) -> None:
        self._before, self._last = self._last, seen
        self._times = (self._times[1], self._core.clock.monotonic_ms())
        wall = self._core.clock.wall_ms()
        self._still = {
            key: self._still.get(key, wall) if self._before.get(key) == counts else wall
            for key, counts in seen.items()
        }
        self._keep(wall)
        self._core.timers.after(PERIOD_MS, self._sample)

    def _keep(self, wall: int) -> None:
        few = len(self._last) <= OBJECTS
        past, self._past = self._past, {}
        for key, counts in self._last.items():
            whole = isinstance(key, str)
            if whole or few:
                history = past.get(key) or History(GLOBAL if whole else BASIC)
                self._past[key] = history
                history.add(wall, counts)
                history.thin(wall)

    def _look(self, seen: dict[Any, Counts]) -> Iterator[None]:
        """Put all counters into ``seen``, and stop for a moment now and then."""
        core = self._core
        churn = dict(core.churn)
        seen["churn"], seen["node"] = churn, {**node_counts(core), **churn}
        for connection in list(core.connections):
            seen[connection] = connection_counts(connection)
            for channel in connection.channels:
                seen[channel] = channel_counts(channel)
        totals: Counter[str] = Counter()
        for vhost in list(core.vhosts.values()):
            for at, queue in enumerate(list(vhost.queues.values()), 1):
                seen[queue] = queue_counts(queue)
                if not at % _SLICE:
                    yield
            for exchange in list(vhost.exchanges.values()):
                seen[exchange] = exchange_counts(exchange)
            seen[vhost] = self.vhost_counts(vhost)
            totals.update(seen[vhost])
        seen["totals"] = dict(totals)

    def vhost_counts(self, vhost: VirtualHost) -> Counts:
        """Over all channels that are, and all that were."""
        counts: Counter[str] = Counter(vhost.past)
        octets: Counter[str] = Counter()
        for connection in self._core.connections:
            if connection.vhost is vhost:
                octets.update(connection_counts(connection))
                for channel in connection.channels:
                    counts.update(channel.counts())
        ready = unacked = 0
        for queue in vhost.queues.values():
            ready += queue.message_count
            unacked += 0 if queue.kind == "stream" else queue.unacked
        depths = {
            "messages_ready": ready,
            "messages_unacknowledged": unacked,
            "messages": ready + unacked,
        }
        return {**_with_sum(dict(counts)), **octets, **depths}

    # -- answers ---------------------------------------------------------------------------------
    def rate(self, key: Any, name: str) -> float:
        """How fast a counter moved between the last two looks, a second."""
        last, before = self._last.get(key), self._before.get(key)
        span_ms = self._times[1] - self._times[0]
        if last is None or before is None or span_ms <= 0:
            return 0.0
        return (last.get(name, 0) - before.get(name, 0)) * 1000 / span_ms

    def rated(
        self, key: Any, counts: Counts, *names: str, span: Span | None = None
    ) -> dict[str, Any]:
        """Counters, each with its rate, and with its samples in a span of time."""
        values: dict[str, Any] = {}
        past = self._past.get(key) or _NO_PAST
        for name in names:
            values[name] = counts.get(name, 0)
            details = {} if span is None else past.details(name, span)
            values[f"{name}_details"] = {"rate": self.rate(key, name), **details}
        return values

    def message_stats(
        self, key: Any, counts: Counts, *groups: tuple[str, ...], span: Span | None = None
    ) -> dict[str, Any]:
        """The groups in which something has happened, under ``message_stats`` if there are any."""
        values: dict[str, Any] = {}
        for group in groups:
            if any(counts.get(name) for name in group):
                values.update(self.rated(key, counts, *group, span=span))
        return {"message_stats": dict(sorted(values.items()))} if values else {}

    def idle_since(self, key: Any) -> dict[str, str]:
        """Since when nothing happened, where that is known."""
        last = self._last.get(key)
        if last is None or self._before.get(key) != last:
            return {}
        moment = datetime.fromtimestamp(self._still[key] / 1000, UTC)
        return {"idle_since": moment.isoformat(timespec="milliseconds")}


def node_counts(core: BrokerCore) -> Counts:
    return {
        "mem_used": resident_bytes(),
        "fd_used": open_files(),
        "sockets_used": len(core.connections),
        "proc_used": 1,
        "disk_free": free_disk_bytes(core),
    }


def _with_sum(counts: Counts) -> Counts:
    counts["deliver_get"] = sum(counts.get(name, 0) for name in _DELIVER_GET)
    return counts


def channel_counts(channel: Any) -> Counts:
    return _with_sum(channel.counts())


def connection_counts(connection: Any) -> Counts:
    session = connection.session
    return {"recv_oct": session.received_bytes, "send_oct": session.sent_bytes}


def exchange_counts(exchange: Any) -> Counts:
    return {"publish_in": exchange.published_in, "publish_out": exchange.published_out}


def depth(queue: Any) -> Counts:
    ready = queue.message_count
    unacked = 0 if queue.kind == "stream" else queue.unacked
    return {
        "messages_ready": ready,
        "messages_unacknowledged": unacked,
        "messages": ready + unacked,
    }


def queue_counts(queue: Any) -> Counts:
    got = queue.got + queue.got_unasked
    return {
        "publish": queue.published,
        "deliver": queue.delivered - queue.delivered_unasked - got,
        "deliver_no_ack": queue.delivered_unasked,
        "get": queue.got,
        "get_no_ack": queue.got_unasked,
        "get_empty": queue.got_nothing,
        "redeliver": queue.redelivered,
        "ack": queue.acked,
        "deliver_get": queue.delivered,
        **depth(queue),
    }
