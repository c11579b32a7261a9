"""A group in a made-up world: one clock, one broker, a bad network, no sockets.

Everything that happens comes from one seed, so a schedule that fails can be run again. The world
has what the real one has: members that join, leave, crash, hang and come back; reports and
assignments that are late or lost; queues that appear and go; handlers that take their time.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from warren.groups.coordination.base import (
    Assigned,
    Assignment,
    Command,
    Commanded,
    Deposed,
    Elected,
    Event,
    GroupState,
    Left,
    Report,
    Reported,
)
from warren.groups.dispatcher import Policy
from warren.groups.member import Claim, Do, Member, Step
from warren.groups.roster import QueueFacts
from warren.groups.seat import Seat

HEARTBEAT_S = 4.0  # the broker lets a hung connection go after this
LEASE_S = 2.0  # the coordinator lets a member go that it has not heard of for so long


@dataclass
class Queue:
    """A queue of the made-up broker: numbered messages and one exclusive consumer."""

    ready: deque[int] = field(default_factory=deque)
    published: int = 0
    holder: Process | None = None
    acked: list[int] = field(default_factory=list)
    #: Messages that were handed out before: a second delivery is flagged.
    seen: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Process:
    """One life of a member."""

    name: str
    seat: Seat
    alive: bool = True
    hung_since: float | None = None
    connected: bool = True
    #: False: the coordinator can't be reached, the broker can.
    reached: bool = True
    #: What it hears while it hangs.
    backlog: list[Callable[[], None]] = field(default_factory=list)
    #: Queue → the message that its handler works on.
    working: dict[str, int] = field(default_factory=dict)
    draining: set[str] = field(default_factory=set)
    leaving: bool = False
    quiet_until: float = 0.0
    tick: float | None = None
    #: Counts its connections: a report of an earlier one is not told.
    life: int = 0


@dataclass(frozen=True)
class Handled:
    """A handler began a message."""

    queue: str
    message: int
    member: Process
    redelivered: bool


class World:
    """Runs one schedule."""

    def __init__(self, seed: int, *, queues: int | None = None, calm: bool = False) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.now = 0.0
        self.calm = calm
        self.trace: list[str] = []
        self.handled: list[Handled] = []
        queues = queues or self.random.randint(2, 6)
        self.queues = {f"q{number}": Queue() for number in range(queues)}
        self.processes: list[Process] = []
        self.state: GroupState | None = None
        self.dispatcher: Process | None = None
        self.generation = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = self._names = 0
        self._lossy = 0.0 if calm else self.random.choice([0.0, 0.05, 0.3])
        self._latency = self.random.choice([0.001, 0.02, 0.3])

    # -- time --------------------------------------------------------------------------------------
    def after(self, delay: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, action))

    def run_until(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, action = heapq.heappop(self._events)
            action()
        self.now = end

    @property
    def events(self) -> int:
        """How many there were, those to come included."""
        return self._count

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now:8.3f} {text}")

    # -- people and accidents ----------------------------------------------------------------------
    @property
    def living(self) -> list[Process]:
        return [each for each in self.processes if each.alive]

    def join(self, name: str | None = None, *, static: bool = False) -> Process:
        self._names += 1
        name = name or f"m{self._names}"
        identity = Report(
            name,
            weight=self.random.choice([1, 1, 1, 2]) if not self.calm else 1,
            static=static,
            session_s=5.0 if static else 0.0,
        )
        member = Member(identity, drain_s=2.0)
        seat = Seat("g", member, queues=sorted(self.queues), policy=Policy(min_interval_s=3.0))
        process = Process(name, seat)
        self.processes.append(process)
        self.note(f"{name} joins")
        self._enter(process)
        return process

    def leave(self, process: Process) -> None:
        self.note(f"{process.name} leaves")
        process.leaving = True
        self.touch(process, lambda: process.seat.leave(self.now))

    def crash(self, process: Process) -> None:
        self.note(f"{process.name} crashes")
        process.alive = False
        self._gone(process, died=True)

    def hang(self, process: Process, for_s: float) -> None:
        self.note(f"{process.name} hangs for {for_s:.1f} s")
        process.hung_since = self.now
        self.after(for_s, lambda: self._wake(process))
        self.after(HEARTBEAT_S, lambda: self._give_up(process))

    def cut_off(self, process: Process, for_s: float) -> None:
        """The coordinator can't be reached for a while; the broker can."""
        self.note(f"{process.name} is cut off from its group for {for_s:.1f} s")
        process.reached = False
        process.life += 1
        self.after(LEASE_S, lambda: self._lease_ends(process, process.life))
        life = process.life
        self.after(for_s, lambda: self._reach_again(process, life))

    def _lease_ends(self, process: Process, life: int) -> None:
        if not process.reached and process.life == life and process.connected:
            self.note(f"the lease of {process.name} ends")
            self._leave_group(process, died=True)

    def _reach_again(self, process: Process, life: int) -> None:
        if process.alive and process.connected and process.life == life:
            process.reached = True
            self.note(f"{process.name} is back in its group")
            self._arrive(process, Deposed("cut off"))
            if process is self.dispatcher:  # what it has missed it hears by being elected anew
                self.dispatcher = None
            self._enter(process)

    def _give_up(self, process: Process) -> None:
        hung = process.hung_since
        if hung is None or self.now - hung < HEARTBEAT_S:
            return
        if process.alive and process.connected:
            self.note(f"the broker gives {process.name} up")
            self._gone(process, died=True)

    def _wake(self, process: Process) -> None:
        process.hung_since = None
        if not process.alive:
            return
        backlog, process.backlog = process.backlog, []
        if not process.connected:
            process.seat.disconnected("heartbeat missed", self.now)
            self._pump(process)
            if process.leaving:
                process.alive = False
            else:
                process.connected = True
                self._enter(process)
            return
        for action in backlog:
            self.touch(process, action)
        self._elect_if_none()
        self._work(process)

    def add_queue(self) -> None:
        self._names += 1
        self.queues[f"q{100 + self._names}"] = Queue()
        self.discover()

    def remove_queue(self) -> None:
        if len(self.queues) > 1:
            name = self.random.choice(sorted(self.queues))
            self.note(f"{name} is deleted")
            holder = self.queues.pop(name).holder
            if holder is not None:
                self._cut(holder, name)
            self.discover()

    def discover(self) -> None:
        if (dispatcher := self.dispatcher) is not None:
            facts = {name: QueueFacts(len(queue.ready)) for name, queue in self.queues.items()}
            self.touch(dispatcher, lambda: dispatcher.seat.queues_are(facts, self.now))

    def command(self, command: Command) -> None:
        self.note(f"{command.kind} {command.member}{command.queue}")
        if self.dispatcher is not None:
            self._send(self.dispatcher, Commanded(command), sure=True)

    def publish(self) -> None:
        queue = self.queues[self.random.choice(sorted(self.queues))]
        queue.ready.append(queue.published)
        queue.published += 1
        if queue.holder is not None:
            self._work(queue.holder)

    # -- the coordinator ---------------------------------------------------------------------------
    def _enter(self, process: Process) -> None:
        if self.dispatcher is None:
            self._elect()
        else:
            self._tell(process, process.seat.member.report(), sure=True)
        self._pump(process)

    def _elect(self) -> None:
        able = [p for p in self.living if p.connected and p.reached and p.hung_since is None]
        self.dispatcher = able[0] if able else None
        if self.dispatcher is not None:
            self.note(f"{self.dispatcher.name} is elected")
            reports = tuple(p.seat.member.report() for p in able)
            self._send(self.dispatcher, Elected(self.generation, reports, self.state), sure=True)

    def _gone(self, process: Process, *, died: bool) -> None:
        process.connected = False
        process.life += 1
        for name, queue in self.queues.items():
            if queue.holder is process:
                self._give_back(name, process)
        process.reached = True
        self._leave_group(process, died=died)

    def _leave_group(self, process: Process, *, died: bool) -> None:
        if process is self.dispatcher:
            self.dispatcher = None
            self.after(self._delay(), self._elect_if_none)
        elif self.dispatcher is not None:
            self._send(self.dispatcher, Left(process.name, died), sure=True)

    def _elect_if_none(self) -> None:
        if self.dispatcher is None:
            self._elect()
            self.discover()

    def _tell(self, process: Process, report: Report, *, sure: bool = False) -> None:
        to, life = self.dispatcher, process.life

        def arrive() -> None:
            if to is not None and self._in_group(process) and process.life == life:
                self._arrive(to, Reported(report))

        if sure or self.random.random() >= self._lossy:
            self.after(self._delay(), arrive)

    def _send(self, to: Process, event: Event, *, sure: bool = False) -> None:
        if not sure and self.random.random() < self._lossy:
            return
        delay = self._delay()
        if sure:  # what the coordinator itself says comes in the order in which it happened
            to.quiet_until = max(to.quiet_until, self.now + delay)
            delay = to.quiet_until - self.now
        self.after(delay, lambda: self._arrive(to, event))

    def _arrive(self, to: Process, event: Event) -> None:
        if to.alive and self._in_group(to):
            self.touch(to, lambda: to.seat.hear(event, self.now))

    def _in_group(self, process: Process) -> bool:
        return process.connected and process.reached

    def _delay(self) -> float:
        return self.random.random() * self._latency

    # -- one process -------------------------------------------------------------------------------
    def touch(self, process: Process, action: Callable[[], None]) -> None:
        """Let a process do something, now or when it no longer hangs."""
        if process.hung_since is not None:
            process.backlog.append(action)
        elif process.alive:
            action()
            self._pump(process)

    def _pump(self, process: Process) -> None:
        seat = process.seat
        seat.run_due(self.now)
        output = seat.take_output(self.now)
        for step in output.steps:
            self._carry_out(process, step)
        if output.report is not None and self.dispatcher is not None:
            self._tell(process, output.report)
        if process is self.dispatcher and process.reached:
            self._publish(output.assignments, output.state)
        deadline = seat.next_deadline()
        if deadline is not None and deadline != process.tick:
            process.tick = deadline
            self.after(max(deadline - self.now, 0.0005), lambda: self._tick(process, deadline))
        if process.leaving and process.alive and seat.member.idle:
            self.note(f"{process.name} has left")
            process.alive = False
            self._gone(process, died=False)

    def _tick(self, process: Process, deadline: float) -> None:
        if process.tick == deadline:  # else a newer tick is on its way
            process.tick = None
            self.touch(process, lambda: None)

    def _publish(self, assignments: list[Assignment], state: GroupState | None) -> None:
        for each in assignments:
            self.generation = max(self.generation, each.stamp.generation)
            to = next((p for p in self.living if p.name == each.member and p.connected), None)
            if to is not None:
                self._send(to, Assigned(each))
        self.state = state or self.state

    def _carry_out(self, process: Process, step: Step) -> None:
        name = step.queue
        if step.do is Do.CLAIM:
            self.after(self._delay(), lambda: self._claim(process, name))
        elif step.do is Do.WORK:
            process.draining.discard(name)
            self.after(0.0, lambda: self._work(process))
        elif step.do is Do.DRAIN:
            process.draining.add(name)
            if name not in process.working:
                self.after(0.0, lambda: self._drained(process, name))
        elif step.do is Do.RELEASE:
            self.after(self._delay(), lambda: self._release(process, name))
        else:
            process.working.pop(name, None)
            process.draining.discard(name)

    def _claim(self, process: Process, name: str) -> None:
        if not (process.alive and process.connected):
            return
        queue = self.queues.get(name)
        member = process.seat.member
        if queue is None or (queue.holder is not None and queue.holder is not process):
            self.touch(process, lambda: member.refused(name, "in use", self.now))
            return
        assert queue.holder is None, f"{process.name} claims {name} twice"
        queue.holder = process
        self.touch(process, lambda: member.claimed(name, self.now))

    def _release(self, process: Process, name: str) -> None:
        if not (process.alive and process.connected):
            return
        queue = self.queues.get(name)
        process.draining.discard(name)
        if queue is not None and queue.holder is process:
            self._give_back(name, process)
        process.working.pop(name, None)
        self.touch(process, lambda: process.seat.member.released(name, self.now))

    def _cut(self, process: Process, name: str) -> None:
        """The broker takes a queue away: deleted."""
        process.working.pop(name, None)
        self.touch(process, lambda: process.seat.member.lost(name, "queue deleted", self.now))

    def _give_back(self, name: str, process: Process) -> None:
        queue = self.queues[name]
        queue.holder = None
        if name in process.working:
            queue.ready.appendleft(process.working.pop(name))

    def _drained(self, process: Process, name: str) -> None:
        if process.alive and name in process.draining and name not in process.working:
            self.touch(process, lambda: process.seat.member.drained(name, self.now))

    # -- handlers ----------------------------------------------------------------------------------
    def _work(self, process: Process) -> None:
        """Start a handler on every queue that has a message and no handler running."""
        if process.hung_since is not None or not process.alive:
            return
        for name in process.seat.member.queues_in(Claim.HELD):
            queue = self.queues.get(name)
            ours = queue is not None and queue.holder is process
            if ours and name not in process.working and queue is not None and queue.ready:
                message = queue.ready.popleft()
                process.working[name] = message
                again = message in queue.seen
                queue.seen.add(message)
                self.handled.append(Handled(name, message, process, again))
                took = self.random.choice([0.0, 0.01, 0.5, 4.0])
                self.after(took, lambda n=name, m=message: self._finish(process, n, m))

    def _finish(self, process: Process, name: str, message: int) -> None:
        if process.hung_since is not None:
            process.backlog.append(lambda: self._finish(process, name, message))
            return
        queue = self.queues.get(name)
        if queue is None or process.working.get(name) != message or queue.holder is not process:
            return  # its channel has gone: the acknowledgement goes nowhere
        del process.working[name]
        queue.acked.append(message)
        if name in process.draining:
            self._drained(process, name)
        else:
            self._work(process)
