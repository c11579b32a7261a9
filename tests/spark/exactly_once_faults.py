"""What is done to a job, its broker and its disk while the proof of exactly once runs."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable

from tests.spark import exactly_once_load as load
from tests.spark.exactly_once_job import RETENTION_S
from tests.spark.exactly_once_source import FULL_AT
from tests.spark.exactly_once_stage import Stage
from tests.spark.exactly_once_steps import CLEARING, STEPS, Order
from tests.support.eventually import eventually

#: A step that no task comes to is waited for so long.
_STEP_S = 15.0
#: A frozen connection is noticed by heartbeats; if not, its end is told after so long.
_FROZEN_S = 25.0
#: A sleeper that writes what another has written; a broker that has just answered that it read an
#: acknowledgement, and may not have it on its disk; the same, and Spark reads that batch again.
_WORST = {
    "broker": "before settled",
    "node": "before settled",
    "power": "after the last row",
    "zombie": "before segment",
    "oversleep": "before segment",
}
#: Those whose process is stopped, and goes on later.
_SLEEPERS = ["zombie", "oversleep"]


class Faults:
    """Kinds of faults by their names: each has a method."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._random = stage.random
        self.done: Counter[str] = Counter()

    @property
    def kinds(self) -> list[str]:
        """What can happen here."""
        on_cluster = [] if self._stage.is_local else ["executor"]
        broker = self._stage.target.kind
        killed = ["task", *on_cluster, "driver", "connection", broker]
        return [*killed, "power", "disk", "freeze", *_SLEEPERS]

    def disturb(self, what: str, at: str = "") -> None:
        """Have it happen; ``at`` a step of a task's drain, or at what a disk refuses."""
        if what == "disk":
            self.disk(at)
        else:
            what = self._disturb(what, at)
        self.done[what] += 1

    def _disturb(self, what: str, at: str) -> str:
        """Says what has happened: nobody may come to a step at which one was to be stopped."""
        is_broker = what in (self._stage.target.kind, "power")
        ends = self._stage.target.aim(self._random) if is_broker else set[int]()
        sleeps = what in _SLEEPERS
        if sleeps and not at:
            at = self._step(what, STEPS)
        if not at:
            getattr(self, what)(None)
            return what
        order = Order(self._stage.folder, at, ends=ends, detached=sleeps)
        try:
            met = order.await_task(_STEP_S)
            what = "driver" if sleeps and met is None else what
            getattr(self, what)(met)
        finally:
            order.done()
        return what

    # -- one after the other ---------------------------------------------------------------------
    def one(self, what: str) -> str:
        """At a moment of any kind; says at which."""
        moment = self._random.choice(["after a commit", "at any time", "at a step"])
        at = self._step(what, STEPS) if moment == "at a step" or what == "disk" else ""
        if moment == "after a commit":
            self._stage.await_progress(self._random.randrange(1, 400))
            time.sleep(self._random.random() * 0.5)
        elif moment == "at any time":
            time.sleep(self._random.random() * 4)
        self.disturb(what, at)
        return at or moment

    def another(self, what: str) -> str:
        """Shortly after one, while a task clears up or begins again; says when."""
        at = self._step(what, ["", *CLEARING])
        if not at:
            time.sleep(self._random.random() * 1.5)
        self.disturb(what, at)
        return at or "shortly after"

    def _step(self, what: str, steps: list[str]) -> str:
        """Any of them, but each second time the one at which this kind does most harm."""
        worst = _WORST.get(what)
        if steps is STEPS and worst and self._random.random() < 0.5:
            return worst
        return self._random.choice(FULL_AT if what == "disk" else steps)

    # -- what can happen -------------------------------------------------------------------------
    def task(self, met: int | None) -> None:
        """Kill the Python worker of a task that is at its queues."""
        load.kill(met or self._one_of(self._stage.draining))

    def executor(self, met: int | None) -> None:
        """Kill an executor of the cluster."""
        load.kill(self._one_of(lambda: load.executors(self._stage.workplaces())))

    def driver(self, met: int | None) -> None:
        """Kill the driver, and start another from the checkpoint."""
        self._stage.end_job()
        self._stage.start_job()

    def connection(self, met: int | None) -> None:
        """Cut every connection of the job, while a task has one: the driver always does."""
        if met is None:
            self._one_of(self._stage.draining)
        for proxy in self._stage.proxies:
            proxy.cut()

    def freeze(self, met: int | None) -> None:
        """Let nothing pass on the job's connections, until heartbeats have told; new ones pass."""
        if met is None:
            self._one_of(self._stage.draining)
        accepted = self._accepted
        for proxy in self._stage.proxies:
            proxy.freeze()
        with contextlib.suppress(AssertionError):
            eventually(lambda: self._accepted > accepted, within_s=_FROZEN_S, every_s=0.05)
        time.sleep(self._random.random() * 5)
        for proxy in self._stage.proxies:
            proxy.cut()

    @property
    def _accepted(self) -> int:
        return sum(proxy.accepted for proxy in self._stage.proxies)

    def broker(self, met: int | None) -> None:
        """kill -9 of the broker, or of one of its nodes; it comes back from its data folder."""
        self._stage.target.kill()

    node = broker

    def power(self, met: int | None) -> None:
        """A power cut: the broker, or a node of it, and the driver with all below it."""
        self._stage.end_job()
        self._stage.target.kill()
        self._stage.start_job()

    def disk(self, what: str) -> None:
        """The ledger's disk is full until it has refused something."""
        full, refused = self._stage.folder / "disk-full", self._stage.folder / "disk-refused"
        refused.unlink(missing_ok=True)
        full.write_text(what)
        eventually(refused.exists, within_s=120)
        full.unlink()

    def zombie(self, worker: int, *, forgotten: bool = False) -> None:
        """Stop a task's Python worker, have another attempt do its work, and let it go on: Spark
        knows nothing of it any more, and the broker has taken its messages back."""
        daemon = load.parent(worker)
        load.kill(worker, signal.SIGSTOP)
        for proxy in self._stage.proxies:
            proxy.cut()
        if self._stage.is_local:
            self._stage.end_job(but=worker)
            self._stage.start_job()
        else:
            executor = load.parent(daemon)
            for pid in (daemon, executor):
                load.kill(pid)
        try:
            self._stage.await_progress()
            if forgotten:
                time.sleep(RETENTION_S + 1)
                self._stage.await_progress()
        finally:
            load.kill(worker, signal.SIGCONT)

    def oversleep(self, worker: int) -> None:
        """The same for so long that the ledger has forgotten the rows."""
        self.zombie(worker, forgotten=True)

    def _one_of(self, find: Callable[[], list[int]]) -> int:
        return self._random.choice(eventually(find, within_s=120, every_s=0.01))
