"""The proof of exactly once: load, random kills, and a count at the end.

    python -m tests.spark.exactly_once --kills 100 --seed 1
    python -m tests.spark.exactly_once --broker rabbitmq-cluster --cluster

Publishers send numbered messages to several queues of several kinds, with confirms, while a Spark
job writes them to a table, and one after another is killed: the Python worker of a task, an
executor (on a Spark cluster), the driver, the connections, the broker (kill -9, its queues are
durable) or a node of a cluster of brokers. Or the disk refuses to take a segment or a mark,
connections freeze, a task sleeps until another attempt has done its work. Kills fall after commits,
at any time, at steps of a drain, and sometimes shortly after one another. At the end what is left
is read by a last run; then, with nobody at the queues, every number that was confirmed must be in
the table once, in the order of its queue, nothing must be left in the queues and nothing in doubt.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.spark import exactly_once_load as load
from tests.spark.exactly_once_brokers import TARGETS, Target, Warren
from tests.spark.exactly_once_faults import Faults
from tests.spark.exactly_once_load import Source
from tests.spark.exactly_once_result import QUEUES, Record
from tests.spark.exactly_once_stage import Stage
from tests.spark.exactly_once_steps import PRUNED, RULES, rules_used
from tests.support.eventually import eventually
from tests.support.servers import Run
from warren.spark.ledger.ledger import Ledger

LOCAL = "local[2,4]"
#: How often a kill is followed by another at once.
DOUBLE = 0.3
#: A queue's last segment may be in doubt until a message comes behind it, more than once.
_LAST_RUNS = 4


@dataclass
class Verdict:
    """What came of it."""

    published: int
    in_table: int
    lost: int
    doubled: int
    unordered: int
    altered: int
    left: int
    in_doubt: int
    #: A last run came to its end.
    finished: bool
    kills: Counter[str]
    #: How often which rule was used.
    used: Counter[str]

    @property
    def good(self) -> bool:
        wrong = self.lost or self.doubled or self.unordered or self.altered
        return self.finished and not (wrong or self.left or self.in_doubt or self.used[PRUNED])


class Harness:
    """The proof on a stage: what is done to it, and the count."""

    def __init__(
        self, folder: Path, *, seed: int, queues: int = 3, master: str = LOCAL,
        target: Target | None = None,
    ) -> None:  # fmt: skip
        target = target or Warren(folder)
        self.stage = Stage(folder, seed=seed, queues=queues, master=master, target=target)
        self.faults = Faults(self.stage)

    def __enter__(self) -> Harness:
        self.stage.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.stage.__exit__()

    # -- the end ---------------------------------------------------------------------------------
    def finish(self, patience_s: float = 180.0) -> Verdict:
        """Stop publishing, let the job read to the end, read what came back since, and count."""
        self.stage.stop_publishing()
        self._await_all(patience_s)
        finished = self._read_the_rest(patience_s)
        self.stage.end_job()
        eventually(lambda: not self._consumers(), within_s=patience_s, every_s=0.1)
        return self._judge(finished)

    def _await_all(self, patience_s: float) -> None:
        """Return when all is in the table, or when nothing more comes."""
        rows, deadline = -1, time.monotonic() + patience_s
        while time.monotonic() < deadline:
            confirmed = sum(len(source.confirmed) for source in self.stage.sources)
            if self.stage.table.count() >= confirmed and self._all_there():
                return
            if self.stage.table.last_count > rows:
                rows, deadline = self.stage.table.last_count, time.monotonic() + patience_s
            time.sleep(0.3)

    def _read_the_rest(self, patience_s: float) -> bool:
        """Runs that end by themselves; each finds a message in each queue, at the least.

        What a task held that was stopped is ready by then, and a double would be in the table.
        """
        last = self.stage.folder / "last"
        for _ in range(_LAST_RUNS):
            for publisher in self.stage.publishers:
                publisher.publish_one()
            last.touch()
            deadline = time.monotonic() + patience_s
            while last.exists():
                if time.monotonic() > deadline:
                    print("the last run does not end:", self.stage.last_words(), flush=True)
                    return False
                time.sleep(0.1)
            if not self._in_doubt() and not self._left():
                break
        return True

    def _all_there(self) -> bool:
        found = self.stage.table.numbers()
        return all(
            source.confirmed.issubset(found.get(source.queue, ())) for source in self.stage.sources
        )

    # -- the count -------------------------------------------------------------------------------
    def _left(self) -> int:
        return sum(told.message_count for told in self._queues())

    def _consumers(self) -> int:
        return sum(told.consumer_count for told in self._queues())

    def _queues(self) -> list[Any]:
        connection = load.connected(self.stage.target.urls)
        channel = connection.channel()
        told = [channel.declare(source.queue, passive=True) for source in self.stage.sources]
        connection.close()
        return told

    def _in_doubt(self) -> int:
        shelves = Ledger.at(str(self.stage.folder / "ledger")).shelves()
        return sum(len(shelf.in_doubt) for shelf in shelves.values())

    def _judge(self, finished: bool) -> Verdict:
        verdict = Verdict(
            *([0] * 6), self._left(), self._in_doubt(), finished, self.faults.done,
            rules_used(self.stage.folder),
        )  # fmt: skip
        table = self.stage.table.sums()
        for source in self.stage.sources:
            found = table.get(source.queue, [])
            counts = Counter(number for number, _ in found)
            verdict.published += len(source.confirmed)
            verdict.in_table += len(found)
            verdict.lost += _told(source, "lost", source.confirmed.difference(counts))
            again = {number for number, count in counts.items() if count > 1}
            _told(source, "doubled", again)
            verdict.doubled += sum(counts.values()) - len(counts)
            verdict.unordered += _unordered(source, [number for number, _ in found])
            verdict.altered += sum(
                zlib.crc32(source.kind.body(number)) != total for number, total in found
            )
        return verdict


def _told(source: Source, what: str, numbers: set[int]) -> int:
    if numbers:
        few = ", ".join(map(str, sorted(numbers)[:20]))
        print(f"{source.queue} ({source.kind.name}): {len(numbers)} {what}: {few}", flush=True)
    return len(numbers)


def _unordered(source: Source, found: list[int]) -> int:
    """How often a number comes behind a larger one of its priority; each place is told."""
    swapped: list[tuple[int, int]] = []
    for priority in range(max(1, source.kind.priorities)):
        same = [number for number in found if source.kind.priority(number) == priority]
        swapped += [(a, b) for a, b in pairwise(same) if a > b]
    for a, b in swapped[:20]:
        known = "both confirmed" if {a, b} <= source.confirmed else "not both confirmed"
        print(f"{source.queue} ({source.kind.name}): {b} comes behind {a} ({known})", flush=True)
    return len(swapped)


def soak(harness: Harness, kills: int, kinds: list[str]) -> Verdict:
    """Kill each kind once, then at random; and count."""
    stage, faults, number = harness.stage, harness.faults, 0
    first = iter(kinds)
    while number < kills:
        stage.await_progress()
        what = next(first, None) or stage.random.choice(kinds)
        moment = faults.one(what)
        number += 1
        print(f"{number}: {what}, {moment}, {stage.table.count()} rows", flush=True)
        if number < kills and stage.random.random() < DOUBLE:
            what = stage.random.choice(kinds)
            moment = faults.another(what)
            number += 1
            print(f"{number}: and {what}, {moment}", flush=True)
    stage.await_progress()
    return harness.finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--broker", choices=TARGETS, default="warren")
    parser.add_argument("--cluster", action="store_true", help="Spark on a standalone cluster")
    parser.add_argument("--only", default="", help="kinds of kills, separated by commas")
    parser.add_argument(
        "--keep", action="store_true", help="keep the result in bench/results, for the README"
    )
    options = parser.parse_args()
    run = Run.begin()
    try:
        return _prove(options)
    finally:
        run.end()


def _prove(options: argparse.Namespace) -> int:
    from tests.support import spark_cluster

    master = spark_cluster.cluster().url if options.cluster else LOCAL
    print(f"seed {options.seed}", flush=True)
    record = Record(options)
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[options.broker](Path(folder))
        settings = {"seed": options.seed, "queues": options.queues, "master": master}
        with Harness(Path(folder), target=target, **settings) as harness:
            record.note_version(options.broker, target.urls[0])
            kinds = [kind for kind in options.only.split(",") if kind] or harness.faults.kinds
            verdict = soak(harness, options.kills, kinds)
    _tell(verdict)
    if options.keep:
        print(f"kept in {record.keep(verdict)}")
    return 0 if verdict.good else 1


def _tell(verdict: Verdict) -> None:
    for rule in RULES:
        times = verdict.used[rule]
        print(f"{rule}: {times}" + ("" if times else " (this run shows nothing of it)"))
    print(verdict)


if __name__ == "__main__":
    sys.exit(main())
