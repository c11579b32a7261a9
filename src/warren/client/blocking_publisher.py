"""Publishing in bulk on a blocking connection: windows of confirms, and nothing forgotten.

A message is in one of three places: ``waiting`` (not sent), ``sent`` (and not confirmed), or done.
When the connection breaks, what was sent goes back to the front of what waits and travels again on
the next connection: at least once, and in order.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from warren.amqp import methods as m
from warren.amqp.client_hot import encode_message, publish_frame
from warren.client.blocking import BlockingChannel
from warren.client.endpoint import Endpoint
from warren.client.idle_beats import IdleBeats
from warren.client.publish_columns import CHANNEL, route_of
from warren.client.publish_connection import PublishConnection
from warren.errors import (
    ConnectionForced,
    ConnectionLost,
    HostUnreachable,
    InternalError,
    Nacked,
    PublisherBlocked,
    Unconfirmed,
    Unroutable,
    VhostRefused,
    WarrenError,
)

log = logging.getLogger(__name__)

#: A broker that is not there, or not yet: one that starts has no virtual hosts at first.
_ABSENT = (HostUnreachable, VhostRefused)
#: What may be better on another connection, or a moment later.
_PASSING = (*_ABSENT, ConnectionLost, ConnectionForced, InternalError, TimeoutError)
_CHUNK_BYTES = 1 << 18
_SLOWEST_RETRY_S = 5.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PublishRules:
    """How long to wait, how often to try again, and what becomes of what no queue takes."""

    window: int = 5_000
    confirm_timeout_s: float = 60.0
    blocked_timeout_s: float = 300.0
    #: How long a broker that is gone is tried again. RabbitMQ needs a quarter of a minute to start.
    reconnect_s: float = 60.0
    #: How often in a row a message that the broker refuses (basic.nack) is tried again.
    retries: int = 8
    #: fail, drop or deadletter.
    unroutable: str = "fail"
    dead_letter_exchange: str = ""


@dataclass(slots=True)
class PublishCounts:
    """What became of the messages."""

    confirmed: int = 0
    dropped: int = 0
    dead_lettered: int = 0
    nacked: int = 0
    reconnects: int = 0


class _ConfirmChannel(BlockingChannel):
    """Passes on what concerns a publisher."""

    publisher: BlockingPublisher

    def confirm(self, delivery_tag: int, multiple: bool, ack: bool) -> None:
        self.publisher.settle(delivery_tag, multiple, ack)

    def content(self, method: m.Method, properties: bytes, body: bytes) -> None:
        if isinstance(method, m.BasicReturn):
            self.publisher.returned(method, properties, body)


class BlockingPublisher:
    """Publishes encoded messages (``publish_columns``) and sees to it that each is confirmed.

    ::

        with BlockingPublisher([endpoint]) as publisher:
            publisher.publish(messages)
            publisher.finish()
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        rules: PublishRules | None = None,
        *,
        name: str = "warren publisher",
        patient: bool = True,
    ) -> None:
        """``patient``: a broker that is not there from the start is waited for, too."""
        self.rules = rules or PublishRules()
        self.counts = PublishCounts()
        self._endpoints, self._name = endpoints, name
        self._waiting: deque[bytes] = deque()
        self._sent: deque[bytes] = deque()
        self._first_tag = 1
        #: Tags confirmed out of turn.
        self._settled: set[int] = set()
        self._nacked: list[bytes] = []
        self._nacked_rounds = 0
        self._failure: WarrenError | None = None
        self._moved_at = time.monotonic()
        self._blocked_since: float | None = None
        self._tries = 0
        self._failing_since: float | None = None
        self._idle = IdleBeats()
        self._waits_for_broker = patient
        self._link: PublishConnection | None = None
        self._channel: _ConfirmChannel | None = None

    # -- for the user ----------------------------------------------------------------------------
    @property
    def unconfirmed(self) -> int:
        """Messages that were given and are not done."""
        return len(self._waiting) + len(self._sent) - len(self._settled) + len(self._nacked)

    @property
    def is_blocked(self) -> bool:
        """The broker has said that it takes no messages at the moment."""
        return self._blocked_since is not None

    @property
    def frame_max(self) -> int:
        """The largest frame that the broker takes; connects if need be."""
        with self._idle.in_use:
            return self._do(lambda: self._connected().session.frame_max)

    def publish(self, messages: Sequence[bytes]) -> None:
        """Send them as the window allows; some may still be unconfirmed on return.

        Heartbeats go on until the next call, however long that takes.

        Raises:
            Unroutable, Nacked, Unconfirmed, PublisherBlocked: the broker has not taken a message.
            Refusal: such as an exchange that is not there.
        """
        with self._idle.in_use:
            self._raise_failure()
            if not self.unconfirmed:
                self._failing_since = None
            self._waiting.extend(messages)
            while self._waiting:
                self._do(self._step)

    def finish(self) -> None:
        """Return when every message is confirmed.

        Raises:
            What ``publish`` raises: also of what it has left unconfirmed.
        """
        with self._idle.in_use:
            self._raise_failure()
            while self._waiting or self._sent or self._nacked:
                self._do(self._step)

    def close(self) -> None:
        with self._idle.in_use:
            self._idle.watch(None)
            if self._link is not None:
                self._link.close()

    def abandon(self) -> None:
        """Drop the connection without a word."""
        with self._idle.in_use:
            self._idle.watch(None)
            if self._link is not None:
                self._link.abandon()

    def __enter__(self) -> BlockingPublisher:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    # -- one step at a time ----------------------------------------------------------------------
    def _do(self, step: Callable[[], T]) -> T:
        """Do it on this connection or, when that breaks, on the next."""
        while True:
            try:
                return step()
            except _PASSING as error:
                self._lose(error)

    def _step(self) -> None:
        link = self._connected()
        self._raise_refusal()  # before a channel that is closed is written to
        if link.blocked_by is None and self._waiting and self._room() >= self._worth_sending():
            link.push(self._chunk(), self._watch)
        elif self._sent:
            link.pump(0.1)
        else:
            self._retry_nacked(link)
        self._watch()

    def _room(self) -> int:
        # Who was refused many messages first tries those again.
        if len(self._nacked) >= self.rules.window:
            return 0
        return self.rules.window - len(self._sent)

    def _worth_sending(self) -> int:
        """So much room is waited for: message by message costs the broker a read each."""
        return min(len(self._waiting), max(1, self.rules.window // 4))

    def _chunk(self) -> bytes:
        """The next messages as one write; from here on they count as sent."""
        waiting, most, size = self._waiting, self._room(), 0
        chunk: list[bytes] = []
        while waiting and len(chunk) < most and size < _CHUNK_BYTES:
            message = waiting.popleft()
            chunk.append(message)
            size += len(message)
        if not self._sent:  # from here on a confirm is waited for
            self._moved_at = time.monotonic()
        self._sent.extend(chunk)
        return b"".join(chunk)

    def _retry_nacked(self, link: PublishConnection) -> None:
        """All else is settled: after a pause, the refused ones once more, on a new connection."""
        if not self._nacked:
            link.pump(0.1)
            return
        self._nacked_rounds += 1
        if self._nacked_rounds > self.rules.retries:
            raise Nacked(*route_of(self._nacked[0]))
        deadline = time.monotonic() + _pause_s(self._nacked_rounds)
        while (left := deadline - time.monotonic()) > 0:
            link.pump(left)
        self._waiting.extendleft(reversed(self._nacked))
        self._nacked.clear()
        # On another channel: one on which RabbitMQ 3.10 publishes to a quorum queue for the first
        # time, while its leader is gone and no other elected, refuses for ever.
        self._idle.watch(None)
        link.close()
        self._link = self._channel = None
        self._first_tag = 1

    def _raise_failure(self) -> None:
        """Raise that a message came back. Its confirm follows, and then nothing is unconfirmed: who
        heard both between two calls, for the heart reads there, would find all well."""
        if self._failure is not None:
            raise self._failure

    def _raise_refusal(self) -> None:
        """Raise what was refused, also between two calls."""
        self._raise_failure()
        channel = self._channel
        if channel is not None and not channel.is_open and channel.failure is not None:
            raise channel.failure

    def _watch(self) -> None:
        """Raise what was refused, or that something has lasted too long."""
        self._raise_refusal()
        link, now = self._link, time.monotonic()
        blocked_by = link.blocked_by if link is not None else None
        if blocked_by is not None:
            if self._blocked_since is None:
                self._blocked_since = now
                log.warning("the broker takes no messages at the moment: %s", blocked_by)
            waited = now - self._blocked_since
            if waited > self.rules.blocked_timeout_s:
                raise PublisherBlocked(blocked_by, waited)
            self._moved_at = now
        elif self._blocked_since is not None:
            log.warning("the broker takes messages again, after %.1f s", now - self._blocked_since)
            self._blocked_since, self._moved_at = None, now
        elif self._sent and now - self._moved_at > self.rules.confirm_timeout_s:
            raise Unconfirmed(
                *route_of(self._sent[0]), f"no confirm in {self.rules.confirm_timeout_s:g} s"
            )

    # -- what the broker says --------------------------------------------------------------------
    def settle(self, tag: int, multiple: bool, ack: bool) -> None:
        """A confirm: all up to ``tag``, or that one."""
        self._moved_at = time.monotonic()
        self._tries, self._failing_since = 0, None
        sent, settled = self._sent, self._settled
        if multiple and ack and not settled:
            count = max(0, min(tag - self._first_tag + 1, len(sent)))
            for _ in range(count):
                sent.popleft()
            self._first_tag += count
            self._confirmed(count)
        elif multiple:
            while sent and self._first_tag <= tag:
                self._leave(sent.popleft(), ack)
        elif tag == self._first_tag and sent:
            self._leave(sent.popleft(), ack)
        elif self._first_tag < tag < self._first_tag + len(sent) and tag not in settled:
            settled.add(tag)
            if ack:
                self._confirmed()
            else:
                self._refused(sent[tag - self._first_tag])
        while settled and self._first_tag in settled:
            settled.remove(self._first_tag)
            sent.popleft()
            self._first_tag += 1

    def _leave(self, message: bytes, ack: bool) -> None:
        if self._first_tag in self._settled:
            self._settled.remove(self._first_tag)
        elif ack:
            self._confirmed()
        else:
            self._refused(message)
        self._first_tag += 1

    def _confirmed(self, count: int = 1) -> None:
        self.counts.confirmed += count
        self._nacked_rounds = 0

    def _refused(self, message: bytes) -> None:
        self.counts.nacked += 1
        self._nacked.append(message)

    def returned(self, method: m.BasicReturn, properties: bytes, body: bytes) -> None:
        """No queue took it; its confirm follows."""
        rules, exchange, routing_key = self.rules, method.exchange, method.routing_key
        again = rules.unroutable == "deadletter" and exchange == rules.dead_letter_exchange
        if rules.unroutable == "fail" or again:
            self._failure = Unroutable(exchange, routing_key, method.reply_code, method.reply_text)
        elif rules.unroutable == "drop":
            self.counts.dropped += 1
        else:
            assert self._link is not None
            publish = publish_frame(
                CHANNEL, rules.dead_letter_exchange, routing_key, mandatory=True
            )
            frame_max = self._link.session.frame_max
            self._waiting.append(encode_message(publish, CHANNEL, properties, body, frame_max))
            self.counts.dead_lettered += 1

    # -- connections -----------------------------------------------------------------------------
    def _connected(self) -> PublishConnection:
        if self._link is not None:
            if not self._link.is_open:  # it broke while nobody used it
                raise self._link.session.failure or ConnectionLost(self._link.address, "it broke")
            return self._link
        link = PublishConnection.open(self._endpoints, name=self._name)
        assert isinstance(link, PublishConnection)
        try:
            channel = link.begin_channel(_ConfirmChannel)
            channel.publisher = self
            channel.expect(m.ChannelOpenOk)
            assert channel.number == CHANNEL, "messages are encoded for the first channel"
            channel.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        except BaseException:
            link.abandon()
            raise
        self._link, self._channel = link, channel
        self._idle.watch(link)
        self._waits_for_broker = True
        return link

    def _lose(self, error: Exception) -> None:
        """The connection is gone: what it had not confirmed waits again, and goes first."""
        now = time.monotonic()
        self._tries += 1
        self._failing_since = now if self._failing_since is None else self._failing_since
        left_s = self._failing_since + self.rules.reconnect_s - now
        absent = isinstance(error, _ABSENT) and not self._waits_for_broker
        if absent or left_s <= 0:
            raise error
        self._idle.watch(None)
        if self._link is not None:
            self._link.abandon()
            self.counts.reconnects += 1
        again = [
            message
            for tag, message in enumerate(self._sent, self._first_tag)
            if tag not in self._settled
        ]
        self._link = self._channel = self._blocked_since = None
        self._waiting.extendleft(reversed(again))
        self._sent.clear()
        self._settled.clear()
        self._first_tag = 1
        log.warning("%s; trying again with %d unconfirmed messages", error, self.unconfirmed)
        time.sleep(min(_pause_s(self._tries), left_s))


def _pause_s(tries: int) -> float:
    return min(0.05 * 2.0**tries, _SLOWEST_RETRY_S)
