"""Deliveries of one channel that follow each other and look alike, taken many at a time.

Most of a delivery's octets are those of the one before it: the same consumer, exchange and routing
key, property lists of one length. ``client_hot`` takes a delivery apart once; from then on what is
constant is compared and the rest picked out in one step a message. A message that is different in
any way ends the run and goes the longer way again, so nothing is accepted here that would not be
accepted there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct

from warren.amqp.frames import FRAME_END, FRAME_END_BYTE

#: (octets before the tag, between tag and body size, of the property list)
_Lengths = tuple[int, int, int]


@lru_cache(256)
def _struct(before_tag: int, behind_tag: int, properties: int) -> Struct:
    return Struct(f">{before_tag}sQ{behind_tag}sQ{properties}s4sI")


class Run:
    """What the last run of a channel brought, and how its next one is to look."""

    def __init__(self, take: Callable[[Run], None]) -> None:
        #: Told of each run.
        self.take = take
        self.last_tag = 0
        self.redelivered = False
        #: Exchange and routing key as two short strings.
        self.route = b""
        self.properties: list[bytes] = []
        self.bodies: list[bytes] = []
        self._lengths: _Lengths | None = None
        self._struct: Struct | None = None
        self._before = self._after = self._body = b""

    def learn(self, data: bytes, at: int, tag: int, end: int, body: int) -> None:
        """A delivery starts at ``at``, its tag at ``tag``; its method frame ends before ``end``,
        its content header before ``body``, where a body frame starts.

        Two of the same lengths are the beginning of a run.
        """
        lengths = (tag - at, end - tag + 3, body - end - 20)
        if lengths != self._lengths:
            self._lengths, self._struct = lengths, None
            return
        self._struct = _struct(*lengths)
        self._before = data[at:tag]
        self._after = data[tag + 8 : end + 11]
        self._body = FRAME_END_BYTE + data[body : body + 3]
        self.redelivered = data[tag + 8] & 1 == 1
        self.route = data[tag + 9 : end - 1]

    def read(self, data: bytes, at: int) -> int:
        """Take whole deliveries from ``at`` on while they look alike; returns where that ended."""
        struct = self._struct
        if struct is None:
            return at
        self.properties, self.bodies = [], []
        add, note, unpack = self.bodies.append, self.properties.append, struct.unpack_from
        before, after, body = self._before, self._after, self._body
        head, end, next_tag = struct.size, len(data), 0
        while at + head < end:
            its_before, tag, its_after, size, properties, its_body, octets = unpack(data, at)
            start = at + head
            stop = start + size
            if (
                stop >= end
                or data[stop] != FRAME_END
                or octets != size
                or its_before != before
                or its_after != after
                or its_body != body
                or (tag != next_tag and next_tag)
                or not size
            ):
                break
            add(data[start:stop])
            note(properties)
            next_tag = tag + 1
            at = stop + 1
        self.last_tag = next_tag - 1
        return at
