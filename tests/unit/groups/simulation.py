"""A group in a made-up world: one clock, one broker, a bad network, no sockets.

Everything that happens comes from one seed, so a schedule that fails can be run again. The world
has what the real one has: members that join, leave, crash, hang and come back; reports and
assignments that are late or lost; queues that appear and go; handlers that take their time. What
a member does is held against its promises as it does it (``Promises``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.unit.groups.cast import Process, Queue
from tests.unit.groups.promises import DRAIN_S, Absent
from tests.unit.groups.timeline import Timeline
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
from warren.groups.roster import UNKNOWN, QueueFacts
from warren.groups.seat import NOTHING, Seat

# Shorter than is usual: the fewer idle seconds, the more schedules.
HEARTBEAT_S = 1.5  # the broker lets a hung connection go after this
LEASE_S = 0.8  # the coordinator lets a member go that it has not heard of for so long
SESSION_S = 1.2  # the queues of a static member wait for it
HANDLERS_TAKE_S = [0.0, 0.0, 0.01, 0.3, 0.3, DRAIN_S + 0.5]
LATENCIES_S = [0.001, 0.05, 0.3]
POLICY = Policy(min_interval_s=1.0)


class World(Timeline):
    """Runs one schedule."""

    def __init__(self, seed: int, *, queues: int | None = None, calm: bool = False) -> None:
        super().__init__()
        self.seed, self.random = seed, random.Random(seed)
        self._draw = self.random.random
        self.calm = calm
        self.commands: list[Command] = []
        queues = queues or self.random.choice([1, 2, 2, 2, 3, 3, 5])
        self.queues = {f"q{number}": Queue() for number in range(queues)}
        self.processes: list[Process] = []
        self.state: GroupState | None = None
        self.dispatcher: Process | None = None
        self.generation = 0
        #: Nobody died, hung or was cut off: then the broker never has to refuse a claim.
        self.orderly = True
        self._names = 0
        self._lossy = 0.0 if calm else self.random.choice([0.0, 0.05, 0.3])
        self.latency_s = self.random.choice(LATENCIES_S)
        #: The broker's answers to claims that were made together come together.
        self._answers_together = self.random.random() < 0.7
        self._absent = Absent()

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
            session_s=SESSION_S if static else 0.0,
        )
        member = Member(identity, drain_s=DRAIN_S)
        seat = Seat("g", member, queues=sorted(self.queues), policy=POLICY)
        process = Process(name, seat)
        self.processes.append(process)
        self.note(f"{name} joins")
        self._enter(process)
        return process

    def leave(self, process: Process) -> None:
        self.note(f"{process.name} leaves")
        process.leaving = True
        self.touch(process, self._begin_to_leave, process)

    def _begin_to_leave(self, process: Process) -> None:
        process.promises.leaves()
        process.seat.leave(self.now)

    def crash(self, process: Process) -> None:
        self.note(f"{process.name} crashes")
        process.alive = False
        self._gone(process, died=True)

    def hang(self, process: Process, for_s: float) -> None:
        self.note(f"{process.name} hangs for {for_s:.1f} s")
        process.hung_since = self.now
        self.orderly = False
        self.after(for_s, self._wake, process)
        self.after(HEARTBEAT_S, self._give_up, process)

    def drop(self, process: Process, for_s: float) -> None:
        """The connection to the broker breaks, and both sides notice."""
        self.note(f"{process.name} loses its connection for {for_s:.1f} s")
        self._gone(process, died=True)
        self._disconnected(process, "connection reset")
        self.after(for_s, self._connect, process)

    def _connect(self, process: Process) -> None:
        if process.alive and not process.connected and process.hung_since is None:
            process.connected = True
            self._enter(process)

    def _disconnected(self, process: Process, reason: str) -> None:
        process.promises.disconnected()
        process.seat.disconnected(reason, self.now)
        self._pump(process)

    def cut_off(self, process: Process, for_s: float) -> None:
        """The coordinator can't be reached for a while; the broker can."""
        self.note(f"{process.name} is cut off from its group for {for_s:.1f} s")
        process.reached = self.orderly = False
        process.life += 1
        self.after(LEASE_S, self._lease_ends, process, process.life)
        self.after(for_s, self._reach_again, process, process.life)

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
        over = hung is not None and self.now - hung >= HEARTBEAT_S
        if over and process.alive and process.connected:
            self.note(f"the broker gives {process.name} up")
            self._gone(process, died=True)

    def _wake(self, process: Process) -> None:
        process.hung_since = None
        if not process.alive:
            return
        backlog, process.backlog = process.backlog, []
        if not process.connected:
            self._disconnected(process, "heartbeat missed")
            if process.leaving:
                process.alive = False
            else:
                self._connect(process)
            return
        process.promises.wakes(self.now)
        for action, args in backlog:
            self.touch(process, action, *args)
        self._pump(process)
        self._elect_if_none()
        for name in process.seat.member.queues_in(Claim.HELD):
            self._work(process, name)

    def add_queue(self) -> None:
        self._names += 1
        self.queues[f"q{100 + self._names}"] = Queue()
        self.discover()

    def remove_queue(self) -> None:
        if len(self.queues) > 1:
            name = self.random.choice(list(self.queues))
            self.note(f"{name} is deleted")
            if (holder := self.queues.pop(name).holder) is not None:
                self._cut(holder, name, "queue deleted")
            self.discover()

    def cancel(self, name: str) -> None:
        """The broker takes a queue from its consumer, as when its leader moves."""
        if (holder := self.queues[name].holder) is not None:
            self.note(f"{name} is taken from {holder.name}")
            self.orderly = False
            self._give_back(name, holder)
            self._cut(holder, name, "consumer cancelled")

    def discover(self) -> None:
        if (dispatcher := self.dispatcher) is not None:
            facts = dict.fromkeys(self.queues, UNKNOWN)
            self.touch(dispatcher, self._ask_for_queues, dispatcher, facts)

    def _ask_for_queues(self, process: Process, facts: dict[str, QueueFacts]) -> None:
        process.seat.queues_are(facts, self.now)

    def command(self, command: Command) -> None:
        self.note(f"{command.kind} {command.member}{command.queue}")
        self.commands.append(command)
        if self.dispatcher is not None:
            self._send(self.dispatcher, Commanded(command), sure=True)

    def publish(self) -> None:
        name = self.random.choice(list(self.queues))
        queue = self.queues[name]
        queue.ready.append(queue.published)
        queue.published += 1
        if queue.holder is not None:
            self._work(queue.holder, name)

    def all_report(self) -> None:
        """What everybody does from time to time, now."""
        for process in self.living:
            self._tell(process, process.seat.member.report(), sure=True)

    # -- the coordinator ---------------------------------------------------------------------------
    def _enter(self, process: Process) -> None:
        report = process.seat.member.report()
        if self.dispatcher is None:
            self._elect()
        else:
            self._tell(process, report, sure=True)
        self._pump(process, told=report)

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
        process.connection += 1
        self.orderly = self.orderly and not died and process is not self.dispatcher
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

    def _tell(self, process: Process, report: Report, *, sure: bool = False) -> None:
        if sure or self._draw() >= self._lossy:
            # Late or lost, but in the order in which they were made: a coordinator promises that.
            at = self.now + self._draw() * self.latency_s
            process.told_until = at = max(process.told_until, at)
            self.at(at, self._told, self.dispatcher, process, process.life, report)

    def _told(self, to: Process | None, process: Process, life: int, report: Report) -> None:
        if to is not None and process.connected and process.reached and process.life == life:
            self._arrive(to, Reported(report))

    def _send(self, to: Process, event: Event, *, sure: bool = False) -> None:
        if not sure and self._draw() < self._lossy:
            return
        at = self.now + self._draw() * self.latency_s
        if sure:  # what the coordinator itself says comes in the order in which it happened
            to.quiet_until = at = max(to.quiet_until, at)
        self.at(at, self._deliver, to, to.connection, event)

    def _deliver(self, to: Process, connection: int, event: Event) -> None:
        if to.connection == connection:
            self._arrive(to, event)

    def _arrive(self, to: Process, event: Event) -> None:
        if not (to.alive and to.connected and to.reached):
            return
        if to.hung_since is not None:
            to.backlog.append((self._hear, (to, event)))
        else:
            self._hear(to, event)
            self._pump(to)

    def _hear(self, process: Process, event: Event) -> None:
        if isinstance(event, Assigned):
            process.promises.assigned(event.assignment)
        elif isinstance(event, Elected):  # the first thing it does is to ask the broker
            self.after(self._delay(), self.discover)
        process.seat.hear(event, self.now)

    def _delay(self) -> float:
        return self._draw() * self.latency_s

    # -- one process -------------------------------------------------------------------------------
    def touch(self, process: Process, action: Callable[..., None], *args: Any) -> None:
        """Let a process do something, now or when it no longer hangs."""
        if process.hung_since is not None:
            process.backlog.append((action, args))
        elif process.alive:
            action(*args)
            self._pump(process)

    def _pump(self, process: Process, told: Report | None = None) -> None:
        seat = process.seat
        output = seat.take_output(self.now)
        if seat.dispatcher is not None and process is self.dispatcher:
            self._absent.look(seat.dispatcher)
        if output is not NOTHING:
            steps, report, assignments, state = output
            if steps:
                self._carry_out_all(process, steps)
            if report is not None and report is not told and self.dispatcher is not None:
                self._tell(process, report)
            if (assignments or state) and process is self.dispatcher and process.reached:
                self._publish(assignments, state)
        process.due = due = seat.next_deadline()
        if process.tick is None or due < process.tick:  # else an earlier one looks again
            self._set_alarm(process)
        if process.leaving and process.alive and seat.member.idle:
            self.note(f"{process.name} has left")
            process.alive = False
            self._gone(process, died=False)

    def _set_alarm(self, process: Process) -> None:
        process.tick = at = max(process.due, self.now + 0.0005)
        self.at(at, self._tick, process, at)

    def _tick(self, process: Process, at: float) -> None:
        if process.tick != at:
            return  # an earlier one came between
        process.tick = None
        if process.hung_since is not None or not process.alive:
            return
        if process.due > self.now:
            self._set_alarm(process)
        else:
            self._pump(process)

    def _publish(self, assignments: Sequence[Assignment], state: GroupState | None) -> None:
        for each in assignments:
            self.generation = max(self.generation, each.stamp.generation)
            for to in self.processes:
                if to.alive and to.connected and to.name == each.member:
                    self._send(to, Assigned(each))
        self.state = state or self.state

    def _carry_out_all(self, process: Process, steps: Sequence[Step]) -> None:
        claims = [step.queue for step in steps if step.do is Do.CLAIM]
        for name in claims:
            process.promises.claims(name)
        if len(claims) > 1 and self._answers_together:
            self.after(self._delay(), self._claim, process, process.connection, claims)
        else:
            for name in claims:
                self.after(self._delay(), self._claim, process, process.connection, [name])
        for step in steps:
            if step.do is not Do.CLAIM:
                self._carry_out(process, step)

    def _carry_out(self, process: Process, step: Step) -> None:
        name = step.queue
        if step.do is Do.WORK:
            process.draining.discard(name)
            self._work(process, name)
        elif step.do is Do.DRAIN:
            process.draining.add(name)
            process.promises.drains(name, self.now)
            if name not in process.working:
                self.after(0.0, self._drained, process, name)
        elif step.do is Do.RELEASE:
            process.promises.releases(name, self.now, working=name in process.working)
            self.after(self._delay(), self._release, process, process.connection, name)
        else:
            process.working.pop(name, None)
            process.draining.discard(name)

    def _claim(self, process: Process, connection: int, names: list[str]) -> None:
        if process.alive and process.connection == connection:
            self.touch(process, self._answer_claims, process, self._grant(process, names))

    def _grant(self, process: Process, names: list[str]) -> list[tuple[str, bool]]:
        answers = []
        for name in names:
            queue = self.queues.get(name)
            if free := queue is not None and queue.holder in (None, process):
                assert queue.holder is None, f"{process.name} claims {name} twice"
                queue.holder = process
            assert free or queue is None or not self.orderly, f"{name} is claimed too early"
            answers.append((name, free))
        return answers

    def _answer_claims(self, process: Process, answers: list[tuple[str, bool]]) -> None:
        for name, granted in answers:
            if granted:
                process.seat.member.claimed(name, self.now)
            else:
                process.seat.member.refused(name, "in use", self.now)

    def _answer(self, process: Process, tell: Callable[..., None], *words: str) -> None:
        self.touch(process, self._pass_on, process, tell, words)

    def _pass_on(self, process: Process, tell: Callable[..., None], words: tuple[str, ...]) -> None:
        process.promises.hears(words[0])
        tell(*words, self.now)

    def _release(self, process: Process, connection: int, name: str) -> None:
        if not process.alive or process.connection != connection:
            return
        queue = self.queues.get(name)
        process.draining.discard(name)
        if queue is not None and queue.holder is process:
            self._give_back(name, process)
        process.working.pop(name, None)
        self._answer(process, process.seat.member.released, name)

    def _cut(self, process: Process, name: str, reason: str) -> None:
        """The broker has taken a queue away."""
        process.working.pop(name, None)
        self._answer(process, process.seat.member.lost, name, reason)

    def _give_back(self, name: str, process: Process) -> None:
        queue = self.queues[name]
        queue.holder = None
        if name in process.working:
            queue.ready.appendleft(process.working.pop(name))

    def _drained(self, process: Process, name: str) -> None:
        if process.alive and name in process.draining and name not in process.working:
            self._answer(process, process.seat.member.drained, name)

    # -- handlers ----------------------------------------------------------------------------------
    def _work(self, process: Process, name: str) -> None:
        """Start a handler on the queue if it has a message and no handler running."""
        queue = self.queues.get(name)
        if process.hung_since is not None or not process.alive or name in process.working:
            return
        if queue is None or queue.holder is not process or not queue.ready:
            return
        if process.seat.member.state_of(name) is Claim.HELD:
            message = process.working[name] = queue.ready.popleft()
            self.after(self.random.choice(HANDLERS_TAKE_S), self._finish, process, name, message)

    def _finish(self, process: Process, name: str, message: int) -> None:
        if process.hung_since is not None:
            process.backlog.append((self._finish, (process, name, message)))
            return
        queue = self.queues.get(name)
        if queue is None or process.working.get(name) != message or queue.holder is not process:
            return  # its channel has gone: the acknowledgement goes nowhere
        del process.working[name]
        queue.acked.append(message)
        if name in process.draining:
            process.promises.finishes(name, self.now - self.latency_s)
            self._drained(process, name)
        else:
            self._work(process, name)
