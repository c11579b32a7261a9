"""``App``: handlers for queues, shared fairly among all processes that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from warren.client import Properties
from warren.clock import Clock, SystemClock
from warren.errors import ConfigError
from warren.groups.group import Group
from warren.handlers.decoding import Decoders
from warren.handlers.message import Message
from warren.handlers.middleware import Middleware, Stack
from warren.handlers.options import check_app, check_function
from warren.handlers.policy import Handling, from_options, label
from warren.handlers.running import Plan, Running
from warren.handlers.work import Handler, check_letters

if TYPE_CHECKING:
    from warren.handlers.trial import Trial

F = TypeVar("F", bound=Callable[[Message], Any])


class App:
    """Handlers, and the group in which they run.

    ::

        app = warren.App("amqp://localhost", group="billing")

        @app.handler("orders.*", prefetch=50, retries=5)
        async def handle(message): ...

    Run it with ``warren work module:app``, with ``app.run()``, or inside a program of your own
    with ``async with app``. However many processes run it: each queue is worked on by one of
    them, in order, and they share the queues evenly.

    ``group_options`` are those of ``warren.Group``: coordinator, member_name, weight, balance,
    drain_s, min_interval_s, session_s, heartbeat_s, management.
    """

    def __init__(
        self,
        url: str = "amqp://localhost",
        *,
        group: str,
        middleware: Iterable[Middleware] = (),
        rate_limit: float | None = None,
        threads: int = 8,
        clock: Clock | None = None,
        **group_options: Any,
    ) -> None:
        check_app(
            group, rate_limit, threads, ("middleware", "rate_limit", "threads"), group_options
        )
        self.url, self.group = url, group
        #: Add content-types and content-encodings of your own here.
        self.decoders = Decoders()
        self._middleware = Stack(middleware)
        self._rate_limit, self._threads = rate_limit, threads
        self._clock = clock or SystemClock()
        self._group_options = group_options
        self._handlers: list[Handler] = []
        self._health_at: tuple[str, int] | None = None
        self._running: Running | None = None

    def handler(self, *queues: str, **options: Any) -> Callable[[F], F]:
        """Have a function called with each message of these queues (names or patterns).

        Options are those of ``Handling``: prefetch, retries, backoff, ordered, concurrency, key,
        timeout_s, dead_letter. An async function runs in the event loop, a plain one in a thread.
        Returning acknowledges; a value returned to a message with a reply-to is sent there.
        Raising tries again by the policy.
        """
        if len(queues) == 1 and callable(queues[0]):
            raise ConfigError("handler", 'name the queues: @app.handler("orders.*")')
        handling = from_options(queues, options)

        def add(function: F) -> F:
            if self._running is not None:
                raise ConfigError("handler", "add handlers before the app is started")
            check_function(function, handling.timeout_s, label(queues))
            self._check_free(handling)
            self._handlers.append(Handler(function, handling))
            return function

        return add

    def _check_free(self, handling: Handling) -> None:
        for other in self._handlers:
            for name in handling.queues:
                if name in other.handling.queues:
                    raise ConfigError(
                        label(handling.queues),
                        f"'{name}' has a handler already, {other.name}, and would never get to "
                        "this one: a message is handled once",
                    )

    def use(self, middleware: Middleware) -> None:
        """Add one more middleware, inside those that are there."""
        self._middleware.add(middleware)

    def health(self, port: int, host: str = "127.0.0.1") -> None:
        """Answer /health, /ready and /metrics there while the app runs."""
        self._health_at = (host, port)

    # -- life ------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Join the group and begin to work.

        Raises:
            ConfigError: there are no handlers, an option can't be used, or a handler takes the
                queue that dead letters go to.
            ConnectError: the broker can't be reached.
        """
        if self._running is not None:
            raise ConfigError("app", "is running already")
        if not self._handlers:
            raise ConfigError("app", 'has no handlers: add one with @app.handler("a-queue")')
        check_letters(self._handlers, f"warren.dead.{self.group}")
        running = Running(self._plan())
        await running.start()
        self._running = running

    def _plan(self) -> Plan:
        return Plan(
            url=self.url,
            group=self.group,
            queues=self.queues,
            handlers=self._handlers,
            middleware=self._middleware,
            decoders=self.decoders,
            clock=self._clock,
            threads=self._threads,
            rate_limit=self._rate_limit,
            health_at=self._health_at,
            group_options=self._group_options,
        )

    async def stop(self) -> None:
        """Finish what is being handled, give the queues away, leave.

        May be called twice: the second call waits for the first. When the first is cancelled, what
        is still being handled is cut short, and its messages go back.
        """
        running = self._running
        if running is None:
            return
        try:
            await running.stop()
        finally:
            if self._running is running:
                self._running = None

    async def __aenter__(self) -> App:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def __enter__(self) -> NoReturn:
        raise ConfigError("app", "works in an event loop: write `async with app:`, or app.run()")

    def __exit__(self, *error: object) -> None: ...

    def run(self) -> None:
        """Work until SIGTERM or Ctrl-C; for a program of its own."""
        from warren.handlers.run import run

        run(self)

    def test(self, **options: Any) -> Trial:
        """The app at work on an embedded broker, for a test; see ``Trial``."""
        from warren.handlers.trial import Trial

        return Trial(self, **options)

    def divert(self, url: str, management: str, *, waits: bool) -> Callable[[], None]:
        """Have the next start happen elsewhere, and at once; returns how to undo that."""
        before = self.url, self._group_options, self._handlers
        quick = {"discover_s": 0.05, "min_interval_s": 0.05, "coordinator": "amqp"}
        self.url = url
        self._group_options = {**self._group_options, **quick, "management": management}
        if not waits:
            self._handlers = [each.at_once() for each in self._handlers]

        def undo() -> None:
            self.url, self._group_options, self._handlers = before

        return undo

    # -- what is going on ------------------------------------------------------------------------
    @property
    def member(self) -> Group:
        """The place in the group, while the app runs."""
        return self._now().group

    def snapshot(self) -> dict[str, Any]:
        """Counters by queue, and how the member stands."""
        return self._now().snapshot()

    def metrics(self) -> str:
        """Counters in the form that Prometheus reads."""
        return self._now().metrics()

    @property
    def queues(self) -> list[str]:
        """The names and patterns that have a handler."""
        return list(dict.fromkeys(q for each in self._handlers for q in each.handling.queues))

    @property
    def dead_letter_queues(self) -> set[str]:
        """Where messages go that were given up."""
        asked_for = {each.handling.dead_letter for each in self._handlers}
        return {name or f"warren.dead.{self.group}" for name in asked_for} - {"broker"}

    def describe(self) -> str:
        """One line for people."""
        queues = ", ".join(self.queues)
        member = self._running.group.member_name if self._running is not None else "not running"
        return f"group {self.group}, member {member}, queues {queues}"

    async def publish(
        self,
        data: Any,
        *,
        routing_key: str = "",
        exchange: str = "",
        properties: Properties | None = None,
        mandatory: bool = False,
    ) -> None:
        """Publish and wait until the broker has it. bytes as they are, str as text, else JSON."""
        await self._now().outbox.publish(
            data,
            exchange=exchange,
            routing_key=routing_key,
            properties=properties,
            mandatory=mandatory,
        )

    def _now(self) -> Running:
        if self._running is None:
            raise ConfigError("app", "is not running: `async with app`, or `warren work`")
        return self._running
