"""Which deliveries of a channel are settled, and the fewest frames that say so.

Delivery tags count from 1. An ack with ``multiple`` settles every delivery up to its tag, so it
stands for many acks exactly when everything below is settled too. RabbitMQ wants the tag it names
to be one that is still open, and closes the channel over a tag that is settled twice: both are
seen to here.
"""

from __future__ import annotations


class Settling:
    """The state of one channel's delivery tags."""

    __slots__ = ("_ahead", "_behind", "_count", "_next", "_top")

    def __init__(self) -> None:
        #: Everything below this tag is settled.
        self._next = 1
        #: The highest acked tag below ``_next`` that was not sent, and how many there are.
        self._top = 0
        self._count = 0
        #: Tags above ``_next`` that are settled: acked and not sent; the rest.
        self._ahead: set[int] = set()
        self._behind: set[int] = set()

    def ack(self, tag: int) -> bool:
        """Note an ack to be sent later; False if the tag was settled before."""
        if tag == self._next:
            self._next = tag + 1
            self._top = tag
            self._count += 1
            if self._ahead or self._behind:
                self._advance()
            return True
        if tag < self._next or tag in self._ahead or tag in self._behind:
            return False
        self._ahead.add(tag)
        return True

    def settle(self, tag: int) -> bool:
        """Note a tag that needs no ack (any more); False if it was settled before."""
        if tag < self._next or tag in self._ahead or tag in self._behind:
            return False
        self._behind.add(tag)
        self._advance()
        return True

    def forget(self, last: int) -> None:
        """Everything up to ``last`` is settled: the broker has taken it back."""
        self._next = max(self._next, last + 1)
        self._top = self._count = 0
        self._ahead = {tag for tag in self._ahead if tag >= self._next}
        self._behind = {tag for tag in self._behind if tag >= self._next}
        self._advance()

    def _advance(self) -> None:
        while True:
            if self._next in self._ahead:
                self._ahead.remove(self._next)
                self._top = self._next
                self._count += 1
            elif self._next in self._behind:
                self._behind.remove(self._next)
            else:
                return
            self._next += 1

    def take(self) -> list[tuple[int, bool]]:
        """Acks to send now, as (tag, multiple)."""
        acks = []
        if self._count:
            acks.append((self._top, self._count > 1))
            self._top = self._count = 0
        if self._ahead:
            acks += [(tag, False) for tag in sorted(self._ahead)]
            self._behind |= self._ahead
            self._ahead.clear()
        return acks
