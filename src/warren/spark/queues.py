"""Which queues a query reads, what kind they are, and how many messages wait in them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from glob import escape

from warren.client.blocking import BlockingConnection
from warren.client.blocking_questions import count_ready, queue_kind
from warren.errors import (
    ConfigError,
    KindUnknown,
    ManagementError,
    NotFound,
    PreconditionFailed,
    QueueAutoDeletes,
    QueueExclusive,
    ResourceLocked,
)
from warren.spark.listing import Listing, why
from warren.spark.options import SOURCE, SourceOptions
from warren.spark.plan import is_pattern
from warren.spark.queue_info import QueueInfo
from warren.spark.returns import warn_of_limit
from warren.spark.stream import STREAM

log = logging.getLogger(__name__)

#: Who looks this often sees when a queue goes; else it may have come back as another kind. That is
#: asked before something is read of it (of a stream before it is asked where it ends), and of all
#: of them at times: not more often, for RabbitMQ's log has a line for each question about a kind.
_SEEN_S, _SEEN_AT_TIMES_S = 60.0, 3600.0


class Catalog:
    """The queues that the option ``queues`` means, asked anew each time: new ones are found."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._link: BlockingConnection | None = None
        self._looked_at = clock()
        self._listing = Listing(options)
        self._known: dict[str, QueueInfo] = {}
        self._warned = False
        #: Quorum queues that were looked at for a delivery limit.
        self._weighed: set[str] = set()
        #: Those that may be of another kind by now; and those that are likely to be the same.
        self._doubted: set[str] = set()
        self._unseen: set[str] = set()
        #: Queues whose node is down.
        self._down: set[str] = set()

    def queues(self, link: BlockingConnection) -> dict[str, QueueInfo]:
        """All of them; a queue that is not there yet has no kind.

        Raises QueueAutoDeletes, QueueExclusive, KindUnknown.
        """
        self._doubt_after_a_gap(link)
        names = [name for name in self._options.queues if not is_pattern(name)]
        patterns = [name for name in self._options.queues if is_pattern(name)]
        if patterns:
            self._list(patterns)
        for name in names:
            if name in self._doubted or name not in self._known or not self._known[name].kind:
                self._learn(self._ask(link, name))
        self._require_lasting()
        self._warn_of_limits(link)
        if not self._known and not self._warned:
            log.warning("no queue matches %s yet", ", ".join(patterns))
            self._warned = True
        return {name: self._known[name] for name in sorted(self._known)}

    def kinds(self, link: BlockingConnection, names: Iterable[str]) -> dict[str, QueueInfo]:
        """What is known of these queues, whether the option means them or not; after ``queues``.

        Raises KindUnknown.
        """
        return {name: self._known.get(name) or self._ask(link, name) for name in names}

    def have_changed(self, link: BlockingConnection, names: Iterable[str]) -> bool:
        """Whether one of these, which are to be read now, is not what ``queues`` took it for: it
        may have come since.

        Those of patterns are: they come from a list that was made just now.
        """
        named = set(names).intersection(self._options.queues)
        unseen = {name for name in named if name in self._unseen or not self._known[name].kind}
        before = {name: self._known[name] for name in unseen}
        # All of them before any is learned: the connection may break in the middle.
        for info in [self._ask(link, name) for name in sorted(unseen)]:
            self._learn(info)
        self._unseen -= unseen
        return any(self._known[name] != info for name, info in before.items())

    def ready(self, link: BlockingConnection) -> dict[str, int]:
        """Ready messages of those that are there, streams aside; after ``queues``.

        A queue whose node is down has none for anybody until it is back: that is told once.
        Raises QueueMissing for one that was named and must be there.
        """
        plain = [name for name, info in self._known.items() if info.kind != STREAM]
        ready: dict[str, int] = {}
        for name, count in count_ready(link, sorted(plain)).items():
            if isinstance(count, int):
                ready[name] = count
                self._down.discard(name)
            elif count is not None:
                ready[name] = 0
                if name not in self._down:
                    log.warning("left out until it is back: %s", count)
                self._down.add(name)
            else:
                self.lose(name)
        return ready

    @property
    def reads_streams(self) -> bool:
        """Whether there are some among the queues; after ``queues``."""
        return any(info.kind == STREAM for info in self._known.values())

    def lose(self, name: str) -> None:
        """A queue is gone, and may come back as another kind: so its kind is forgotten.

        Raises QueueMissing if it was named and must be there.
        """
        if self._known[name].kind:
            self._listing.forget()
        self._known[name] = QueueInfo(name)
        self._options.require_there(name)

    def _doubt_after_a_gap(self, link: BlockingConnection) -> None:
        """What nobody watched may have been deleted, and declared as another kind."""
        now = self._clock()
        unseen_s = now - self._looked_at
        if unseen_s > _SEEN_S:
            self._unseen = set(self._known)
        if link is not self._link or unseen_s > _SEEN_AT_TIMES_S:
            self._doubted = set(self._known)
            self._listing.begin(link)
        self._link, self._looked_at = link, now

    def _learn(self, info: QueueInfo) -> None:
        if info.kind:
            self._known[info.name] = info
            self._doubted.discard(info.name)
            self._unseen.discard(info.name)
        else:  # its node is down; or it is gone, which ``ready`` sees as well
            self._known.setdefault(info.name, info)

    def _list(self, patterns: list[str]) -> None:
        """New queues of the patterns; those that are gone go."""
        try:
            found = {info.name: info for info in self._listing.queues()}
        except ManagementError as error:
            raise ConfigError(
                "queues",
                f"the pattern '{patterns[0]}' needs the management API, which can't be asked "
                f"({why(error)}): say where it is with the option managementUrl, or name the "
                "queues one by one",
                SOURCE,
            ) from None
        for pattern in patterns:
            _require_no_name(pattern, found)
        plain = {name: info for name, info in self._known.items() if name in self._options.queues}
        self._known = {
            name: info
            for name, info in found.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        } | plain

    def _require_lasting(self) -> None:
        for name, info in self._known.items():
            if info.auto_delete:
                wanted = self._options.queues
                by = "" if name in wanted else next(p for p in wanted if fnmatchcase(name, p))
                raise QueueAutoDeletes(name, by)

    def _warn_of_limits(self, link: BlockingConnection) -> None:
        """Once a queue; to look gives messages back once, and no more."""
        quorum = {name for name, info in self._known.items() if info.kind == "quorum"}
        for name in sorted(quorum - self._weighed):
            if not self._known[name].dead_letters and not self._options.peek:
                said = self._known[name].delivery_limit
                warn_of_limit(name, said, link.session.server_properties)
        self._weighed |= quorum

    def _ask(self, link: BlockingConnection, name: str) -> QueueInfo:
        try:
            kind = queue_kind(link, name)
        except NotFound:
            return QueueInfo(name)
        except ResourceLocked:
            raise QueueExclusive(name, self._options.endpoints[0].vhost) from None
        except PreconditionFailed:
            return self._look_up(name, cut=True)
        if kind is None:  # users who only read may not configure queues, so they are not told
            return self._look_up(name)
        return QueueInfo(
            name,
            kind.type,
            kind.single_active,
            kind.auto_delete,
            kind.delivery_limit,
            kind.dead_letters,
        )

    def _look_up(self, name: str, *, cut: bool = False) -> QueueInfo:
        try:
            return self._listing.queue(name)
        except ManagementError as error:
            user = self._options.endpoints[0].user
            raise KindUnknown(name, user, why(error), cut) from None


def _require_no_name(pattern: str, found: Mapping[str, QueueInfo]) -> None:
    """Raises ConfigError if a queue is called just as the pattern, which finds neither it nor any
    other."""
    if pattern in found and not any(fnmatchcase(name, pattern) for name in found):
        raise ConfigError(
            "queues",
            f"'{pattern}' is a pattern, and no queue fits it; the queue of just that name is "
            f"written '{escape(pattern)}'",
            SOURCE,
        )
