"""The source's half on the driver: what is there, where a batch ends, who reads what."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pyspark.sql.datasource import InputPartition

from warren.client.blocking import BlockingConnection
from warren.errors import (
    ConfigError,
    LedgerUnusable,
    LoginRefused,
    NotFound,
    StreamReplaced,
    Unavailable,
    VhostRefused,
)
from warren.spark.cores import default_tasks
from warren.spark.drain.job import Range
from warren.spark.drain.runs import new_source
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.machine import Machine
from warren.spark.left_out import LEFT_OUT, is_untouched
from warren.spark.options import SOURCE, SourceOptions
from warren.spark.pace import Pace
from warren.spark.plan import (
    Offset,
    Positions,
    first_of,
    latest,
    offset_of,
    positions_of,
    source_of,
    spread,
    still_to_begin,
)
from warren.spark.queue_info import QueueInfo
from warren.spark.queues import Catalog
from warren.spark.stream import GONE, STREAM, stream_end, stream_start, stream_weight
from warren.spark.task_connection import BROKEN, RECONNECT_S
from warren.spark.trust import Trust
from warren.spark.weights import Weights

log = logging.getLogger(__name__)

_RETRY_S = 0.2
#: How often segments are pruned, as a share of how long they are kept.
_PRUNE_PACE = 0.01
T = TypeVar("T")


@dataclass
class QueuePartition(InputPartition):
    """A task's ranges; made where the driver is."""

    ranges: tuple[Range, ...]
    ledger_id: str
    source: str
    driver: Machine

    def __init__(self, ranges: Sequence[Range], ledger_id: str, source: str) -> None:
        super().__init__(0)
        self.ranges, self.ledger_id, self.source = tuple(ranges), ledger_id, source
        self.driver = Machine.here()


def need_ledger(options: SourceOptions) -> str:
    """The ledger's path; raises ConfigError if none was given."""
    if options.ledger is None:
        raise ConfigError(
            "ledger",
            "name a folder that every executor can reach: what is read from a queue is written "
            "down there before it is acknowledged",
            SOURCE,
        )
    return options.ledger


class Driver:
    """What the reader knows on the driver: a connection, the ledger, where the query ends."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._catalog = Catalog(options)
        self._link: BlockingConnection | None = None
        self._now_only = False
        self._target: Positions | None = None
        self._trust = Trust()
        self._was_connected = False
        #: Queues that the ledger had nothing of.
        self._new_to_ledger: set[str] = set()
        #: The end that was given last: what the ledger holds has been looked for up to there.
        self._given: Positions | None = None
        self._weights = Weights()
        self._pace = Pace()
        self._prune_at = 0.0
        #: For a query that begins now; later it has it from its offsets.
        self._new_source = new_source()
        self.reported: Offset | None = None

    @property
    def _ledger(self) -> Ledger:
        return Ledger.at(need_ledger(self._options))

    def initial(self) -> Offset:
        """Where a new query begins: at the oldest that the ledger keeps, so that nothing that was
        acknowledged for a query whose checkpoint is lost is lost with it."""
        queues = self._queues()
        plain = [name for name, info in queues.items() if info.kind != STREAM]
        streams = self._starts(queues.keys() - plain, self._options.starting_offset)
        positions = dict(streams)
        if not plain and queues:
            return offset_of("", positions, self._new_source, streams)
        ledger = self._ledger.create()
        shelves = self._ledger.shelves()
        for name in plain:
            if shelves.of(name).starts:
                positions[name] = shelves.of(name).starts[0]
        return offset_of(ledger, positions, self._new_source, streams)

    def only_what_is_there_now(self) -> None:
        self._now_only, self._target = True, None

    # -- planning --------------------------------------------------------------------------------
    def latest(self, start: Offset, rows: int | None, octets: int | None) -> Offset:
        ledger = start["ledger"]
        self._pace.begin()
        if ledger:
            self._ledger.require(ledger)
            if self._trust.waits:
                self._trust.see(self._ledger)
        queues, new, ready = self._look(positions_of(start))
        positions = {**positions_of(start), **new}
        self._pace.end(found=any(ready.values()))
        # A batch that begins where the one before ended has nothing of its own in the ledger yet;
        # to look costs a list of all files.
        kept = self._kept(positions, queues) if ledger and positions != self._given else {}
        _require_readable(queues, [*kept, *(name for name, count in ready.items() if count)])
        begin = {**positions, **kept}
        everything = {queue: begin.get(queue, 0) + count for queue, count in ready.items()}
        if self._now_only and self._target is None:
            self._target = everything
        source = source_of(start)
        self.reported = offset_of(ledger, {**positions, **everything}, source)
        ends = latest(
            positions,
            ready,
            limit=rows,
            octets=octets,
            means=self._means(positions, ready, queues) if octets is not None else None,
            target=self._target,
        )
        if not ledger and any(
            info.kind not in ("", STREAM) or ready.get(name)
            for name, info in queues.items()
            if info.kind != STREAM
        ):
            ledger = self._ledger.create()  # the first queue beside streams
        self._given = {**ends, **kept}
        if self._given == positions_of(start):
            return start  # in any other words, Spark would make a batch of nothing
        self._trust.plan(positions, self._given, kept)
        streams = {name: at for name, at in new.items() if queues[name].kind == STREAM}
        return offset_of(ledger, self._given, source, {**still_to_begin(start), **streams})

    def _look(self, read: Positions) -> tuple[dict[str, QueueInfo], Positions, dict[str, int]]:
        """Which queues there are, where those begin that are new, and how much is ready."""
        while True:
            queues = self._queues()
            # Where a stream begins and ends can't be asked of what is none any more.
            if self._have_changed(_streams(queues)):
                continue
            new = self._new(read, queues)
            ready = self._ready({**read, **new}, queues)
            if not self._have_changed(name for name, count in ready.items() if count):
                return queues, new, ready

    def _have_changed(self, names: Iterable[str]) -> bool:
        asked = sorted(names)
        question = partial(self._catalog.have_changed, names=asked)
        return bool(asked) and self._asked(question)

    def _new(self, positions: Positions, queues: Mapping[str, QueueInfo]) -> Positions:
        """Where a queue begins that came while the query ran: a stream at the first message that
        it has; others at the oldest that the ledger keeps of them, of an earlier query, or of a
        batch that is not in the checkpoint."""
        new = {name: info for name, info in queues.items() if name not in positions}
        streams = [name for name, info in new.items() if info.kind == STREAM]
        begin = self._starts(streams, "first")
        plain = new.keys() - set(streams) - self._new_to_ledger
        if plain:
            shelves = self._ledger.shelves()
            known = {name: shelves.of(name).starts for name in plain}
            begin |= {name: starts[0] for name, starts in known.items() if starts}
            self._new_to_ledger.update(plain - begin.keys())
        return begin

    def _kept(self, positions: Positions, queues: Mapping[str, QueueInfo]) -> Positions:
        """Ends of what the ledger holds beyond ``positions``: a new query on an old ledger reads
        whole segments first, whatever its limit.

        A stream may have the name of a queue that was: what the ledger has is not of it. What is
        gone may have been one, unless the ledger goes on where it was read to.
        """
        shelves = self._ledger.shelves()
        ends: Positions = {}
        for queue, position in positions.items():
            starts = shelves.of(queue).starts
            kind = queues[queue].kind if queue in queues else ""
            is_queue = kind != STREAM if kind else position in starts
            if is_queue and starts and starts[-1] >= position:
                segment = self._ledger.read(queue, starts[-1])
                if segment is not None:
                    ends[queue] = segment.end
        return ends

    def _means(
        self, positions: Positions, ready: Mapping[str, int], queues: Mapping[str, QueueInfo]
    ) -> dict[str, int]:
        """What a message of each queue weighed lately; of a stream, what the next ones weigh."""
        streams = {queue for queue in ready if queues[queue].kind == STREAM}
        if plain := ready.keys() - streams:
            self._weights.of_queues(self._ledger, plain)
        ahead = {queue: positions[queue] for queue in streams if ready[queue]}
        self._weights.of_streams(ahead, self._stream_weight)
        return self._weights.means(ready)

    def _stream_weight(self, queue: str, at: int) -> tuple[int, int]:
        ask = partial(self._asked, partial(stream_weight, queue=queue, at=at))
        return self._of_stream(queue, ask) or (0, 0)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        ledger = end["ledger"]
        if ledger:
            self._ledger.require(ledger)
        last = positions_of(end)
        first = first_of(start, end, self._begun(positions_of(start), last, ledger))
        names = [name for name in last if last[name] > first.get(name, 0)]
        left_out = self._left_out(first, last, names) if ledger else []
        kinds = self._kinds([name for name in names if name not in left_out], ledger)
        modes = dict.fromkeys(left_out, LEFT_OUT)
        modes |= {name: mode_of(info) for name, info in kinds.items()}
        counts = {name: info.counts for name, info in kinds.items()}
        tasks = self._options.min_partitions or default_tasks()
        planned = spread(first, {name: last[name] for name in modes}, tasks)
        queues = [name for name, mode in modes.items() if mode not in (STREAM, LEFT_OUT)]
        suspects = self._trust.suspects(queues, last)
        return [
            QueuePartition(
                [
                    Range(name, at, end, modes[name], name in suspects, counts.get(name, False))
                    for name, at, end in task
                ],
                ledger,
                # Of a first batch that is run again, only its end is as it was.
                source_of(end),
            )
            for task in planned
        ]

    def _begun(self, start: Positions, end: Positions, ledger: str) -> Positions:
        """Where those queues of a batch began that came since ``start``, also such as are not to
        be read any more."""
        queues = self._queues()
        begin = self._new(start, queues)
        absent = end.keys() - start.keys() - queues.keys()
        if ledger and absent:
            shelves = self._ledger.shelves()
            known = {name: shelves.of(name).starts for name in absent}
            begin |= {name: starts[0] for name, starts in known.items() if starts}
        return begin

    def _left_out(self, first: Positions, last: Positions, names: Sequence[str]) -> list[str]:
        """Of these, the queues that the option ``queues`` no longer means, and of which nothing
        was taken for this batch: why they are not to be read may be that they can't be."""
        names = [name for name in names if not self._options.means(name)]
        if not names:
            return []
        ledger, shelves = self._ledger, self._ledger.shelves()
        names = [
            name
            for name in names
            if is_untouched(ledger, shelves.of(name), name, first.get(name, 0), last[name])
        ]
        # What the ledger has rows of is no stream. Of others the broker says what they are.
        unknown = [name for name in names if not shelves.of(name).starts]
        kinds = self._asked(partial(self._catalog.kinds, names=unknown)) if unknown else {}
        found = [
            name
            for name in names
            if name not in unknown or (name in kinds and kinds[name].kind not in ("", STREAM))
        ]
        for name in found:
            log.warning(
                "queue %s is not in the option 'queues' any more: what a batch was to take of it "
                "before that, offsets %d to %d, stays in the queue",
                name,
                first.get(name, 0),
                last[name],
            )
        return found

    def _kinds(self, names: Sequence[str], ledger: str) -> dict[str, QueueInfo]:
        """What the queues of a batch are, that are to be read. The batch may be older than the
        option ``queues``, and what was a stream must not be drained."""
        kinds = self._asked(partial(self._catalog.kinds, names=names))
        if ledger:
            return kinds
        # A batch without a ledger has streams only. One that is gone took its messages with it.
        for gone in (name for name, info in kinds.items() if info.kind != STREAM):
            self._options.require_there(gone)
            log.warning(GONE, gone)
        return {name: info for name, info in kinds.items() if info.kind == STREAM}

    def commit(self, end: Offset) -> None:
        """Forget what Spark does not need any more; not each time, for it lists all files."""
        now = time.monotonic()
        if not end["ledger"] or now < self._prune_at:
            return
        if forget(self._ledger, positions_of(end), self._options.retention_s):
            self._prune_at = now + self._options.retention_s * _PRUNE_PACE

    # -- the broker ------------------------------------------------------------------------------
    def _ready(self, positions: Positions, queues: Mapping[str, QueueInfo]) -> dict[str, int]:
        ready = self._asked(self._catalog.ready)
        for name in _streams(queues):
            position = positions.get(name, 0)
            end = self._of_stream(name, partial(self._stream_end, name, position))
            if end is not None:
                ready[name] = max(0, end - position)
        return ready

    def _starts(self, streams: Iterable[str], wanted: str) -> Positions:
        """Where streams start, without those that are gone."""
        found = {}
        for name in sorted(streams):
            start = partial(stream_start, queue=name, wanted=wanted)
            found[name] = self._of_stream(name, partial(self._asked, start))
        return {name: at for name, at in found.items() if at is not None}

    def _of_stream(self, name: str, ask: Callable[[], T]) -> T | None:
        """What a stream answers; None if it is gone, as it may be."""
        try:
            return ask()
        except Unavailable:
            raise
        except NotFound:
            self._catalog.lose(name)
            return None

    def _stream_end(self, name: str, position: int) -> int:
        """Where a stream ends; 0: nothing is in it yet. Raises StreamReplaced."""
        deadline = time.monotonic() + self._options.drain_timeout_s
        while True:
            end = self._asked(partial(stream_end, queue=name))
            # Where it is to begin may lie ahead of it: nothing was read of it then.
            if not 0 < end < position or str(position) == self._options.starting_offset:
                return end
            # The node that was asked may have a copy that is behind the others' for a moment.
            if time.monotonic() >= deadline:
                raise StreamReplaced(name, position, end)
            time.sleep(_RETRY_S)

    def _queues(self) -> dict[str, QueueInfo]:
        return self._asked(self._catalog.queues)

    def _asked(self, question: Callable[[BlockingConnection], T]) -> T:
        """Ask the broker; a connection that was there before is made again for a while."""
        deadline: float | None = None
        while True:
            try:
                return question(self._connected())
            except BROKEN as error:
                self.close()  # it was idle for long, or the broker is being restarted
                now = time.monotonic()
                deadline = deadline or now + (RECONNECT_S if self._was_connected else 0.0)
                if now >= deadline or isinstance(error, LoginRefused | VhostRefused):
                    raise
                time.sleep(_RETRY_S)

    def _connected(self) -> BlockingConnection:
        if self._link is None or not self._link.is_open:
            # Nobody sends heartbeats while Spark does something else.
            endpoints = [endpoint.but(heartbeat_s=0) for endpoint in self._options.endpoints]
            self._link = BlockingConnection.open(endpoints, name="warren spark driver")
            self._trust.lose()
            self._was_connected = True
        return self._link

    def close(self) -> None:
        if self._link is not None:
            self._link.abandon()
            self._link = None


def forget(ledger: Ledger, reached: Positions, retention_s: float) -> bool:
    """Prune a ledger. Nothing waits for it: what can't be done now is for the next time (False)."""
    try:
        gone = ledger.prune(reached, older_than=time.time() - retention_s)
    except LedgerUnusable as error:
        log.warning("segments that are no longer needed stay for now: %s", error.reason)
        return False
    if gone:
        log.debug("%d segments pruned from %s", gone, ledger.place)
    return True


def _streams(queues: Mapping[str, QueueInfo]) -> list[str]:
    return [name for name, info in queues.items() if info.kind == STREAM]


def _require_readable(queues: Mapping[str, QueueInfo], names: Iterable[str]) -> None:
    """Raises NotSingleActive before an offset is given: a batch that Spark has written down is run
    again until it is done."""
    for name in names:
        if name in queues:
            mode_of(queues[name])


def mode_of(info: QueueInfo) -> str:
    """How a queue is read; one that is gone is left to the drain, which will see."""
    return STREAM if info.kind == STREAM else info.mode
