"""One queue, several workers, one of them working: redundancy without a group.

Two ways, both enforced by the broker:

``exclusive``      each worker asks for the queue as its exclusive consumer. One gets it; the others
                   are refused (403) and ask again every ``retry_s``. When the worker dies, the
                   next to ask goes on. For classic queues: a quorum queue ignores the flag.
``single-active``  the queue was declared with ``x-single-active-consumer``: all register, the
                   broker sends to one, and to the next when that one goes. Nobody polls.

Either way the messages that were not acknowledged come to the next worker first, in order, flagged
redelivered.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections import deque
from collections.abc import Mapping
from inspect import signature
from types import TracebackType
from typing import Any, Literal, NoReturn

from warren.client import Backoff, Channel, Delivery, connect
from warren.client.kinds import queue_kind
from warren.errors import AccessRefused, ClientError, ConfigError, Refusal, WarrenError

log = logging.getLogger(__name__)

Mode = Literal["exclusive", "single-active"]


def standby(
    queue: str,
    *,
    url: str = "amqp://localhost",
    mode: Mode = "exclusive",
    prefetch: int = 1,
    retry_s: float = 1.0,
    **connect_options: Any,
) -> Standby:
    """Be one of several workers on ``queue``, of which one works at a time.

    ::

        async with warren.standby("orders", mode="single-active") as worker:
            async for delivery in worker:
                ...
                delivery.ack()

    Waiting for the place, for the broker to come back, and for messages all happen inside
    ``async for``. ``worker.active`` says whether this one is working.

    Raises (on entering):
        ConfigError: the queue can't be worked on in this mode; says which one can.
        NotFound: there is no such queue.
    """
    _check_options(connect_options)
    return Standby(queue, url, mode, prefetch, retry_s, connect_options)


def _check_options(options: Mapping[str, Any]) -> None:
    """Name what ``connect`` would not take, with its neighbour."""
    ours = [
        each for each in signature(standby).parameters if each not in ("queue", "connect_options")
    ]
    theirs = [each for each in signature(connect).parameters if each not in ("url", "reconnect")]
    for name in options:
        if name not in theirs:
            near = difflib.get_close_matches(name, [*ours, *theirs], 1)
            known = f"there are {', '.join(ours + theirs)}"
            hint = f"did you mean {near[0]}?" if near else known
            raise ConfigError(name, f"no such option of standby; {hint}")


class Standby:
    """What ``standby`` returns."""

    def __init__(
        self,
        queue: str,
        url: str,
        mode: Mode,
        prefetch: int,
        retry_s: float,
        connect_options: dict[str, Any],
    ) -> None:
        if mode not in ("exclusive", "single-active"):
            raise ConfigError("mode", f"'{mode}' is not one: exclusive or single-active")
        if retry_s <= 0:
            raise ConfigError("retry_s", f"is {retry_s}; must be above 0")
        self.queue, self.mode = queue, mode
        self._url, self._prefetch, self._retry_s = url, prefetch, retry_s
        self._options = connect_options
        self._backoff = Backoff(first_s=min(0.1, retry_s), most_s=5.0, jitter=0.5)
        self._waiting: deque[Delivery] = deque()
        self._news = asyncio.Event()
        self._checked = asyncio.Event()
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._registered = False
        self._worked = False
        #: Tries that were refused because another is working.
        self.refusals = 0

    @property
    def active(self) -> bool:
        """True while this worker is the one.

        A single active consumer is not told that its turn has come: it knows by its first
        message.
        """
        return self._registered and (self.mode == "exclusive" or self._worked)

    def __enter__(self) -> NoReturn:
        raise ConfigError("standby", "needs 'async with warren.standby(...) as worker'", "with")

    def __exit__(self, *details: object) -> None: ...

    async def __aenter__(self) -> Standby:
        self._task = asyncio.create_task(self._run(), name=f"standby for {self.queue}")
        try:
            await self._checked.wait()
        except BaseException:  # nobody will leave what was not entered
            await self._end()
            raise
        if self._failure is not None:
            raise self._failure
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def __aiter__(self) -> Standby:
        return self

    async def __anext__(self) -> Delivery:
        while True:
            while self._waiting:
                delivery = self._waiting.popleft()
                # One of a connection that is lost since comes again, to whoever works then.
                if not delivery.stale:
                    return delivery
            if self._failure is not None:
                raise self._failure
            if self._task is None or self._task.done():
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    async def _run(self) -> None:
        lost = 0
        try:
            while True:
                try:
                    await self._one_connection()
                    lost = 0
                except ClientError as error:
                    if not self._checked.is_set():
                        raise
                    pause_s = self._backoff.delay_s(lost)
                    lost += 1
                    log.info("standby for %s: %s; again in %.1f s", self.queue, error, pause_s)
                    await asyncio.sleep(pause_s)
        except Exception as error:  # noqa: BLE001 - raised where the worker waits
            self._failure = error
        finally:
            self._registered = False
            self._checked.set()
            self._news.set()

    async def _one_connection(self) -> None:
        async with connect(self._url, reconnect=False, **self._options) as connection:
            if not self._checked.is_set():
                await self._check(await queue_kind(connection, self.queue))
                self._checked.set()
            while True:
                channel = await connection.channel(prefetch=self._prefetch, confirms=False)
                ended = asyncio.get_running_loop().create_future()
                try:
                    await self._consume(channel, ended)
                except AccessRefused:
                    self.refusals += 1
                    await asyncio.sleep(self._retry_s)
                    continue
                error = await ended
                self._registered = self._worked = False
                if isinstance(error, ClientError):
                    raise error
                if isinstance(error, Refusal):
                    log.warning("standby for %s: %s", self.queue, error)
                await asyncio.sleep(self._retry_s)

    async def _consume(self, channel: Channel, ended: asyncio.Future[WarrenError]) -> None:
        def over(error: WarrenError) -> None:
            if not ended.done():
                ended.set_result(error)

        await channel.consume(
            self.queue, self._arrived, exclusive=self.mode == "exclusive", on_cancel=over
        )
        channel.on_closed(over)
        self._registered = True
        self._news.set()

    def _arrived(self, delivery: Delivery) -> None:
        self._worked = True
        self._waiting.append(delivery)
        self._news.set()

    async def _check(self, kind: Any) -> None:
        if self.mode == "exclusive" and kind.single_active:
            problem = "has a single active consumer: exclusive consumers are refused there"
            raise ConfigError("mode", f"queue '{self.queue}' {problem}; use mode='single-active'")
        if self.mode == "exclusive" and kind.type != "classic":
            problem = f"is a {kind.type} queue, which ignores the exclusive flag"
            raise ConfigError(
                "mode",
                f"queue '{self.queue}' {problem}; declare it with x-single-active-consumer=true "
                "and use mode='single-active'",
            )
        if self.mode == "single-active" and not kind.single_active:
            raise ConfigError(
                "mode",
                f"queue '{self.queue}' has no single active consumer: declare it with "
                "x-single-active-consumer=true (a policy can't set it), or use mode='exclusive'",
            )
