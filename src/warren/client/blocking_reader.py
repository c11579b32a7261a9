"""Reading queues in bulk: one queue on a channel of its own, all that is there, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, repeat
from operator import add

from warren.amqp import methods as m
from warren.amqp.client_runs import Run
from warren.amqp.tables import Table
from warren.client.blocking import BlockingChannel, BlockingConnection
from warren.errors import Refusal, WarrenError

EXCLUSIVE, SINGLE_ACTIVE = "exclusive", "single active"


class Deliveries:
    """Messages of one queue in the order they came, not yet decoded."""

    __slots__ = ("bodies", "body_bytes", "properties", "property_bytes", "redelivered", "routes")

    def __init__(self) -> None:
        self.routes: list[bytes] = []
        self.properties: list[bytes] = []
        self.bodies: list[bytes] = []
        #: Indices of those that were handed out before.
        self.redelivered: list[int] = []
        self.body_bytes = self.property_bytes = 0

    def __len__(self) -> int:
        return len(self.bodies)

    def keep(self, count: int) -> None:
        """Forget all but the first."""
        del self.routes[count:], self.properties[count:], self.bodies[count:]
        self.redelivered = [index for index in self.redelivered if index < count]
        self.body_bytes = sum(map(len, self.bodies))
        self.property_bytes = sum(map(len, self.properties))

    @property
    def octets(self) -> int:
        """Of all that may be heavy: headers can be 128 KiB a message."""
        return self.body_bytes + self.property_bytes

    def rearrange(self, order: Sequence[int]) -> None:
        """Put them into another order, given by their indices."""
        again = set(self.redelivered)
        self.redelivered = [place for place, index in enumerate(order) if index in again]
        self.routes = [self.routes[index] for index in order]
        self.properties = [self.properties[index] for index in order]
        self.bodies = [self.bodies[index] for index in order]


class Tap(BlockingChannel):
    """Takes up to ``wanted`` messages; everything is asked at once and nothing waited for.

    That a queue has no more is known after two answers: the first says that nothing is ready (so
    all there was is on its way to this channel), the second comes behind what was on its way.
    """

    def __init__(self, connection: BlockingConnection) -> None:
        super().__init__(connection)
        self.run: Run | None = Run(self._deliver_run)
        self.queue = ""
        self.wanted = 0
        #: Messages that the broker may give out; as many as are wanted, or more.
        self.window = 0
        self.took = Deliveries()
        self.last_tag = 0
        #: Nothing more is there.
        self.exhausted = False
        self.consuming = False
        #: Consumers of the queue before this one came; None until it is known.
        self.others: int | None = None
        self.refusal: WarrenError | None = None
        self.synced = False
        #: Everything that was taken is acknowledged by ``settle``, and the window is full.
        self.filled = False
        #: ``settle`` was called, and not yet answered if not ``synced``.
        self.settling = False
        #: While settling, a message came that had been handed out before: perhaps one of these.
        self.again = False
        self._cancelled = False
        self._asked = 0
        self._empty = False
        self._acknowledged = self._ignored = 0
        #: Tags of what was taken, if not in the order they came.
        self._tags: list[int] | None = None
        #: Not all that came is among these.
        self._is_cut = False
        self._in_transaction = False
        self._stopped = False

    # -- asking ----------------------------------------------------------------------------------
    def start(self, queue: str, mode: str, wanted: int, window: int = 0) -> None:
        """Ask the broker for messages; the channel may still be opening.

        The window is what we want, to the message, unless told: what is given out beyond it comes
        back flagged redelivered, and counted on quorum queues.
        """
        self.queue = queue
        self.others = None
        self._declare()
        self._consume(mode, wanted, max(wanted, window))

    def _consume(self, mode: str, wanted: int, window: int) -> None:
        self.wanted, self.window = wanted, window
        self.took = Deliveries()
        self.exhausted = self._empty = self.synced = self.settling = self.filled = False
        self.again = self._is_cut = False
        self._tags = None
        self.send(m.BasicQos(prefetch_count=window))
        self.send(
            m.BasicConsume(
                queue=self.queue,
                consumer_tag="warren",
                exclusive=mode == EXCLUSIVE,
                arguments=self.arguments(),
            )
        )
        self._declare()

    def arguments(self) -> Table:
        return Table()

    def go_on(self, mode: str, wanted: int) -> None:
        """Take more from the same queue, after ``settle``."""
        self._consume(mode, wanted, wanted)

    def ask(self) -> None:
        """Find out whether there is more, unless an answer is on its way."""
        if not self._asked and not self.exhausted:
            self._declare()

    def look_again(self) -> None:
        """There must be more: who waits for its turn is told of an empty queue, too."""
        self.exhausted = self._empty = self._cancelled

    def ask_whether_settled(self) -> None:
        """The same after ``settle``, if the broker could not say."""
        if not self._asked and not self.synced:
            self._declare()

    def _declare(self) -> None:
        self._asked += 1
        self.send(m.QueueDeclare(queue=self.queue, passive=True))

    def settle(self, indices: Sequence[int]) -> None:
        """Acknowledge some of what was taken, and have the broker say that it read it.

        Sent with the next ``pump`` or ``flush`` of the connection."""
        self._acknowledged += len(indices)
        tags = self._tags_taken()
        if not indices:
            acks = []
        elif len(indices) == len(tags) and not self._is_cut:
            acks = [m.BasicAck(self.last_tag, multiple=True)]
        elif self._tags is None and list(indices) == list(range(len(indices))):
            acks = [m.BasicAck(tags[indices[-1]], multiple=True)]
        else:
            self._begin()
            acks = [m.BasicAck(tags[index]) for index in indices]
        if self._tags is not None:
            gone = set(indices)
            self._tags = [tag for index, tag in enumerate(self._tags) if index not in gone]
        self._leave(acks)

    def _begin(self) -> None:
        """From here on, what is settled waits for a commit, and the queue is told all at once."""
        if not self._in_transaction:
            self._in_transaction = True
            self.send(m.TxSelect())

    def keep_octets(self, most: int) -> bool:
        """Let go of what is more than so many octets, but for the first message."""
        took = self.took
        if took.octets <= most or len(took) == 1:
            return False
        octets = accumulate(map(add, map(len, took.bodies), map(len, took.properties)))
        count = max(1, sum(1 for total in octets if total <= most))
        if self._tags is not None:
            self._tags, self._is_cut = self._tags[:count], True
        else:
            self.last_tag -= len(took) - count
            self._ignored += len(took) - count
        took.keep(count)
        return True

    def rearrange(self, order: Sequence[int]) -> None:
        """Put what was taken into another order."""
        tags = self._tags_taken()
        self._tags = [tags[index] for index in order]
        self.took.rearrange(order)

    @property
    def rearranged(self) -> bool:
        return self._tags is not None

    @property
    def unordered(self) -> bool:
        """What will go back came out of its order, or is a part of what had come back."""
        return self.again or (self.rearranged and self.held > 0)

    def _tags_taken(self) -> Sequence[int]:
        first = self.last_tag - len(self.took) + 1
        return self._tags or range(first, self.last_tag + 1)

    def _leave(self, acknowledgements: list[m.BasicAck]) -> None:
        if self.filled:
            # Or the broker fills the window again, for nothing. In one write with the
            # acknowledgement: nobody comes in between. Never when messages are left that are not
            # acknowledged here: the next consumer would start behind them.
            self.send(m.BasicCancel("warren", nowait=True))
        for method in acknowledgements:
            self.send(method)
        if self._in_transaction:
            self.send(m.TxCommit())
        self.settling = True
        self.consuming = False
        self._declare()

    def stop(self) -> None:
        """Close the channel without waiting: what is not acknowledged goes back as it came.

        Nothing is rejected or cancelled before: the queue has it back in the same moment in which
        the next consumer gets its turn, also where its leader learns of it late. After a cancel
        the next one may be given what stands behind it first (seen on RabbitMQ 3.10).
        """
        self._stopped = True
        super().stop()

    # -- being told ------------------------------------------------------------------------------
    def deliver(
        self,
        consumer_tag: bytes,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        if self.settling or self._stopped:
            self.again = self.again or redelivered
            self._ignored += 1
            return  # came while we were leaving: goes back with the channel
        took = self.took
        if redelivered:
            took.redelivered.append(len(took.bodies))
            self.look_again()  # until now we may have waited for our turn
        took.routes.append(route)
        took.properties.append(properties)
        took.bodies.append(body)
        took.body_bytes += len(body)
        took.property_bytes += len(properties)
        self.last_tag = delivery_tag

    def _deliver_run(self, run: Run) -> None:
        count = len(run.bodies)
        if self.settling or self._stopped:
            self.again = self.again or run.redelivered
            self._ignored += count
            return
        took = self.took
        if run.redelivered:
            took.redelivered.extend(range(len(took), len(took) + count))
            self.look_again()
        took.routes.extend(repeat(run.route, count))
        took.properties.extend(run.properties)
        took.bodies.extend(run.bodies)
        took.body_bytes += sum(map(len, run.bodies))
        took.property_bytes += count * len(run.properties[0])  # in a run they are of one length
        self.last_tag = run.last_tag

    def method(self, method: m.Method) -> None:
        if isinstance(method, m.QueueDeclareOk):
            self._declared(method)
        elif isinstance(method, m.BasicConsumeOk):
            self.consuming = True
        elif isinstance(method, m.BasicCancel):
            self.exhausted = self._cancelled = True  # the queue was deleted

    def _declared(self, method: m.QueueDeclareOk) -> None:
        self._asked -= 1
        if self.others is None:
            self.others = method.consumer_count
        elif self.settling:
            known = method.consumer_count or self.filled or self._cancelled
            self.synced = self._asked == 0 and bool(known)
        elif not self.consuming or not method.consumer_count:
            # No consumer, though we are one: RabbitMQ says 0 and 0 of a quorum queue whose leader
            # it can't reach, or whose leader has lost sight of us.
            return
        elif self._empty:
            self.exhausted = True
        elif method.message_count == 0:
            self._empty = True
            self._declare()

    def closed(self, refusal: Refusal | None) -> None:
        super().closed(refusal)
        self.refusal = refusal

    @property
    def done(self) -> bool:
        return self.exhausted or len(self.took.bodies) >= self.window

    @property
    def held(self) -> int:
        """Messages that came and are not acknowledged."""
        return self.last_tag + self._ignored - self._acknowledged
