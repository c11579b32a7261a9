"""A group of real processes under load, and all that can be done to them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import warren.client
from tests.e2e.groups.publisher import PublisherOptions
from tests.e2e.groups.worker import WorkerOptions
from tests.support.eventually import eventually
from tests.support.process import SRC
from warren.errors import WarrenError
from warren.groups.coordination.base import GroupState, coordinator_for
from warren.testing.group_log import GroupLog, Verdict, check_group, read_group_log

ROOT = SRC.parent
ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith("WARREN_") and key != "PYTHONASYNCIODEBUG"
} | {"PYTHONPATH": f"{SRC}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": "1"}
#: Generous: the machine may be doing other things. Nothing waits that long if all goes well.
READY_S = 60.0
SETTLE_S = 90.0


@dataclass(frozen=True)
class World:
    """Where a group works: addresses of a broker and of a coordinator."""

    url: str
    coordinator: str = "amqp"
    management: str | None = None
    #: How queues are declared.
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def meets_at(self) -> str:
        return self.url if self.coordinator == "amqp" else self.coordinator


class Process:
    """A program of ours that says ``ready``."""

    def __init__(self, module: str, options: object, output: Path) -> None:
        self.ready = threading.Event()
        self._output = output
        self._errors = open(output, "ab")  # noqa: SIM115 - closed in wait
        plain = json.dumps(asdict(options))  # type: ignore[call-overload]
        self.popen = subprocess.Popen(
            [sys.executable, "-m", module, plain],
            env=ENVIRONMENT,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._reader = threading.Thread(target=self._read, name=f"output of {module}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            if line.strip() == b"ready":
                self.ready.set()

    def wait_ready(self) -> None:
        eventually(self._is_ready, READY_S)

    def _is_ready(self) -> bool:
        if self.popen.poll() is not None:
            raise RuntimeError(f"it ended: {self._output.read_text(errors='replace')[-3000:]}")
        return self.ready.is_set()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.popen.pid, number)

    def state(self) -> str:
        """For a scenario that failed: running, sleeping or stopped, and how busy it was."""
        with suppress(OSError):
            fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
            return f"pid {self.popen.pid}, {fields[0]}, {int(fields[11]) / 100} s of processor time"
        return "gone"

    def wait(self, within_s: float = 60.0) -> int:
        code = self.popen.wait(within_s)
        self._reader.join(10)
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        self._errors.close()
        return code

    def kill(self) -> None:
        """End it, whatever its state."""
        if self.popen.returncode is None:
            self.popen.kill()
            self.wait()


class Arena:
    """One group and its load. What is done to a member is written down before it is done."""

    def __init__(self, folder: Path, world: World, queues: Sequence[str], *, seed: int = 1) -> None:
        self.folder, self.world, self.queues = folder, world, list(queues)
        self.random = random.Random(seed)
        self.group = f"e2e-{seed}-{os.getpid()}-{id(self) & 0xFFFF:x}"
        self.members: dict[str, Process] = {}
        self.publishers: list[Process] = []
        #: What members are told to work on, if not the queues by name.
        self.wanted: list[str] = []
        self._lives = 0
        self._logs = folder / "logs"
        self._logs.mkdir(parents=True)
        self.log = GroupLog(self._logs / "arena.log")

    # -- members ---------------------------------------------------------------------------------
    def start(self, count: int, **options: object) -> list[str]:
        """More members, all at once; their labels. Returns when they are in the group."""
        labels = []
        for _ in range(count):
            self._lives += 1
            labels.append(f"w{self._lives}")
            settings: dict[str, object] = {
                "url": self.world.url,
                "queues": self.wanted or self.queues,
                "management": self.world.management,
                **options,
            }
            self.members[labels[-1]] = Process(
                "tests.e2e.groups.worker",
                WorkerOptions(
                    labels[-1],
                    group=self.group,
                    log=str(self._logs / f"{labels[-1]}.log"),
                    coordinator=self.world.coordinator,
                    **settings,  # type: ignore[arg-type]
                ),
                self.folder / f"{labels[-1]}.out",
            )
        for label in labels:
            self.members[label].wait_ready()
        return labels

    def kill(self, label: str) -> None:
        with self.log.disturbing("killed", label):
            self.members.pop(label).kill()

    def stop(self, label: str) -> None:
        """SIGSTOP: it hangs, with all its connections open."""
        with self.log.disturbing("stopped", label):
            self.members[label].send(signal.SIGSTOP)

    def go_on(self, label: str) -> None:
        with self.log.disturbing("continued", label):
            self.members[label].send(signal.SIGCONT)

    def end(self, *labels: str) -> None:
        """SIGTERM: they leave the group, and disturb nothing."""
        processes = [self.members.pop(label) for label in labels]
        for process in processes:
            process.send(signal.SIGTERM)
        for label, process in zip(labels, processes, strict=True):
            code = process.wait()
            output = (self.folder / f"{label}.out").read_text(errors="replace")
            assert code == 0, f"{label} ended with {code}: {output[-3000:]}"
            assert "Traceback" not in output, output[-6000:]

    def any_member(self, *but: str) -> str:
        return self.random.choice(sorted(set(self.members) - set(but)))

    # -- looking ---------------------------------------------------------------------------------
    def state(self) -> GroupState | None:
        """What the dispatcher says of the group."""
        with suppress(WarrenError):  # the broker, or etcd, is away
            return asyncio.run(self._read())
        return None

    async def _read(self) -> GroupState | None:
        coordinator = coordinator_for(self.world.meets_at, self.group)
        try:
            return await coordinator.read()
        finally:
            await coordinator.close()

    def dispatcher(self) -> str:
        """The label of the dispatcher."""
        label: str = eventually(self._dispatcher, 30, every_s=0.1)
        return label

    def _dispatcher(self) -> str | None:
        state = self.state()
        pids = {str(process.popen.pid): label for label, process in self.members.items()}
        for member in state.members if state else ():
            if state and member.member == state.dispatcher:
                return pids.get(member.where.rpartition(":")[2])
        return None

    def wait_balanced(self, within_s: float = 60.0) -> None:
        """Return when every queue is held, and members hold as many as they should."""
        eventually(self._balanced, within_s, every_s=0.1)

    def _balanced(self) -> bool:
        state = self.state()
        assert state is not None, "nobody answers"
        held = [len(member.queues) for member in state.members]
        assert len(held) == len(self.members), state.members
        assert sum(held) == len(self.queues), held
        assert max(held) - min(held) <= 1, held
        return True

    def report(self) -> str:
        """For a scenario that failed: the group, and the last words of everybody."""
        state = self.state()
        # What it believes, if its event loop turns; and where its threads are, if not.
        asked = {signal.SIGUSR2: [*self.members.values(), *self.publishers]}
        asked[signal.SIGUSR1] = [*self.members.values()]
        for number, processes in asked.items():
            for process in processes:
                with suppress(ProcessLookupError):
                    process.send(number)
            time.sleep(2)  # for their answers, as far as they come
        told = [f"group {self.group}: {state}"]
        told += [f"process {label}: {each.state()}" for label, each in self.members.items()]
        told += [
            f"--- {file.name}\n{file.read_text(errors='replace')[-20_000:]}"
            for file in sorted(self.folder.glob("*.out"))
        ]
        return "\n".join(told)

    # -- load ------------------------------------------------------------------------------------
    def declare(self, *queues: str) -> None:
        asyncio.run(self._declare(queues or tuple(self.queues)))

    async def _declare(self, queues: Sequence[str]) -> None:
        async with warren.client.connect(self.world.url) as connection:
            channel = await connection.channel()
            for queue in queues:
                await channel.declare_queue(queue, durable=True, arguments=self.world.arguments)

    def delete(self, *queues: str) -> None:
        asyncio.run(self._delete(queues or tuple(self.queues)))

    async def _delete(self, queues: Sequence[str]) -> None:
        async with warren.client.connect(self.world.url) as connection:
            channel = await connection.channel()
            for queue in queues:
                await channel.delete_queue(queue)

    def publish(self, rate: int, queues: Sequence[str] | None = None, first: int = 0) -> Process:
        """Begin to publish, so many messages a second over all queues."""
        number = len(self.publishers)
        options = PublisherOptions(
            self.world.url,
            list(queues or self.queues),
            str(self._logs / f"publisher-{number}.log"),
            rate,
            self.random.randrange(1_000_000),
            first,
        )
        publisher = Process(
            "tests.e2e.groups.publisher", options, self.folder / f"publisher-{number}.out"
        )
        self.publishers.append(publisher)
        publisher.wait_ready()
        return publisher

    def silence(self, *publishers: Process) -> None:
        """Stop publishing; every confirm that is due has come."""
        for publisher in publishers or self.publishers:
            if publisher.popen.returncode is None:
                publisher.send(signal.SIGTERM)
        for publisher in publishers or self.publishers:
            if publisher.popen.returncode is None:
                assert publisher.wait() == 0, "a publisher had no answer"

    # -- judging ---------------------------------------------------------------------------------
    def handled(self) -> int:
        """How many messages were worked on to the end so far."""
        return sum(file.read_bytes().count(b'"end"') for file in self._logs.glob("w*.log"))

    def wait_handled(self, more: int, within_s: float = 60.0) -> None:
        """Return when so many more messages were handled than now."""
        wanted = self.handled() + more
        eventually(lambda: self.handled() >= wanted, within_s, every_s=0.05)

    def settle(self, within_s: float = SETTLE_S) -> Verdict:
        """Stop the load, wait until all of it is handled, and judge."""
        self.silence()
        with suppress(AssertionError):  # the verdict says what is lost
            eventually(self.all_handled, within_s, every_s=0.3)
        return check_group(read_group_log(self._logs))

    def all_handled(self) -> bool:
        """Whether nothing that was confirmed so far is left to be done."""
        return check_group(read_group_log(self._logs)).count("lost") == 0

    def close(self) -> None:
        for process in (*self.members.values(), *self.publishers):
            process.kill()
        self.log.close()


@contextmanager
def arena(folder: Path, world: World, queues: int, *, seed: int = 1) -> Iterator[Arena]:
    """An arena with its queues declared; they and all processes are gone afterwards."""
    names = [f"e2e-{seed}-{os.getpid()}-{number:03}" for number in range(queues)]
    ring = Arena(folder, world, names, seed=seed)
    try:
        ring.declare()
        yield ring
        ring.delete()
    except BaseException:
        with suppress(WarrenError):  # what went wrong is told, not what follows from it
            ring.delete()
        raise
    finally:
        ring.close()
