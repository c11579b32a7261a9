"""Which queues give out what nobody has had: all others are compared with the ledger first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from warren.spark.ledger.ledger import Ledger
from warren.spark.plan import Positions


class Trust:
    """A broker that was restarted may have forgotten acknowledgements that it had read.

    So a queue is suspected until messages were taken from it, and compared, over the connection
    that the driver has. That a batch was planned with it does not say so: one that is run again
    has its rows in the ledger, and an action that wants few rows does not ask for all tasks.
    """

    def __init__(self) -> None:
        self.lose()

    def lose(self) -> None:
        """The connection is gone: nobody knows what has become of the broker since."""
        self._trusted: set[str] = set()
        #: The end that was planned last, and what of each queue the ledger had not.
        self._end: Positions = {}
        self._new: dict[str, range] = {}
        #: The same of queues that were suspected when a batch began: what it writes counts.
        self._suspected: dict[str, range] = {}

    def plan(self, begin: Mapping[str, int], end: Positions, held: Iterable[str]) -> None:
        """A batch may come that ends there; of the ``held`` ones the ledger has all of it."""
        new = {queue: range(begin.get(queue, 0), at) for queue, at in end.items()}
        self._end, self._new = end, {queue: new[queue] for queue in new.keys() - set(held)}

    def suspects(self, queues: Iterable[str], end: Positions) -> set[str]:
        """Those of these that are to be compared by the batch that ends there, which begins now."""
        found = set(queues).difference(self._trusted)
        if end == self._end:
            self._suspected |= {queue: self._new[queue] for queue in found & self._new.keys()}
        return found

    @property
    def waits(self) -> bool:
        """There are queues of which the ledger may say by now that they were read."""
        return bool(self._suspected)

    def see(self, ledger: Ledger) -> None:
        """What is in the ledger by now was compared. A segment without rows says nothing of the
        messages to come: who waits behind a dead consumer makes one."""
        shelves = ledger.shelves()
        for queue, written in list(self._suspected.items()):
            starts = [start for start in shelves.of(queue).starts if start in written]
            reached = 0
            for start in starts:  # one by one: they are large, and the first mostly has rows
                segment = ledger.read(queue, start)
                if segment is not None and segment.rows:
                    self._trusted.add(queue)
                    reached = written.stop
                    break
                reached = segment.end if segment is not None else reached
            if (
                reached >= written.stop
            ):  # what had nothing is compared by a batch that has something
                del self._suspected[queue]
