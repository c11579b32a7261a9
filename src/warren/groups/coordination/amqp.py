"""The default coordinator: through the broker that the messages come from.

On the broker a group has one auto-delete exchange ``warren.<group>`` and three kinds of queues:

* ``warren.<group>.member.<id>``, exclusive: what a member hears.
* ``warren.<group>.dispatcher``: one token, given to the single active consumer. All members
  consume; who holds the token is the dispatcher. Its consumer count is the number of members.
* ``warren.<group>.will.<id>.<life>``: one message that the member holds unacknowledged. The
  dispatcher is its second consumer and gets the message the moment the member's connection ends.

All of it goes with the members. What a member *hears*, the token and the will are on the
connection that its queues are consumed on, so they share its fate. What it *says* goes over a
connection of its own: a broker that runs out of memory stops reading from publishers, and
acknowledgements must not be caught behind a report.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from warren.client.channel import Channel
from warren.client.connection import Connection, connect
from warren.client.delivery import Delivery
from warren.errors import (
    ConnectionLost,
    Fenced,
    NoSuchGroup,
    NotFound,
    PublishFailed,
    ResourceLocked,
    Unroutable,
    WarrenError,
)
from warren.groups.coordination import amqp_words as words
from warren.groups.coordination.amqp_wills import Deposit, Wills
from warren.groups.coordination.amqp_words import ALL, DISPATCHER, Names, key_of
from warren.groups.coordination.base import (
    Assigned,
    Assignment,
    Command,
    Commanded,
    Coordinator,
    Deposed,
    Elected,
    Event,
    GroupState,
    Left,
    Report,
    Reported,
    report_as_dict,
    report_from_dict,
)

log = logging.getLogger(__name__)

#: RabbitMQ closes a channel that holds a message for half an hour: token and will are renewed.
RENEW_S = 600.0
#: How long a new dispatcher waits for members that are there and don't answer the roll call.
ROLL_CALL_S = 1.0
#: How long a name may stay taken by a process that has just died.
FENCE_S = 3.0
#: How long a person waits for the dispatcher's answer, and after how long to ask again: there may
#: be none for a moment, or one that died with the question.
ANSWER_S, UNHEARD_S, NONE_S = 5.0, 2.0, 0.05


class AmqpCoordinator(Coordinator):
    """One member's line to its group, through the broker."""

    renew_s = RENEW_S

    def __init__(self, url: str, group: str, connection: Any = None) -> None:
        super().__init__(url, group, connection)
        self._names = Names(group)
        self._life = secrets.token_hex(4)
        self._report: Report | None = None
        self._tell: Callable[[Event], None] | None = None
        self._ears: Channel | None = None
        self._voice: Connection | None = None
        self._mouth: Channel | None = None
        self._token: Delivery | None = None
        self._will: Delivery | None = None
        self._wills: Wills | None = None
        self._answers: dict[str, Report] | None = None
        #: Commands that came during the roll call, to be heard after it.
        self._early: list[Delivery] = []
        self._lives: dict[str, str] = {}
        self._dead: dict[str, None] = {}
        self._state: bytes | None = None
        self._outline: Any = None
        self._generation = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # -- a member --------------------------------------------------------------------------------
    async def join(self, report: Report, tell: Callable[[Event], None]) -> None:
        self._report, self._tell = report, tell
        await self._open_mouth(report.member)
        await self._open_ears(report.member)
        await self._deposit_will(report.member)
        self._start(self._campaign_loop(), "campaign")
        self._start(self._renew_loop(), "renew")
        self._say_report(DISPATCHER)

    async def report(self, report: Report) -> None:
        self._report = report
        self._say_report(DISPATCHER)

    async def publish(
        self, assignments: Sequence[Assignment], state: GroupState | None = None
    ) -> None:
        if self._wills is None:  # deposed meanwhile
            return
        for each in assignments:
            self._say("assign", words.assignment_as_dict(each), key_of(each.member))
        if state is not None:
            self._state = words.encode(state.as_dict())
            # Who wants to read asks us. All have to know only what the next dispatcher needs.
            outline = words.outline(state)
            if outline != self._outline:
                self._outline = outline
                self._say_bytes("state", self._state, ALL)

    async def leave(self) -> None:
        if self._report is not None and self._mouth is not None:
            with contextlib.suppress(WarrenError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._say("goodbye", [self._report.member, self._life], DISPATCHER)
        await self.close()

    async def close(self) -> None:
        self._tell, self._report = None, None
        tasks = {task for task in self._tasks if task is not asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        wills, self._wills = self._wills, None
        with contextlib.suppress(WarrenError):
            if wills is not None:
                await wills.close()
            for delivery in (self._will, self._token):
                if delivery is not None and delivery.consumer is not None:
                    await delivery.consumer.channel.close()
            if self._ears is not None:
                await self._ears.close()
        if self._voice is not None:
            await self._voice.close()
            self._voice = self._mouth = None

    # -- a person --------------------------------------------------------------------------------
    async def read(self) -> GroupState | None:
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await self._ask("read", None)
        except NoSuchGroup:
            return None
        except TimeoutError:  # there are members, and nobody has been elected so far
            return GroupState(self.group)
        return GroupState.from_dict(answer) if answer is not None else GroupState(self.group)

    async def command(self, command: Command) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._ask("command", asdict(command))
        except TimeoutError:
            raise NoSuchGroup(self.group) from None

    async def _ask(self, kind: str, value: Any) -> Any:
        """Ask the dispatcher over a connection that is made for it, until somebody answers.

        Raises:
            NoSuchGroup: nobody is in the group.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(delivery: Delivery) -> None:
            if not answer.done():
                answer.set_result(words.decode(delivery))

        async with connect(self.url, name=f"{self.group} reader", reconnect=False) as connection:
            channel = await connection.channel()
            queue = (await channel.declare_queue(exclusive=True, auto_delete=True)).name
            # What closes the channel is told by the publish below, in our own words.
            await channel.consume(queue, answered, no_ack=True, on_cancel=lambda error: None)
            while not answer.done():
                heard = await self._is_heard(channel, kind, value, queue)
                await asyncio.wait({answer}, timeout=UNHEARD_S if heard else NONE_S)
            return answer.result()

    async def _is_heard(self, channel: Channel, kind: str, value: Any, reply_to: str) -> bool:
        """Put a question; False if there are members and none of them is the dispatcher."""
        try:
            await channel.publish(
                words.encode(value),
                exchange=self._names.exchange,
                routing_key=DISPATCHER,
                properties=words.properties(kind, reply_to=reply_to),
                mandatory=True,
            )
        except Unroutable:  # the exchange goes with the last member
            return False
        except (PublishFailed, NotFound):
            raise NoSuchGroup(self.group) from None
        return True

    # -- speaking and hearing --------------------------------------------------------------------
    async def _open_mouth(self, member: str) -> None:
        # A network that swallows everything is noticed by both connections after the same time.
        heartbeat_s = self._connected.addresses[0].heartbeat_s
        self._voice = await connect(
            self.url, name=f"{self.group} {member} voice", heartbeat_s=heartbeat_s
        )
        self._mouth = await self._voice.channel()

    async def _open_ears(self, member: str) -> None:
        deadline = asyncio.get_running_loop().time() + FENCE_S
        while True:
            try:
                return await self._try_ears(member)
            except ResourceLocked:
                if asyncio.get_running_loop().time() > deadline:
                    raise Fenced(self.group, member) from None
            except NotFound:
                log.debug("the exchange of %s went while we bound to it", self.group)
            await asyncio.sleep(0.05)

    async def _try_ears(self, member: str) -> None:
        inbox, exchange = self._names.inbox(member), self._names.exchange
        ears = await self._connected.channel(prefetch=0, confirms=False)
        await ears.declare_queue(inbox, exclusive=True, auto_delete=True)
        await ears.declare_exchange(exchange, "direct", auto_delete=True)
        await ears.bind_queue(inbox, exchange, ALL)
        await ears.bind_queue(inbox, exchange, key_of(member))
        await ears.consume(inbox, self._heard, no_ack=True, on_cancel=self._broken)
        self._ears = ears

    @property
    def _connected(self) -> Connection:
        connection = self.connection
        assert isinstance(connection, Connection)
        if connection.state != "open":
            raise ConnectionLost(connection.address, "while joining")
        return connection

    def _say(self, kind: str, value: Any, key: str) -> Any:
        return self._say_bytes(kind, words.encode(value), key)

    def _say_bytes(self, kind: str, body: bytes, key: str, exchange: str | None = None) -> Any:
        assert self._mouth is not None
        return self._mouth.publish(
            body,
            exchange=self._names.exchange if exchange is None else exchange,
            routing_key=key,
            properties=words.properties(kind),
        )

    def _say_report(self, key: str) -> None:
        if self._report is not None and self._mouth is not None:
            self._say("report", [report_as_dict(self._report), self._life], key)

    def _heard(self, delivery: Delivery) -> None:
        try:
            self._understand(delivery)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            # Anybody who may publish to the exchange can say anything.
            log.warning("%s: a message that nobody here wrote: %r", self.group, delivery)

    def _understand(self, delivery: Delivery) -> None:
        kind = delivery.properties.type
        if kind == "assign":
            assignment = words.assignment_from_dict(words.decode(delivery))
            self._generation = max(self._generation, assignment.stamp.generation)
            self._told(Assigned(assignment))
        elif kind == "roll-call":
            if self._will is not None:  # else it would be missed, and we be taken for dead
                self._say_report(key_of(words.decode(delivery)))
        elif kind == "state":
            self._state = delivery.body
        elif self._wills is not None:
            self._heard_as_dispatcher(str(kind), delivery)

    def _heard_as_dispatcher(self, kind: str, delivery: Delivery) -> None:
        if kind == "command" and self._answers is not None:
            self._early.append(delivery)  # who asks is answered when it can be done
            return
        value = words.decode(delivery)
        if kind == "report":
            self._reported(report_from_dict(value[0]), value[1])
        elif kind == "goodbye":
            self._gone(value[0], value[1], died=False)
        elif kind == "command":
            self._told(Commanded(words.command_from_dict(value)))
        if delivery.properties.reply_to:
            answer = self._state or b"null"
            self._say_bytes("answer", answer, delivery.properties.reply_to, exchange="")

    def _told(self, event: Event) -> None:
        if self._tell is not None:
            self._tell(event)

    # -- the will --------------------------------------------------------------------------------
    async def _deposit_will(self, member: str) -> None:
        """Hold a message that the dispatcher gets when this connection ends."""
        deposit = Deposit(self._connected)

        def got(delivery: Delivery) -> None:
            self._will = delivery
            deposit.came()

        queue = self._names.will(member, self._life)
        channel = await self._connected.channel(prefetch=1, confirms=False)
        await channel.declare_queue(queue, **words.queue_options(self._connected.server_properties))
        await channel.consume(queue, got, on_cancel=self._broken)
        self._say_bytes("will", b"{}", queue, exchange="")
        await deposit.held()

    def _broken(self, error: WarrenError) -> None:
        """Deaf, or without a will: others take us for dead. Better a new life than half of one."""
        if self._tell is not None and self.connection.state == "open":
            log.warning("%s begins anew: %s", self.connection, error)
            self.connection.link.abort()

    async def _renew_loop(self) -> None:
        while True:
            await asyncio.sleep(self.renew_s)
            for delivery in (self._will, self._token):
                if delivery is not None and not delivery.stale:
                    await self._renew(delivery)

    async def _renew(self, delivery: Delivery) -> None:
        """Let go of it when the broker has the next one: until then it must be held."""
        try:
            await self._say_bytes("renewed", b"{}", delivery.queue, exchange="")
        except WarrenError as error:  # there is time for two more tries
            log.warning("%s can't renew %s yet: %s", self.connection, delivery.queue, error)
        else:
            delivery.ack()

    # -- election --------------------------------------------------------------------------------
    async def _campaign_loop(self) -> None:
        while self._tell is not None and self.connection.state == "open":
            ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            try:
                await self._stand(ended)
                reason = await ended
            except WarrenError as error:
                reason = str(error)
            self._token = None
            await self._step_down(reason)
            await asyncio.sleep(0.05)

    async def _stand(self, ended: asyncio.Future[str]) -> None:
        """Queue up for the token; then there has to be one: once we consume, the queue stays."""

        def on_cancel(error: WarrenError) -> None:
            if not ended.done():
                ended.set_result(str(error))

        queue = self._names.token
        channel = await self._connected.channel(prefetch=1, confirms=False)
        await channel.declare_queue(queue, **words.queue_options(self._connected.server_properties))
        await channel.consume(queue, self._got_token, on_cancel=on_cancel)
        self._say_bytes("token", b"{}", queue, exchange="")

    def _got_token(self, delivery: Delivery) -> None:
        first, self._token = self._token is None, delivery
        if first:
            self._start(self._take_over(), "take over")

    async def _take_over(self) -> None:
        if self._ears is None or self._report is None:  # about to leave
            return
        answers = self._answers = {}
        self._wills = Wills(self._connected, self._names, self._died)
        self._say("roll-call", self._report.member, ALL)
        self._start(self._announce(self._ears, self._report.member), "announce")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROLL_CALL_S):
                await self._wait_for_answers(answers)
        if self._answers is not answers:  # the token was taken away meanwhile
            return
        self._answers = None
        state = words.state_from(self._state)
        self._told(Elected(self._generation, tuple(answers.values()), state))
        early, self._early = self._early, []
        for delivery in early:
            self._heard(delivery)

    async def _announce(self, ears: Channel, member: str) -> None:
        """Be found from now on by those who join, and hear of those who joined meanwhile.

        A binding takes RabbitMQ its time; the queues of a dead dispatcher don't wait for that.
        """
        await ears.bind_queue(self._names.inbox(member), self._names.exchange, DISPATCHER)
        self._say("roll-call", member, ALL)

    async def _wait_for_answers(self, answers: Mapping[str, Report]) -> None:
        """Until all have answered that stand for election; those who die meanwhile don't count."""
        assert self._ears is not None
        while True:
            there = (await self._ears.declare_queue(self._names.token, passive=True)).consumers
            if len(answers) >= there:
                return
            await asyncio.sleep(0.005)

    async def _step_down(self, reason: str) -> None:
        wills, self._wills, self._answers, self._early = self._wills, None, None, []
        if wills is None:
            return
        self._told(Deposed(reason))
        with contextlib.suppress(WarrenError):
            await wills.close()
            if self._ears is not None and self._report is not None:
                inbox = self._names.inbox(self._report.member)
                await self._ears.unbind_queue(inbox, self._names.exchange, DISPATCHER)

    def _reported(self, report: Report, life: str) -> None:
        assert self._wills is not None
        if life in self._dead:
            return
        before = self._lives.get(report.member)
        if before is not None and before != life:  # back under its name before we heard of its end
            self._gone(report.member, before, died=True)
        self._lives[report.member] = life
        if life != self._life:
            self._wills.watch(report.member, life)
        self._generation = max(self._generation, report.stamp.generation)
        if self._answers is not None:
            self._answers[report.member] = report
        else:
            self._told(Reported(report))

    def _died(self, member: str, life: str) -> None:
        self._gone(member, life, died=True)

    def _gone(self, member: str, life: str, *, died: bool) -> None:
        if life in self._dead or self._wills is None:
            return
        self._dead[life] = None
        self._lives.pop(member, None)
        self._wills.forget(member)
        if self._answers is not None:
            self._answers.pop(member, None)
        else:
            self._told(Left(member, died))

    def _start(self, work: Any, what: str) -> None:
        task = asyncio.create_task(work, name=f"{what} of {self.group}")
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, WarrenError):
                log.debug("%s ended: %s", task.get_name(), error)
            else:
                log.error("%s failed", task.get_name(), exc_info=error)
