"""Members of a group in the test's own process, and what they did."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tests.support.brokers import TestBroker
from warren.client import Channel, Connection, Delivery, connect
from warren.client.management import Management
from warren.groups.coordination.base import GroupState
from warren.groups.group import Group
from warren.groups.listener import Ordered
from warren.testing.group_check import Line, check_group

#: Generous: the machine may be slow and shared.
WITHIN_S = 30.0


async def eventually(check: Callable[[], Any], within_s: float = WITHIN_S) -> Any:
    """As ``tests.support.eventually``, in an event loop."""
    deadline = time.monotonic() + within_s
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not true within {within_s} s")
        await asyncio.sleep(0.01)


class Worker(Ordered):
    """One member: works on messages and writes down what happens."""

    def __init__(self, name: str, lines: list[Line], events: list[tuple[str, str, str]]) -> None:
        super().__init__(self.handle)
        self.name, self.lines, self.events = name, lines, events
        self.work: Callable[[str], Any] = lambda body: asyncio.sleep(0)

    async def handle(self, delivery: Delivery) -> None:
        number, queue = int(delivery.body), delivery.queue
        self._write("begin", queue, number, redelivered=delivery.redelivered)
        await self.work(queue)
        self._write("end", queue, number)

    def _write(self, phase: Any, queue: str, number: int, *, redelivered: bool = False) -> None:
        self.lines.append(Line(time.monotonic(), phase, self.name, queue, number, redelivered))

    async def assigned(self, queue: str) -> None:
        await super().assigned(queue)
        self.events.append((self.name, "assigned", queue))

    async def revoked(self, queue: str) -> None:
        await super().revoked(queue)
        self.events.append((self.name, "revoked", queue))

    async def lost(self, queue: str) -> None:
        await super().lost(queue)
        self.lines.append(Line(time.monotonic(), "cut", self.name))
        self.events.append((self.name, "lost", queue))

    @property
    def held(self) -> set[str]:
        """Claimed at the broker, and told to the listener."""
        return set(self.group.snapshot().held) & self._lanes.keys()

    def kill(self) -> None:
        """As kill -9 would: nothing is said, sockets end, nothing goes on."""
        self.lines.append(Line(time.monotonic(), "killed", self.name))
        group: Any = self.group
        session = group._session
        coordinator = session._coordinator
        claims = {task for each in session._claims._tasks.values() for task in each}
        tasks = {group._task, *session._tasks, *claims}
        for task in tasks | set(getattr(coordinator, "_tasks", ())):
            task.cancel()
        for handle in (session._poked, session._timer):
            if handle is not None:
                handle.cancel()
        for lane in self._lanes.values():
            lane.cancel()
        coordinator._tell = None
        for connection in session._claims._connections:
            connection.link.abort()
        if (voice := getattr(coordinator, "_voice", None)) is not None:
            voice.reconnects = False
            voice.link.abort()


class Workers:
    """All members of one group, the queues they work on, and a publisher."""

    def __init__(self, broker: TestBroker, name: Callable[[str], str], coordinator: str) -> None:
        self.broker, self.coordinator, self._name = broker, coordinator, name
        self.group = name("group")
        self.queues: list[str] = []
        self.alive: dict[str, Worker] = {}
        self.lines: list[Line] = []
        self.events: list[tuple[str, str, str]] = []
        self._published: dict[str, int] = {}
        self._killed: list[Worker] = []
        self.connection: Connection
        self.channel: Channel

    async def __aenter__(self) -> Workers:
        self.connection = await connect(self.broker.url)
        self.channel = await self.connection.channel()
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self.alive.values():
            await worker.group.leave()
        for worker in self._killed:
            coordinator: Any = worker.group._session._coordinator  # type: ignore[union-attr]
            await coordinator.close()
        await self.connection.close()
        check_group(self.lines).raise_for_faults()
        await self.nothing_is_left()

    # -- queues and messages ---------------------------------------------------------------------
    async def declare(self, count: int, word: str = "work", **options: Any) -> list[str]:
        made = [self._name(word) for _ in range(count)]
        options = {"durable": True, **options}
        await asyncio.gather(*(self.channel.declare_queue(each, **options) for each in made))
        self.queues += made
        return made

    async def publish(self, each: int = 1, queues: list[str] | None = None) -> None:
        """Numbered messages, ``each`` for every queue."""
        wanted = self.queues if queues is None else queues
        numbers = [(queue, self._next(queue)) for _ in range(each) for queue in wanted]
        now = time.monotonic()
        self.lines += (Line(now, "sent", "", queue, number) for queue, number in numbers)
        for queue, number in numbers:
            self.channel.publish(str(number).encode(), routing_key=queue)
        await self.channel.confirmed()
        now = time.monotonic()
        self.lines += (Line(now, "confirmed", "", queue, number) for queue, number in numbers)

    def _next(self, queue: str) -> int:
        self._published[queue] = self._published.get(queue, -1) + 1
        return self._published[queue]

    async def all_handled(self) -> None:
        sent = sum(count + 1 for count in self._published.values())

        def done() -> bool:
            ended = {(line.queue, line.number) for line in self.lines if line.phase == "end"}
            return len(ended) == sent

        await eventually(done)

    # -- members ---------------------------------------------------------------------------------
    async def join(self, name: str = "", **options: Any) -> Worker:
        worker = Worker(name or f"w{len(self.alive) + len(self._killed)}", self.lines, self.events)
        options = {
            "min_interval_s": 0.2,
            "management": self.broker.management,
            "discover_s": 1.0,
            **options,
        }
        queues = options.pop("queues", list(self.queues))
        group = Group(
            options.pop("url", self.broker.url),
            self.group,
            queues,
            listener=worker,
            coordinator=self.coordinator,
            **options,
        )
        await group.__aenter__()
        worker.name = group.member_name
        self.alive[worker.name] = worker
        return worker

    async def join_many(self, count: int, **options: Any) -> list[Worker]:
        joined = [await self.join(**options) for _ in range(count)]
        await self.balanced()
        return joined

    async def leave(self, worker: Worker) -> None:
        del self.alive[worker.name]
        await worker.group.leave()

    def kill(self, worker: Worker) -> None:
        del self.alive[worker.name]
        self._killed.append(worker)
        worker.kill()

    @property
    def dispatcher(self) -> Worker | None:
        found = [w for w in self.alive.values() if w.group.snapshot().is_dispatcher]
        return found[0] if len(found) == 1 else None

    @property
    def held(self) -> dict[str, set[str]]:
        return {name: worker.held for name, worker in self.alive.items()}

    def state(self) -> GroupState | None:
        dispatcher = self.dispatcher
        return dispatcher.group.snapshot().state if dispatcher is not None else None

    async def balanced(self, queues: list[str] | None = None, *, spread: int = 1) -> None:
        """Until every queue has one holder, and holdings differ by ``spread`` at most."""
        wanted = sorted(self.queues if queues is None else queues)

        def check() -> bool:
            held = [queue for each in self.held.values() for queue in each]
            counts = [len(each) for each in self.held.values()]
            return sorted(held) == wanted and max(counts) - min(counts) <= spread

        try:
            await eventually(check)
        except AssertionError:
            snapshots = [w.group.snapshot() for w in self.alive.values()]
            raise AssertionError(f"no balance: {snapshots}") from None

    async def nothing_is_left(self) -> None:
        """On the broker, of the group's own queues and exchanges."""

        deadline = time.monotonic() + WITHIN_S
        while left := await asyncio.to_thread(self._left):
            assert time.monotonic() < deadline, f"left behind: {left}"
            await asyncio.sleep(0.05)

    def _left(self) -> list[str]:
        with Management(self.broker.management) as management:
            found = [
                each["name"]
                for kind in ("queues", "exchanges")
                for each in management.get(kind, "/")
            ]
        return [each for each in found if each.startswith(f"warren.{self.group}")]
