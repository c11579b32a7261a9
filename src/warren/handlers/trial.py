"""``app.test()``: an app's handlers against a real broker that lives as long as the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from warren.client import Connection, Delivery, Properties, connect
from warren.errors import ConfigError
from warren.groups.discovery import is_pattern, matches
from warren.handlers.outbox import encoded
from warren.server.broker import Broker

if TYPE_CHECKING:
    from warren.handlers.app import App

#: Names that begin so are the group's own queues.
_OURS = "warren."
#: How long a reply may be under way when all messages are settled.
REPLY_S = 1.0


class Trial:
    """An app at work on an embedded broker.

    ::

        async with app.test() as trial:
            await trial.publish({"id": 7}, queue="orders.eu")
            await trial.settled()
            assert await trial.dead_letters() == []

    Queues that handlers name are declared; those that fit a pattern when something is published
    to them. Retries do not wait for their backoff unless ``waits=True``.
    """

    def __init__(
        self, app: App, *, queue_arguments: Mapping[str, Any] | None = None, waits: bool = False
    ) -> None:
        self.app = app
        self._arguments = queue_arguments
        self._waits = waits
        self._restore: Callable[[], None] = lambda: None
        self._broker = Broker(port=0, management_port=0)
        self._connection: Connection | None = None
        self._declared: set[str] = set()

    @property
    def broker(self) -> Broker:
        """The broker, for its clock and its faults."""
        return self._broker

    def __enter__(self) -> NoReturn:
        raise ConfigError("app.test()", "needs 'async with app.test() as trial'", "with")

    def __exit__(self, *details: object) -> None: ...

    async def __aenter__(self) -> Trial:
        await self._broker.__aenter__()
        try:
            self._connection = await connect(self._broker.url, name="trial")
            self._channel = await self._connection.channel()
            for queue in self.app.queues:
                if not is_pattern(queue):
                    await self.declare(queue)
            self._restore = self.app.divert(
                self._broker.url, self._broker.management_url, waits=self._waits
            )
            await self.app.start()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.app.stop()
        self._restore()
        if self._connection is not None:
            await self._connection.close()
        await self._broker.__aexit__(kind, error, trace)

    async def declare(self, queue: str, arguments: Mapping[str, Any] | None = None) -> None:
        """A durable queue."""
        if queue not in self._declared:
            given = arguments if arguments is not None else self._arguments
            await self._channel.declare_queue(queue, durable=True, arguments=given)
            self._declared.add(queue)

    async def publish(
        self, data: Any, *, queue: str, properties: Properties | None = None, **fields: Any
    ) -> None:
        """Put a message into a queue. bytes as they are, str as text, else JSON.

        ``fields`` are properties: ``type="order"``, ``headers={...}``. A queue that no handler
        takes must be declared first.

        Raises:
            AssertionError: no handler takes the queue, and nobody declared it.
        """
        await self._known(queue)
        body, filled = encoded(data, properties or Properties(**fields))
        await self._channel.publish(body, routing_key=queue, properties=filled, mandatory=True)

    async def request(self, data: Any, *, queue: str, within_s: float = 10.0, **fields: Any) -> Any:
        """Publish with a reply-to and return the decoded reply.

        Raises:
            AssertionError: no reply came within ``within_s``; says why, where it is known.
        """
        await self._known(queue)
        answer: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        assert self._connection is not None
        async with await self._connection.channel() as channel:

            def arrived(delivery: Delivery) -> None:
                if not answer.done():
                    answer.set_result(delivery)

            await channel.consume("amq.rabbitmq.reply-to", arrived, no_ack=True)
            asked = Properties(reply_to="amq.rabbitmq.reply-to", correlation_id="1", **fields)
            body, filled = encoded(data, asked)
            await channel.publish(body, routing_key=queue, properties=filled, mandatory=True)
            try:
                delivery = await self._answer(answer, queue, within_s)
            finally:
                answer.cancel()
        found = delivery.properties
        return self.app.decoders.decode(delivery.body, found.content_type, found.content_encoding)

    async def _known(self, queue: str) -> None:
        taken = any(matches(each, queue) for each in self.app.queues)
        if not taken and queue not in self._declared and queue not in self._there():
            raise AssertionError(
                f"no handler takes '{queue}': there are handlers for "
                f"{', '.join(self.app.queues)} (trial.declare('{queue}') makes a queue for others)"
            )
        await self.declare(queue)

    async def _answer(
        self, answer: asyncio.Future[Delivery], queue: str, within_s: float
    ) -> Delivery:
        """The reply; given up when all messages are settled and none has come."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        given_up = self._given_up(queue)
        while not answer.done():
            settled = not self._left()
            # A reply leaves before its message is settled; it may still be on its way here.
            await asyncio.wait((answer,), timeout=REPLY_S if settled else 0.01)
            if answer.done():
                break
            if settled and self._given_up(queue) > given_up:
                raise AssertionError(
                    f"no reply from '{queue}': the message was given up (trial.dead_letters())"
                )
            if settled:
                raise AssertionError(
                    f"no reply from '{queue}': what a handler returns is the reply, and it "
                    "returned None"
                )
            if loop.time() > deadline:
                raise AssertionError(
                    f"no reply from '{queue}' after {within_s:g} s; not settled: {self._left()}"
                )
        return answer.result()

    def _given_up(self, queue: str) -> int:
        counters = self.app.snapshot()["queues"].get(queue)
        return counters.dead_lettered if counters is not None else 0

    def _there(self) -> set[str]:
        return {each["name"] for each in self._broker.snapshot()["queues"]}

    async def settled(self, within_s: float = 10.0) -> None:
        """Wait until every message has been handled, retried or given up.

        Raises:
            AssertionError: after ``within_s`` there are still some; says in which queues.
        """
        deadline = asyncio.get_running_loop().time() + within_s
        while left := self._left():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"not settled after {within_s} s: {left}")
            await asyncio.sleep(0.005)

    def _left(self) -> dict[str, int]:
        dead = self.app.dead_letter_queues
        return {
            each["name"]: each["messages"]
            for each in self._broker.snapshot()["queues"]
            if each["name"] not in dead
            and (not each["name"].startswith(_OURS) or each["name"].startswith("warren.retry."))
            and each["messages"]
        }

    async def dead_letters(self, queue: str | None = None) -> list[Delivery]:
        """What was given up, oldest first, taken out of the dead-letter queue."""
        name = queue or f"warren.dead.{self.app.group}"
        there = self._there()
        found: list[Delivery] = []
        while name in there and (delivery := await self._channel.get(name)) is not None:
            delivery.ack()
            found.append(delivery)
        return found
