"""The ledger: what was drained from queues, written down before it is acknowledged.

A queue forgets what was acknowledged, and Spark reads offsets again after a failure. Between them
stands this folder of files. The law:

1.  An offset of a queue is a place in the ledger. A **segment** holds the messages from one offset
    (``start``) to another (``end``); it may hold fewer than ``end - start``, never more. Segments
    of a queue don't overlap, and a range that Spark asks for is a chain of them.
2.  A segment is made whole or not at all, and never replaced. Of two tasks that drained the same
    offset, one makes the segment; the other lets go of its messages unacknowledged.
3.  Messages are acknowledged only when the segment that holds them will survive a power cut.
4.  When the broker has surely read the acknowledgement, the segment is **settled** (a mark beside
    it). Until then it is **in doubt**: the broker may or may not give its messages out again. A
    mark without a segment that stands before others is of one that was forgotten, and deleted. One
    behind all others tells of a segment that was lost, for the last is never forgotten: then
    nothing is made there.
5.  A drain compares every *redelivered* message with what segments in doubt hold. What is there is
    dropped, and acknowledged with the rest; each row of a segment stands for one message only.
    What was taken last stands in front of what was never taken (a quorum queue may put it behind
    what came back before): an equal message without an id further behind is another one.
6.  A broker that was killed may forget acknowledgements it had read. So redelivered messages are
    compared with the youngest settled segments as well; here a message is dropped only if exactly
    one row looks like it: looks alone must not lose one of two equal messages.
7.  A quorum queue may give messages out again, and void their acknowledgement, on a connection that
    lives. So redelivered messages with ids are compared with the youngest settled segments at any
    time; those without only when the drain itself has seen that something was taken back.
8.  A segment stays in doubt until each of its messages came back and was dropped, or until a drain
    has seen the queue's end, or a message that stands behind all that was taken (on a classic
    queue any other one, else one that was never handed out before) and that can't have overtaken
    (priority queues), while it had the queue to itself.
9.  A quorum queue puts what it takes back behind what it took back before. Who has taken all of it
    knows the order by the counts of deliveries; who takes a part does not. So the mark says whether
    messages went back out of their order, and the next drain takes all that came back.
10. ``prune`` forgets segments that Spark has committed, but never one in doubt, nor a queue's last,
    nor those written shortly before it. A mark says where what is kept begins. What stands before
    that was made by an attempt that slept until its offsets were forgotten, and died before it
    looked; it holds messages that are for later offsets, and is no part of the ledger.

Files of a ledger, all in one folder (``docs/guide/ledger.md`` has the details)::

    ledger.json                format and id
    owner.json                 the query that may use it
    <queue>@<start>.arrow      a segment: Arrow IPC file, LZ4; the queue's name percent-encoded.
                               Small ones of several queues may be one file with several names
    <queue>@<start>.settled    its mark
    <queue>@<start>.unordered  the same, where messages behind it went back out of their order
    <queue>@<start>.forgotten  what stood before this offset is forgotten
    plan-<token>.json          what a batch read has settled on (``spark.read_plan``)
"""

from __future__ import annotations

import json
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from warren.errors import (
    LedgerDamaged,
    LedgerGone,
    LedgerInUse,
    LedgerMismatch,
    LedgerTooNew,
    LedgerUnusable,
)
from warren.spark.ledger.files import Files
from warren.spark.ledger.names import (
    FORGOTTEN,
    SEGMENT,
    SETTLED,
    UNORDERED,
    file_name,
    name_of,
    parse_name,
    stem_of,
)
from warren.spark.ledger.places import open_files
from warren.spark.ledger.segment import FORMATS, Segment, decode_segment, encode_segments

_MARKER, _OWNER = "ledger.json", "owner.json"
#: Queue and start of a segment, and whether messages behind it went back out of their order.
Settled = tuple[str, int, bool]
#: What is wrong with a segment that only its mark tells of.
MISSING = "it is missing, and its mark says that its messages were acknowledged"


@dataclass(slots=True)
class Shelf:
    """The segments of one queue by start, and which of them are settled."""

    starts: list[int] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    #: Of these, those behind which messages went back out of their order.
    disturbed: set[int] = field(default_factory=set)
    #: Before these, what had been committed was forgotten; and what was made there since.
    floors: list[int] = field(default_factory=list)
    overtaken: list[int] = field(default_factory=list)

    def arrange(self) -> None:
        """In order; without what counts no more."""
        self.starts.sort()
        floor = max(self.floors, default=0)
        if self.starts and floor <= self.starts[-1]:  # else somebody has deleted all there was
            kept = bisect_left(self.starts, floor)
            self.overtaken, self.starts = self.starts[:kept], self.starts[kept:]

    @property
    def unordered(self) -> bool:
        """Messages went back out of their order when the last segment was settled."""
        return bool(self.starts) and self.starts[-1] in self.disturbed

    @property
    def in_doubt(self) -> list[int]:
        return [start for start in self.starts if start not in self.settled]

    @property
    def missing(self) -> list[int]:
        """Marks behind the last segment: the last one is never forgotten, so theirs were lost."""
        last = self.starts[-1] if self.starts else -1
        return sorted(start for start in self.settled if start > last)

    def has(self, start: int) -> bool:
        """Is there a segment that begins just there?"""
        at = bisect_right(self.starts, start)
        return at > 0 and self.starts[at - 1] == start

    def after(self, start: int) -> int | None:
        """Where the next segment behind ``start`` begins; None if there is none."""
        at = bisect_right(self.starts, start)
        return self.starts[at] if at < len(self.starts) else None


class Shelves(dict[str, Shelf]):
    """Shelves by the stem of their files' names."""

    def of(self, queue: str) -> Shelf:
        return self.get(stem_of(queue)) or Shelf()


class Ledger:
    """One ledger; cheap to open, keeps nothing of its rows in memory."""

    def __init__(self, files: Files) -> None:
        self.files = files
        #: The id of the ledger that is written to, once it is known.
        self._id: str | None = None

    @classmethod
    def at(cls, path: str) -> Ledger:
        return cls(open_files(path))

    @property
    def place(self) -> str:
        return self.files.place

    # -- whose it is -----------------------------------------------------------------------------
    def identity(self) -> str | None:
        """The ledger's id; None if there is no ledger yet. Raises LedgerTooNew."""
        data = self.files.read(_MARKER)
        if data is None:
            return None
        try:
            marker = json.loads(data)
            found, identity = marker["format"], str(marker["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerDamaged(self.place, _MARKER, str(error)) from None
        if found not in FORMATS:
            raise LedgerTooNew(self.place, str(found), FORMATS[-1])
        return identity

    def create(self) -> str:
        """The ledger's id; makes the ledger if there is none.

        Raises LedgerUnusable where files that are there can be replaced.
        """
        if self.identity() is None:
            if any(name.endswith(SEGMENT) for name in self.files.names()):
                raise LedgerDamaged(self.place, _MARKER, "it is missing")
            self.files.make()
            marker = {"format": FORMATS[-1], "id": secrets.token_hex(8)}
            self.files.put_new(_MARKER, json.dumps(marker).encode())
        self._require_kept()
        made = self.identity()
        assert made is not None
        self._id = made
        return made

    def _require_kept(self) -> None:
        """Try the law's second point, with octets that do no harm where it does not hold: a driver
        or a store may take the condition on which it is to write, and ignore it."""
        marker = self.files.read(_MARKER)
        if marker is not None and self.files.put_new(_MARKER, marker):
            raise LedgerUnusable(
                self.place,
                "a file that is there is replaced when it is made again, so of two tasks both "
                "would take theirs for kept; an object store must know conditional writes, and "
                "its driver ask for them (s3fs, gcsfs and adlfs do since 2024.12.0)",
            )

    def require(self, identity: str) -> None:
        """Raise LedgerGone unless this is the ledger of that id."""
        known = self.identity()
        if known != identity:
            reason = "it is gone" if known is None else f"its id is {known}, not {identity}"
            raise LedgerGone(self.place, reason)
        self._id = identity

    def require_there(self) -> None:
        """Raise LedgerGone unless what was just written is in the ledger that we began with.

        A folder may be deleted, or what was mounted there be gone, while a task drains; and where
        there are no folders, a file is made wherever it is put.
        """
        known = self._id or self.identity()
        if known is None:
            raise LedgerGone(self.place, "it is gone")
        self.require(known)

    def claim(self, owner: str) -> None:
        """Make the ledger this query's own, for good; raises LedgerInUse."""
        data = self.files.read(_OWNER)
        if data is None:
            self.files.put_new(_OWNER, json.dumps({"owner": owner}).encode())
            data = self.files.read(_OWNER) or b"{}"
        try:
            found = json.loads(data)
        except ValueError as error:
            raise LedgerDamaged(self.place, _OWNER, str(error)) from None
        if not isinstance(found, dict) or "owner" not in found:
            raise LedgerDamaged(self.place, _OWNER, "it names no query")
        known = found["owner"]
        if known != owner:
            raise LedgerInUse(self.place, str(known), owner)

    # -- segments --------------------------------------------------------------------------------
    def shelves(self) -> Shelves:
        """All segments by queue, as they are now."""
        shelves = Shelves()
        for name in self.files.names():
            found = parse_name(name)
            if found is None:
                continue
            stem, start, suffix = found
            shelf = shelves.get(stem)
            if shelf is None:  # every task does this, and there may be 100,000 files
                shelf = shelves[stem] = Shelf()
            if suffix == SEGMENT:
                shelf.starts.append(start)
            elif suffix == FORGOTTEN:
                shelf.floors.append(start)
            else:
                shelf.settled.add(start)
                if suffix == UNORDERED:
                    shelf.disturbed.add(start)
        for shelf in shelves.values():
            shelf.arrange()
        return shelves

    def read(self, queue: str, start: int) -> Segment | None:
        """A segment; None if there is none. Raises LedgerDamaged."""
        return self.read_stem(stem_of(queue), start)

    def read_stem(self, stem: str, start: int) -> Segment | None:
        """The same by the stem of its file's name."""
        name = name_of(stem, start, SEGMENT)
        data = self.files.read(name)
        if data is None:
            return None
        try:
            return decode_segment(data, stem, start)
        except (pa.ArrowInvalid, OSError, ValueError, KeyError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise LedgerDamaged(self.place, name, reason) from None

    def is_in_doubt(self, queue: str, start: int) -> bool:
        """Whether a segment still is: nobody has settled it, and perhaps forgotten it since."""
        # Marks first: who forgets a segment deletes them last.
        names = [file_name(queue, start, suffix) for suffix in (SETTLED, UNORDERED)]
        if any(self.files.read(name) is not None for name in names):
            return False
        return self.files.read(file_name(queue, start, SEGMENT)) is not None

    def write(self, segment: Segment) -> bool:
        """Make a segment that survives a power cut; False if another was first."""
        name = file_name(segment.queue, segment.start, SEGMENT)
        return self.files.put_new(name, encode_segments([segment]))

    def take_out(self, queue: str, start: int) -> None:
        """Remove a segment again, by who has made it and acknowledged none of its messages."""
        self.files.delete(file_name(queue, start, SEGMENT))

    def write_together(self, segments: Sequence[Segment]) -> list[bool]:
        """Make small segments that share a file; of each, False if another was first."""
        names = [file_name(segment.queue, segment.start, SEGMENT) for segment in segments]
        made = self.files.put_shared(names, encode_segments(segments))
        return made if made is not None else [self.write(segment) for segment in segments]

    def sync(self) -> None:
        """Have the names of all files survive a power cut, also those of who died in between."""
        self.files.sync()

    def settle(self, queue: str, start: int, *, unordered: bool = False) -> None:
        """Mark a segment settled. A mark that is lost does no harm: the next drain makes it.

        ``unordered``: messages behind it go back to the queue out of their order.
        """
        self.settle_all([(queue, start, unordered)])

    def settle_all(self, settled: Sequence[Settled]) -> None:
        """The same for many."""
        self.files.put_empty(
            [
                file_name(queue, start, UNORDERED if unordered else SETTLED)
                for queue, start, unordered in settled
            ]
        )

    def chain(
        self,
        queue: str,
        start: int,
        end: int,
        *,
        require: Callable[[Segment], None] = lambda _: None,
    ) -> Iterator[Segment]:
        """The segments from ``start`` on, each read when it is asked for: they may be many.

        ``require`` is told of each first: who made it says more than that it does not fit.
        """
        at = start
        while at < end:
            segment = self.read(queue, at)
            if segment is None:
                break
            require(segment)
            if segment.queue != queue or segment.end > end or segment.end <= at:
                raise LedgerMismatch(
                    self.place,
                    queue,
                    f"Spark asks for {start} to {end}, but a segment reaches from {at} to "
                    f"{segment.end}; two queries may have used this ledger, or one query has "
                    "loaded the queue twice (a join or a union with itself does)",
                )
            yield segment
            at = segment.end

    # -- forgetting ------------------------------------------------------------------------------
    def prune(self, committed: Mapping[str, int], *, older_than: float) -> int:
        """Forget what Spark has committed and what was written before ``older_than``."""
        reached = {stem_of(queue): end for queue, end in committed.items()}
        shelves = self.shelves()
        gone: dict[str, list[int]] = {}
        for stem, shelf in shelves.items():
            for start in prunable(shelf, reached.get(stem, 0)):
                if self.files.modified_at(name_of(stem, start, SEGMENT)) >= older_than:
                    break
                gone.setdefault(stem, []).append(start)
        floors = {stem: shelves[stem].starts[len(starts)] for stem, starts in gone.items()}
        # First: from here on, nobody makes anything there.
        self.files.put_empty([name_of(stem, at, FORGOTTEN) for stem, at in floors.items()])
        for stem, shelf in shelves.items():
            for start in [*shelf.overtaken, *gone.get(stem, [])]:
                self.files.delete(name_of(stem, start, SEGMENT))
                self._delete_marks(stem, start, shelf)
            self._drop_stray_marks(stem, shelf)  # of a prune that was cut short
            self._keep_floor(stem, shelf, floors.get(stem, max(shelf.floors, default=0)))
        return sum(map(len, gone.values()))

    def _keep_floor(self, stem: str, shelf: Shelf, floor: int) -> None:
        """Delete the marks of what was forgotten before."""
        for other in shelf.floors:
            if other != floor:
                self.files.delete(name_of(stem, other, FORGOTTEN))

    def drop_stray_marks(self, queue: str, shelf: Shelf) -> None:
        """Delete marks whose segment is gone: they must not count for one that is made there next.

        Before any is made. If another attempt has just made one and settled it, that one is in
        doubt again, and cleared up. Raises LedgerDamaged if it was the last of its queue that is
        gone: its offsets would be given to other messages.
        """
        stem = stem_of(queue)
        if shelf.floors and max(shelf.floors) > max(shelf.starts, default=-1):
            self._keep_floor(stem, shelf, -1)  # all was deleted: offsets may begin anew
        for start in shelf.missing:
            name = name_of(stem, start, SEGMENT)
            if self.files.read(name) is None:
                raise LedgerDamaged(self.place, name, MISSING)
            self._delete_marks(stem, start, shelf)
        self._drop_stray_marks(stem, shelf)

    def _drop_stray_marks(self, stem: str, shelf: Shelf) -> None:
        for start in shelf.settled.difference(shelf.starts, shelf.missing):
            self._delete_marks(stem, start, shelf)

    def _delete_marks(self, stem: str, start: int, shelf: Shelf) -> None:
        self.files.delete(name_of(stem, start, SETTLED))
        if start in shelf.disturbed:
            self.files.delete(name_of(stem, start, UNORDERED))


def prunable(shelf: Shelf, committed: int) -> Iterable[int]:
    """Starts of segments that nobody needs: committed, settled, and not the last.

    Nothing behind one in doubt: a query that begins with what is kept must find no gap.
    """
    reached = bisect_right(shelf.starts, committed)
    # The segment that begins at or before ``committed`` ends there at the latest if the next
    # begins there; of the last one the end is not known from its name, and it is kept anyway.
    for start in shelf.starts[: max(0, min(reached, len(shelf.starts)) - 1)]:
        if start not in shelf.settled:
            return
        yield start
