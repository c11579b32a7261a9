"""A broker of a few rules, in memory: what a drain may rely on, and everything that may go wrong.

It speaks to ``Tap`` as a session does. Frames that a client sent are worked through one by one when
it flushes, so a cut may come between any two of them; what it is told, it hears when it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from warren.amqp import methods as m
from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking import BlockingChannel
from warren.clock import Moment, moment
from warren.errors import (
    AccessRefused,
    ConnectionLost,
    HostUnreachable,
    NotFound,
    PreconditionFailed,
    Unavailable,
)


@dataclass
class Message:
    position: int
    body: bytes
    message_id: str | None = None
    redelivered: bool = False
    #: How often it came back.
    returns: int = 0

    def properties(self, *, counted: bool) -> bytes:
        headers = {"x-delivery-count": self.returns} if self.returns and counted else None
        return encode_properties(Properties(headers=headers, message_id=self.message_id))


@dataclass
class Past:
    """What a quorum queue held before an acknowledgement."""

    ready: list[Message]
    unacked: list[Message]
    published: int

    def __post_init__(self) -> None:
        self.returns = {id(message): message.returns for message in [*self.ready, *self.unacked]}


class Queue:
    """Messages in order. A returned one goes back to its place; in a quorum queue behind those
    that were returned before, and in front of all that nobody had yet."""

    def __init__(self, *, quorum: bool = False) -> None:
        self.quorum = quorum
        self.ready: list[Message] = []
        self.forgettable: list[Message] = []
        #: Of each of them what was there before it was acknowledged.
        self.pasts: list[Past] = []
        self.published = 0
        self.consumer: Holder | None = None
        #: Consumers that come when there is one, if one at a time is active.
        self.waiting: list[Holder] = []
        #: Channels that are closed, of which the queue hears only after so many frames more.
        self.unheard: list[tuple[int, Holder]] = []

    def publish(self, body: bytes, message_id: str | None = None) -> None:
        self.ready.append(Message(self.published, body, message_id))
        self.published += 1

    def give_back(self, messages: list[Message]) -> None:
        for message in messages:
            message.redelivered = True
            message.returns += 1
        if self.quorum:
            had = [message for message in self.ready if message.returns]
            fresh = [message for message in self.ready if not message.returns]
            self.ready = [*had, *messages, *fresh]
        else:
            self.ready = sorted([*self.ready, *messages], key=_position)

    def lose(self, holder: Holder) -> None:
        """A channel is gone: at once all it held is back, and the next consumer begins."""
        if holder in self.waiting:
            self.waiting.remove(holder)
        if self.consumer is holder:
            self.consumer = self.waiting.pop(0) if self.waiting else None
        self.give_back(list(holder.unacked.values()))
        holder.unacked.clear()

    def frame_passes(self) -> None:
        heard = [holder for frames, holder in self.unheard if frames <= 1]
        self.unheard = [(frames - 1, holder) for frames, holder in self.unheard if frames > 1]
        for holder in heard:
            self.lose(holder)

    def hear_all(self) -> None:
        for _, holder in self.unheard:
            self.lose(holder)
        self.unheard = []

    def crash(self, forget: int) -> None:
        """The broker dies: the last acknowledgements are forgotten, all is flagged redelivered."""
        self.hear_all()
        forget = min(forget, len(self.forgettable))
        lost = self.forgettable[len(self.forgettable) - forget :]
        pasts = self.pasts[len(self.pasts) - forget :]
        self.forgettable, self.pasts = [], []
        if self.quorum:
            self._go_back(pasts)
            return
        self.give_back([*lost, *self.ready])
        self.ready = sorted({id(each): each for each in self.ready}.values(), key=_position)

    def _go_back(self, pasts: list[Past]) -> None:
        """Its leader died, and with it the end of its log, from the first of these on; but
        everything up to the last message that was confirmed is in the others' logs."""
        past = next((past for past in pasts if past.published == self.published), None)
        if past is None:
            return
        for message in [*past.ready, *past.unacked]:
            message.returns = past.returns[id(message)]
            message.redelivered = message.returns > 0
        self.ready = list(past.ready)
        self.give_back(past.unacked)


def _position(message: Message) -> int:
    return message.position


class Holder:
    """What the broker knows of one channel."""

    def __init__(self, channel: BlockingChannel, inbox: list[Callable[[], None]]) -> None:
        self.channel = channel
        self.inbox = inbox
        #: That it asks about; None before it does.
        self.queue: Queue | None = None
        self.prefetch = 0
        self.closed = False
        self.unacked: dict[int, Message] = {}
        self.next_tag = 1

    def tell(self, what: Callable[..., None], *about: Any) -> None:
        """The client hears of it when it reads."""
        self.inbox.append(partial(what, *about))


class Link:
    """Stands for a connection; ``session`` is itself."""

    def __init__(self, broker: Model) -> None:
        self.broker = broker
        self.session = self
        self.is_open = True
        self.address = "model"
        self._sent: list[tuple[int, Any]] = []
        self._inbox: list[Callable[[], None]] = []
        self._holders: dict[int, Holder] = {}

    @property
    def alive_at(self) -> Moment:
        return moment()

    # -- what a drain calls ----------------------------------------------------------------------
    def begin_channel(self, kind: Callable[[Any], Any]) -> Any:
        channel = kind(self)
        channel.number = len(self._holders) + 1
        self._holders[channel.number] = Holder(channel, self._inbox)
        return channel

    def send(self, number: int, method: m.Method) -> None:
        self._sent.append((number, method))

    def close_channel(self, number: int) -> None:
        self._sent.append((number, "close"))

    def flush(self) -> None:
        if not self.is_open:
            raise self._gone()
        while self._sent:
            if self.broker.cut_now():
                self.abandon()
                if self.broker.forget_at_cut:
                    self.broker.crash(self.broker.forget_at_cut)
                    self.broker.down = True
                raise self._gone()
            if self.broker.return_now():
                self._return_all()
            number, method = self._sent.pop(0)
            for queue in self.broker.queues:
                queue.frame_passes()
            self._work(self._holders[number], method)

    def beat(self) -> None:
        self.flush()

    def pump(self, timeout_s: float, *, gather: bool = False) -> bool:
        self.flush()
        heard = self._inbox[: self.broker.hears]
        del self._inbox[: len(heard)]
        for hear in heard:
            hear()
        return bool(heard)

    def _gone(self) -> ConnectionLost:
        """The client has found out."""
        error = ConnectionLost("model", "cut")
        for holder in self._holders.values():
            holder.channel.lost(error)
        return error

    def close(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        self.is_open = False
        for holder in self._holders.values():
            self._drop(holder)

    # -- what the broker does --------------------------------------------------------------------
    def _work(self, holder: Holder, method: Any) -> None:
        if holder.closed:
            return
        if isinstance(method, m.QueueDeclare):
            holder.queue = self.broker.of(method.queue)
        queue = holder.queue
        assert queue is not None, "asked about before it is read"
        if method == "close":
            self._drop(holder)
            holder.tell(holder.channel.closed, None)
        elif isinstance(method, m.QueueDeclare) and method.queue in self.broker.missing:
            self._drop(holder)
            holder.tell(holder.channel.closed, NotFound("queue", method.queue, "/"))
        elif isinstance(method, m.QueueDeclare) and method.queue in self.broker.away:
            self._drop(holder)
            holder.tell(holder.channel.closed, Unavailable("its home node is down"))
        elif isinstance(method, m.QueueDeclare):
            waiting = 0 if queue.quorum else len(queue.waiting)  # it doesn't count those
            consumers = int(queue.consumer is not None) + waiting
            if self.broker.is_blind():
                holder.tell(holder.channel.method, m.QueueDeclareOk("q", 0, 0))
            else:
                counts = m.QueueDeclareOk("q", len(queue.ready), consumers)
                holder.tell(holder.channel.method, counts)
        elif isinstance(method, m.BasicQos):
            holder.prefetch = method.prefetch_count
        elif isinstance(method, m.BasicConsume):
            if queue.consumer is None:
                queue.consumer = holder
            elif method.exclusive:
                holder.tell(holder.channel.closed, AccessRefused("exclusive"))
                return
            else:
                queue.waiting.append(holder)
            holder.tell(holder.channel.method, m.BasicConsumeOk("warren"))
        elif isinstance(method, m.BasicCancel):
            queue.consumer = queue.waiting.pop(0) if queue.waiting else None
        elif isinstance(method, m.BasicAck):
            self._ack(holder, method)
        self._deliver(queue)

    def time_out(self) -> None:
        """What RabbitMQ does to channels that acknowledge nothing for half an hour."""
        for holder in [each for each in self._holders.values() if not each.closed]:
            self._drop(holder)
            refusal = PreconditionFailed("delivery acknowledgement on channel 1 timed out")
            holder.tell(holder.channel.closed, refusal)

    def _return_all(self) -> None:
        """What a quorum queue does when its leader has lost sight of the client's node: it takes
        back what it gave out and gives it out again, on the same channel. Old tags are void."""
        for holder in self._holders.values():
            if holder.queue is not None:
                holder.queue.give_back(list(holder.unacked.values()))
                holder.unacked.clear()
        for queue in self.broker.queues:
            self._deliver(queue)

    def _ack(self, holder: Holder, method: m.BasicAck) -> None:
        queue = holder.queue
        assert queue is not None
        past = Past(list(queue.ready), list(holder.unacked.values()), queue.published)
        for tag in sorted(holder.unacked):
            if tag == method.delivery_tag or (method.multiple and tag < method.delivery_tag):
                queue.forgettable.append(holder.unacked.pop(tag))
                queue.pasts.append(past)

    def _deliver(self, queue: Queue) -> None:
        holder = None if self.broker.blind_answers else queue.consumer
        while holder and queue.ready and len(holder.unacked) < holder.prefetch:
            message = queue.ready.pop(0)
            if queue.quorum:  # it gives out only what its log up to here says, on most nodes
                queue.forgettable, queue.pasts = [], []
            holder.unacked[holder.next_tag] = message
            if not holder.closed:
                holder.tell(
                    holder.channel.deliver,
                    b"warren",
                    holder.next_tag,
                    message.redelivered,
                    b"\0\1q",
                    message.properties(counted=queue.quorum),
                    message.body,
                )
            holder.next_tag += 1

    def _drop(self, holder: Holder) -> None:
        if holder.closed:
            return
        holder.closed = True
        queue = holder.queue
        if queue is None:
            return
        if self.broker.late_frames and queue.quorum:
            queue.unheard.append((self.broker.late_frames, holder))
        else:
            queue.lose(holder)


class Model:
    """The broker: a queue, others if they are added, and when to cut connections."""

    def __init__(self, *, quorum: bool = False) -> None:
        self.queue = Queue(quorum=quorum)
        #: Those beside it.
        self.named: dict[str, Queue] = {}
        #: A client hears so many things in one read; None: all that is on its way.
        self.hears: int | None = None
        #: After so many frames the connection is cut; None: never.
        self.frames_to_cut: int | None = None
        #: Then the broker is dead, and has forgotten so many acknowledgements.
        self.forget_at_cut = 0
        #: It needs a moment to start again: the next who connects is refused.
        self.down = False
        #: Queues that are not there.
        self.missing: set[str] = set()
        #: The same of queues whose node is down.
        self.away: set[str] = set()
        #: After so many frames it takes back what it gave out; the connection stays.
        self.frames_to_return: int | None = None
        #: So many questions more are answered by "nothing, and nobody": the queue's leader is not
        #: in sight, and nothing comes from it.
        self.blind_answers = 0
        #: A quorum queue hears only after so many frames that a channel is gone.
        self.late_frames = 0
        #: Also between a cancel and the acknowledgement behind it.
        self.returns_any_time = True
        self.links: list[Link] = []

    @property
    def queues(self) -> list[Queue]:
        return [self.queue, *self.named.values()]

    def add(self, name: str) -> Queue:
        """A queue beside the first."""
        return self.named.setdefault(name, Queue(quorum=self.queue.quorum))

    def of(self, name: str) -> Queue:
        """Every name is that of the first queue, but for those that were added."""
        return self.named.get(name, self.queue)

    def crash(self, forget: int) -> None:
        for queue in self.queues:
            queue.crash(forget)

    def connect(self) -> Any:
        was_down, self.down = self.down, False
        if was_down:
            raise HostUnreachable("model", "down")
        self.links.append(Link(self))
        return self.links[-1]

    def cut_now(self) -> bool:
        if self.frames_to_cut is None:
            return False
        self.frames_to_cut -= 1
        if self.frames_to_cut > 0:
            return False
        self.frames_to_cut = None
        return True

    def return_now(self) -> bool:
        idle = not self.returns_any_time and all(each.consumer is None for each in self.queues)
        if self.frames_to_return is None or idle:
            return False
        self.frames_to_return -= 1
        if self.frames_to_return > 0:
            return False
        self.frames_to_return = None
        return True

    def is_blind(self) -> bool:
        self.blind_answers = max(0, self.blind_answers - 1)
        return bool(self.blind_answers)

    def kill(self, forget: int) -> None:
        for link in self.links:
            link.abandon()
        self.links.clear()
        self.crash(forget)
