"""Publishing with confirms: a window of messages in flight, kept full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bench.load import frames
from bench.load.clock import Stopwatch, Took
from bench.load.link import Link, LoadError, received, unexpected

WINDOW = 2_000  # unconfirmed messages in flight, at most
BATCH = 100  # messages a send, at most
BATCH_BYTES = 1 << 18

Batch = tuple[bytes, int]  # a blob and how many messages it holds


class Confirms:
    """Counts what the broker has confirmed: single and multiple acks, in any order."""

    def __init__(self) -> None:
        self.upto = 0  # every tag up to this one is confirmed
        self._early: set[int] = set()  # and these beyond it
        self._rest = b""

    @property
    def count(self) -> int:
        return self.upto + len(self._early)

    def feed(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        whole = len(data) - len(data) % frames.ACK.size
        self._rest = data[whole:]
        upto, prefix = self.upto, frames.ACK_PREFIX
        for head, tag, multiple, _ in frames.ACK.iter_unpack(memoryview(data)[:whole]):
            if head != prefix:
                raise unexpected(data[data.find(head) :])
            if tag == upto + 1 or (multiple and tag > upto):
                upto = tag
            elif tag > upto:
                self._early.add(tag)
        self.upto = upto
        if self._early:
            self._catch_up()

    def _catch_up(self) -> None:
        self._early = {tag for tag in self._early if tag > self.upto}
        while self.upto + 1 in self._early:
            self.upto += 1
            self._early.remove(self.upto)


class Publisher:
    """Publishes on a link's channel, which it puts into confirm mode."""

    def __init__(self, link: Link, window: int = WINDOW) -> None:
        self._window = window
        link.call(frames.confirm_select(), (85, 11))
        self._sock = link.sock
        self._confirms = Confirms()
        self._sent = 0

    def run(self, batches: Iterable[Batch]) -> Took:
        """Send the batches, never more than the window ahead; done when all is confirmed."""
        confirms, send, receive = self._confirms, self._sock.sendall, self._sock.recv
        sent, window = self._sent, self._window
        watch = Stopwatch()
        for blob, messages in batches:
            while sent + messages - confirms.count > window:
                confirms.feed(received(receive(1 << 16)))
            send(blob)
            sent += messages
        while confirms.count < sent:
            confirms.feed(received(receive(1 << 16)))
        took = watch.stop()
        self._sent = sent
        if confirms.count != sent:
            raise LoadError(f"{confirms.count} confirms for {sent} messages")
        return took

    def fill(self, queue: str, body: bytes, count: int, *, persistent: bool = False) -> Took:
        """Publish ``count`` equal messages to one queue."""
        message = frames.publish("", queue, body, persistent=persistent)
        return self.run(equal_batches(message, count))


def equal_batches(message: bytes, count: int) -> Iterator[Batch]:
    """``count`` times the same message, as many to a send as are worth it."""
    each = max(1, min(BATCH, BATCH_BYTES // len(message)))
    blob = message * each
    for _ in range(count // each):
        yield blob, each
    if count % each:
        yield message * (count % each), count % each
