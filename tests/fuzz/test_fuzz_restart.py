"""Lively clients on a broker that is killed now and then: what must survive does, and nothing else.

Before each kill everything that happened is safe on disk, so the next broker must have exactly
what the one before had: durable queues, their persistent messages in order (also those that
clients held), durable exchanges and bindings. Bounded by ``WARREN_FUZZ_SECONDS``.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.arena import SECONDS, VHOST
from tests.fuzz.operations import Script, Step
from tests.fuzz.test_fuzz_broker import (
    Client,
    Stage,
    problems,
    shortened,
    show,
    small_budget,
)
from warren.broker.core import BrokerCore
from warren.store.sqlite import SqliteStore
from warren.testing import FakeClock

pytestmark = [pytest.mark.timeout(60 + 4 * SECONDS)]
__all__ = ["problems", "small_budget"]  # fixtures


class DurableStage(Stage):
    """A stage whose broker writes to a folder and can be killed."""

    def __init__(self, folder: Path, memory_limit_bytes: int = 0) -> None:
        self.clock = FakeClock()
        self._folder = folder
        self._limit = memory_limit_bytes
        self._acts: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._published = 0
        self._start()
        self._sync()
        self.core.add_vhost(VHOST)
        self.clients = [Client(self.core), Client(self.core)]

    def _start(self) -> None:
        self.core = BrokerCore(clock=self.clock, memory_limit_bytes=self._limit)
        self.core.open_store(SqliteStore(self._folder))
        assert self.core.journal is not None
        self.core.journal.call_back = self._acts.put

    def play(self, step: Step) -> None:
        what, who, data = step
        if what == "kill":
            self.kill()
            return
        if what == "publish":  # every body is another, to know them again
            self._published += 1
            channel, (exchange, key, mandatory, properties, content) = data
            body = b"%d " % self._published + content
            data = channel, (exchange, key, mandatory, properties, body)
        super().play((what, who, data))
        self._sync()
        self._rest()

    def _sync(self) -> None:
        """Wait until all that happened is on disk."""
        journal = self.core.journal
        assert journal is not None
        journal.flush()
        while not journal.idle:
            self._acts.get(timeout=10)()
            self.core.settle()
            journal.flush()

    def kill(self) -> None:
        """End without a goodbye, and start again."""
        before = self.kept()
        journal = self.core.journal
        assert journal is not None
        self._sync()
        journal.store.close()
        # A new clock: monotonic time begins anew with a process, wall time does not.
        self.clock = FakeClock(wall_s=self.clock.wall_ms() / 1000)
        self.clients = []
        self._start()
        assert self.kept() == before  # as it was; limits and ages are looked at from now on
        self._sync()
        self.core.settle()
        self.clients = [Client(self.core), Client(self.core)]
        self._rest()
        self._sync()

    def kept(self) -> dict[str, Any]:
        """What must be the same after a restart."""
        vhost = self.core.vhosts[VHOST]
        unacked = [delivery for client in self.clients for delivery in client.unacked()]
        queues = {}
        for name, each in vhost.queues.items():
            if not each.durable or each.owner is not None:
                continue
            if each.kind == "stream":
                queues[name] = [message.body for message in each._log]  # type: ignore[union-attr]
                continue
            held = [entry for holder, entry, _ in unacked if holder is each]
            entries = sorted([*_entries(each), *held], key=lambda entry: entry[0])
            queues[name] = [
                e[1].body
                for e in entries
                if each.kind == "quorum" or e[1].property("delivery_mode") == 2
            ]
        exchanges = {
            name: (exchange.type, dict(exchange.arguments))
            for name, exchange in vhost.exchanges.items()
            if exchange.durable
        }
        bindings = sorted(
            (
                binding.source,
                binding.destination_kind,
                binding.destination.name,
                binding.routing_key,
            )
            for exchange in vhost.exchanges.values()
            for binding in exchange.bindings.values()
            if exchange.durable
            and binding.destination.durable
            and getattr(binding.destination, "owner", None) is None
        )
        return {"queues": queues, "exchanges": exchanges, "bindings": bindings}

    def check_books(self) -> None:
        for each in self.core.vhosts[VHOST].queues.values():
            if each.kind != "stream":
                assert sum(entry[1].body_size for entry in _entries(each)) == each.ready_bytes

    def close(self) -> None:
        super().close()
        self._sync()
        self.core.journal.store.close()  # type: ignore[union-attr]
        store = SqliteStore(self._folder)
        assert store.logs() == {}
        assert not [row for row in store.definitions() if VHOST in row[1]]
        store.close()


def _entries(each: Any) -> list[Any]:
    """All that is ready, also what lies on disk only."""
    ready = each.ready
    entries = list(ready)
    paged = getattr(ready, "paged", 0)
    if paged:
        found = each._load(ready.after)
        assert len(found) == paged
        for entry in found:
            each.core.release(entry[1])
        entries += found
    return entries


def failure(script: list[Step], problems: list[str], folder: Path, limit: int) -> Exception | None:
    problems.clear()
    stage = None
    try:
        stage = DurableStage(folder, limit)
        for step in script:
            stage.play(step)
            stage.check_books()
            stage.check_nobody_waits_in_vain()
        stage.close()
        assert not problems, "\n".join(problems)
    except Exception as error:  # noqa: BLE001 - it is shown with its script
        if stage is not None and stage.core.journal is not None:
            stage.core.journal.store.close()
        return error
    return None


@pytest.mark.parametrize("memory_limit_bytes", [0, 600], ids=["roomy", "tight"])
def test_what_must_survive_a_kill_does_and_nothing_else(
    problems: list[str], tmp_path: Path, memory_limit_bytes: int
) -> None:
    folders = (tmp_path / str(number) for number in count())

    def fails(script: list[Step]) -> Exception | None:
        return failure(script, problems, next(folders), memory_limit_bytes)

    deadline = time.monotonic() + SECONDS * 0.1
    seed = 0
    while seed == 0 or time.monotonic() < deadline:
        script = Script(seed, nonsense=0.02).steps(120)
        for at in range(40, 160, 40):
            script.insert(at, ("kill", 0, None))
        if fails(script) is not None:
            script = shortened(script, lambda shorter: fails(shorter) is not None)
            error = fails(script)
            raise show(seed, script, error) from error
        seed += 1
