"""What a Spark source, sink or session can run into."""

from __future__ import annotations

from typing import ClassVar

from warren.errors.base import WarrenError


class SourceError(WarrenError):
    """A Spark source can't go on.

    ``goes_on``: nothing is lost, and once the reason is gone, the query goes on where it was.
    """

    goes_on: ClassVar[bool] = True


class LedgerError(SourceError):
    """A ledger that can't be used; nothing was acknowledged that is not safe in it."""

    #: It may be gone, or another's: each says for itself what is to be done.
    goes_on = False


class LedgerUnusable(LedgerError):
    """The ledger's files can't be read or written."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} can't be used ({self.reason}); what could not be written "
            "there was not acknowledged, so nothing is lost: make room or repair access, and "
            "start the query again"
        )


class LedgerDamaged(LedgerError):
    """A file of the ledger is not what was written."""

    def __init__(self, place: str, file: str, reason: str) -> None:
        super().__init__(place, file, reason)
        self.place, self.file, self.reason = place, file, reason

    def __str__(self) -> str:
        if self.file.endswith(".json"):
            remedy = ", or delete it" if self.file == "owner.json" else ""
            remedy = ", or load() again" if self.file.startswith("plan-") else remedy
            return (
                f"{self.file} in the ledger {self.place} is damaged ({self.reason}); it holds no "
                f"messages, they are in the segments beside it: restore it from a backup{remedy}"
            )
        stem = self.file.removesuffix(".arrow")
        return (
            f"{self.file} in the ledger {self.place} is damaged ({self.reason}); the messages in "
            "it were acknowledged and are nowhere else: restore the file from a backup (`warren "
            "ledger verify` lists what is wrong), or give its rows up by deleting it and its mark "
            f"({stem}.settled or {stem}.unordered, if there is one). If the queue has later "
            "segments, the query then says how to go on behind the gap"
        )


class LedgerTooNew(LedgerError):
    """The ledger was written in a format this version does not know."""

    def __init__(self, place: str, found: str, known: int) -> None:
        super().__init__(place, found, known)
        self.place, self.found, self.known = place, found, known

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} has format {self.found}, this warren knows format "
            f"{self.known}; nothing was changed. Use the version of warren that wrote it."
        )


class LedgerGone(LedgerError):
    """The ledger is not the one the query began with."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} is not the one this query began with ({self.reason}): "
            "messages that were acknowledged may be in that one only. Put it back; or, if it is "
            "lost for good, start with a new checkpoint (with spark.read: load() again)"
        )


class LedgerNotSeen(LedgerGone):
    """A task does not find the ledger that the driver has."""

    def __init__(self, place: str, reason: str, host: str, driver: str) -> None:
        super().__init__(place, reason)
        self.args = (place, reason, host, driver)
        self.host, self.driver = host, driver

    def __str__(self) -> str:
        remedy = (
            "it must be where every executor reaches it, not on a disk of the driver's own. "
            "Nothing was taken. Copy it (cp -a) to a folder that all machines have mounted, and "
            "name that; or name a place such as hdfs:// or s3://, with a new checkpoint"
        )
        if "://" in self.place:
            remedy = (
                "executors need the credentials and the endpoint that the driver has (environment "
                "variables by spark.executorEnv). Nothing was taken"
            )
        return (
            f"on {self.host}, where this task runs, the ledger {self.place} is not the one that "
            f"the driver sees on {self.driver} ({self.reason}): {remedy}. If the driver does not "
            "see it any more either, put it back"
        )


class LedgerInUse(LedgerError):
    """The ledger belongs to another query."""

    def __init__(self, place: str, owner: str, asking: str) -> None:
        super().__init__(place, owner, asking)
        self.place, self.owner, self.asking = place, owner, asking

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} belongs to {self.owner}, not to {self.asking}: give this "
            "query a ledger of its own. If the other is gone for good and this one is to go on "
            "from what is kept, delete the ledger's file 'owner.json'"
        )


class LoadedTwice(LedgerError):
    """A query has two sources that read one queue through one ledger."""

    def __init__(self, place: str, queue: str) -> None:
        super().__init__(place, queue)
        self.place, self.queue = place, queue

    def __str__(self) -> str:
        return (
            f"this query loads queue '{self.queue}' twice, or another of its sources read it "
            "before, and each message is there once: a "
            "DataFrame that is joined with itself is two sources to Spark. Write the rows to a "
            "table and read that twice, or use foreachBatch, whose rows are one batch. What was "
            f"taken is in the ledger {self.place}: with a new checkpoint, and that folder's file "
            "'owner.json' deleted, the query begins with it"
        )


class ReadByAnother(LedgerError):
    """Rows that a DataFrame has not read yet were read by another ``load()``."""

    def __init__(self, place: str, queue: str, at: int) -> None:
        super().__init__(place, queue, at)
        self.place, self.queue, self.at = place, queue, at

    def __str__(self) -> str:
        return (
            f"another load() has since read the rows of queue '{self.queue}' from offset {self.at} "
            "on, which this DataFrame has not (an action such as take() or show() reads a part "
            "only): load() again with the option replay=true, which begins with all rows that the "
            f"ledger {self.place} keeps, or without it for what is in the queue now"
        )


class LedgerMismatch(LedgerError):
    """A segment does not fit the offsets that Spark asks for."""

    def __init__(self, place: str, queue: str, reason: str) -> None:
        super().__init__(place, queue, reason)
        self.place, self.queue, self.reason = place, queue, reason

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} and the checkpoint don't belong together: of queue "
            f"'{self.queue}', {self.reason}"
        )


class LedgerPruned(LedgerError):
    """Rows are to be read again that the ledger has forgotten.

    ``since``: the offset that was to be replayed from; None: a DataFrame is used again.
    """

    def __init__(self, place: str, queue: str, since: int | None = None) -> None:
        super().__init__(place, queue, since)
        self.place, self.queue, self.since = place, queue, since

    def __str__(self) -> str:
        if self.since is not None:
            return (
                f"the ledger {self.place} no longer has all rows of queue '{self.queue}' from "
                f"offset {self.since} on: replay=true begins with what it has. To have rows kept "
                "for longer, set the option ledgerRetention"
            )
        return (
            f"the ledger {self.place} no longer has the rows of queue '{self.queue}' that this "
            "DataFrame has read: load() again to read what is in the queue now. To use rows for "
            "longer, cache() or write them, or set the option ledgerRetention"
        )


class ReadTooOld(LedgerError):
    """A DataFrame of long ago is planned, and whether it was before is no longer known."""

    def __init__(self, place: str, age_s: float) -> None:
        super().__init__(place, age_s)
        self.place, self.age_s = place, age_s

    def __str__(self) -> str:
        return (
            f"this DataFrame was made {self.age_s / 3600:.0f} hours ago, and the ledger "
            f"{self.place} no longer knows what it has read, if it was used before: load() again "
            "to read what is in the queues now"
        )


class LedgerGap(LedgerError):
    """Rows that Spark asks for are no longer in the ledger, though later ones are."""

    def __init__(self, place: str, queue: str, at: int, later: int) -> None:
        super().__init__(place, queue, at, later)
        self.place, self.queue, self.at, self.later = place, queue, at, later

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} no longer has the rows of queue '{self.queue}' from offset "
            f"{self.at} on, though it has those from {self.later} on: the checkpoint is older than "
            "the ledger, or a segment was deleted. Nothing was taken from the queue for it. Use "
            "the newest checkpoint, or put the segment back; or start with a new checkpoint and "
            "delete the ledger's file 'owner.json': the new query begins with the oldest rows that "
            "the ledger keeps (delete segments that stand before a gap)"
        )


class QueueMissing(SourceError):
    """A queue that is to be read is not there."""

    def __init__(self, queue: str, vhost: str) -> None:
        super().__init__(queue, vhost)
        self.queue, self.vhost = queue, vhost

    def __str__(self) -> str:
        return (
            f"no queue '{self.queue}' in vhost '{self.vhost}': declare it, correct the option "
            "'queues', or have a stream wait for it with option onMissingQueue=wait"
        )


class QueueAutoDeletes(SourceError):
    """A queue that would go, with what is in it, as soon as it was read or looked at."""

    def __init__(self, queue: str, pattern: str) -> None:
        super().__init__(queue, pattern)
        self.queue, self.pattern = queue, pattern

    def __str__(self) -> str:
        found = f", which the pattern '{self.pattern}' finds," if self.pattern else ""
        other = ", or choose a pattern that does not find it" if self.pattern else ""
        return (
            f"queue '{self.queue}'{found} is declared with auto-delete: when its last consumer "
            "goes, and the source's goes after each batch, the broker deletes it with the messages "
            "that are left. Read from a queue that stays: declare it without auto-delete" + other
        )


class QueueExclusive(SourceError):
    """A queue that belongs to one connection."""

    def __init__(self, queue: str, vhost: str) -> None:
        super().__init__(queue, vhost)
        self.queue, self.vhost = queue, vhost

    def __str__(self) -> str:
        return (
            f"queue '{self.queue}' in vhost '{self.vhost}' is exclusive: only the connection that "
            "declared it may read it, and it goes with that one. Declare it without the exclusive "
            "flag, or give Spark a queue of its own bound to the same exchange"
        )


class QueueUnavailable(SourceError):
    """The node of a cluster that a queue lives on is down."""

    def __init__(self, queue: str, waited_s: float, reason: str) -> None:
        super().__init__(queue, waited_s, reason)
        self.queue, self.waited_s, self.reason = queue, waited_s, reason

    def __str__(self) -> str:
        return (
            f"queue '{self.queue}' has not been there for {self.waited_s:g} s ({self.reason}): its "
            "messages are on a node that is down. Start that node again, and the query; nothing "
            "that is in the ledger is read twice. A quorum queue can do without one of its nodes"
        )


class QueueBusy(SourceError):
    """Somebody else consumes from the queue."""

    def __init__(self, queue: str, waited_s: float) -> None:
        super().__init__(queue, waited_s)
        self.queue, self.waited_s = queue, waited_s

    def __str__(self) -> str:
        return (
            f"queue '{self.queue}' has had another consumer for {self.waited_s:g} s, and order "
            "and exactly-once need it alone: stop the other one (`warren consumers list` or the "
            "management page shows it), or give Spark a queue of its own bound to the same exchange"
        )


class ReadRefused(SourceError):
    """The user may not read the queue."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}: grant that user the permission to read it"


class OffsetGone(SourceError):
    """A stream no longer holds what is to be read next."""

    goes_on = False

    def __init__(self, queue: str, wanted: int, found: int) -> None:
        super().__init__(queue, wanted, found)
        self.queue, self.wanted, self.found = queue, wanted, found

    def __str__(self) -> str:
        return (
            f"stream '{self.queue}' was to be read from offset {self.wanted}, and begins at "
            f"{self.found}: its retention has dropped what lies between. Keep more (x-max-age, "
            "x-max-length-bytes), or go on without it with a new checkpoint"
        )


class StreamReplaced(SourceError):
    """A stream ends before what was read of it: it is another one by the same name."""

    goes_on = False

    def __init__(self, queue: str, reached: int, end: int) -> None:
        super().__init__(queue, reached, end)
        self.queue, self.reached, self.end = queue, reached, end

    def __str__(self) -> str:
        return (
            f"stream '{self.queue}' was read up to offset {self.reached}, and ends at {self.end}: "
            "it was deleted and declared again, or its broker has lost the end of it. To go on "
            "from there would leave its new messages out: start with a new checkpoint, or give "
            "the new stream another name"
        )


class NotSingleActive(SourceError):
    """A quorum queue without a single active consumer."""

    def __init__(self, queue: str) -> None:
        super().__init__(queue)
        self.queue = queue

    def __str__(self) -> str:
        return (
            f"quorum queue '{self.queue}' lets several consumers in at once, so a task that is "
            "thought dead could take messages beside its successor: declare the queue with the "
            "argument x-single-active-consumer=true (it can't be added later: move the messages "
            "to a new queue)"
        )


class KindUnknown(SourceError):
    """Nobody tells what kind of queue it is, so nobody knows how to read it safely.

    ``cut``: the broker would tell, but the queue's name leaves no room for it in the answer.
    """

    def __init__(self, queue: str, user: str, reason: str, cut: bool = False) -> None:
        super().__init__(queue, user, reason, cut)
        self.queue, self.user, self.reason, self.cut = queue, user, reason, cut

    def __str__(self) -> str:
        told, remedy = (
            "over AMQP the broker tells it only to a user who may configure the queue",
            f"Grant user '{self.user}' the permission to configure the queue",
        )
        if self.cut:
            told, remedy = (
                "over AMQP the broker's answer, which has room for 255 octets, is cut behind so "
                "long a name",
                "Give the queue a name of at most 100 octets",
            )
        return (
            f"what kind of queue '{self.queue}' is can't be found out: {told}, and the management "
            f"API can't be asked ({self.reason}). {remedy}, or set the option managementUrl to an "
            "API that the user may read (http://user:password@host:15672)"
        )


class SparkMissing(WarrenError):
    """PySpark can't be imported."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"PySpark is not installed ({self.reason}): pip install '.[spark]' in the clone of "
            "warren"
        )


class JavaMissing(WarrenError):
    """There is no Java that Spark runs on."""

    def __init__(self, oldest: int, found: str = "") -> None:
        super().__init__(oldest, found)
        self.oldest, self.found = oldest, found

    def __str__(self) -> str:
        found = f"{self.found}, which is too old" if self.found else "there is none"
        return (
            f"Spark needs Java {self.oldest} or newer, and neither JAVA_HOME nor PATH nor "
            f"/usr/lib/jvm has it ({found}): install one, as with "
            f"apt-get install openjdk-{self.oldest}-jre-headless, or set JAVA_HOME"
        )


class NotPrepared(WarrenError):
    """What would let Spark start sooner could not be made."""

    exit_code: ClassVar[int] = 1

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason, details)
        self.reason, self.details = reason, details

    def __str__(self) -> str:
        details = f" ({self.details})" if self.details else ""
        return f"Spark could not be prepared: {self.reason}{details}; it works as before without"


class PackageMissing(WarrenError):
    """A package that only ``warren run`` needs can't be imported."""

    def __init__(self, package: str, needed_for: str) -> None:
        super().__init__(package, needed_for)
        self.package, self.needed_for = package, needed_for

    def __str__(self) -> str:
        return (
            f"the package {self.package} is not installed, and {self.needed_for} needs it: "
            "pip install '.[run]' in the clone of warren"
        )


class RowsNotTaken(WarrenError):
    """The broker does not take what the sink publishes."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"
