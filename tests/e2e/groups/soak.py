"""All that can happen to a group, again and again: ``python -m tests.e2e.groups.soak --rounds 10``.

Each round runs every scenario on every broker and with every coordinator, with a seed of its own;
a failing one prints its seed. ``--table FILE`` writes what came of it, for the documentation.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.groups.scenarios import SCENARIOS, SOME, Needs, Scenario
from tests.e2e.groups.stage import stage
from tests.support.servers import Run
from warren.testing.group_log import Verdict

BROKERS = ("warren", "rabbitmq")
COORDINATORS = ("amqp", "etcd")


@dataclass(frozen=True)
class Case:
    scenario: Scenario
    broker: str
    coordinator: str

    @property
    def needs(self) -> Needs:
        return SCENARIOS[self.scenario]

    @property
    def title(self) -> str:
        return self.scenario.__name__.replace("_", " ")

    def __str__(self) -> str:
        return f"{self.title} ({self.broker}, {self.coordinator})"


def cases() -> Iterator[Case]:
    for scenario, needs in SCENARIOS.items():
        for broker in ("cluster",) if needs.cluster else BROKERS:
            for coordinator in ("etcd",) if needs.etcd else COORDINATORS:
                yield Case(scenario, broker, coordinator)


def run(folder: Path, case: Case, seed: int) -> Verdict:
    """One scenario from an empty folder to its verdict."""
    return run_all(folder, [case.scenario], case.broker, case.coordinator, seed)


def run_all(
    folder: Path, scenarios: list[Scenario], broker: str, coordinator: str, seed: int
) -> Verdict:
    """Scenarios one after the other on one stage, judged together.

    Raises:
        AssertionError: the group broke a promise, or did not come to rest; the message has what
            everybody said last.
    """
    needs = [SCENARIOS[each] for each in scenarios]
    with stage(
        folder,
        broker,
        coordinator,
        queues=max(each.queues for each in needs),
        seed=seed,
        own=any(each.own_broker for each in needs),
    ) as set_up:
        ring = set_up.ring
        if any(each.__name__ == "queues_come_and_go" for each in scenarios):
            ring.wanted = [f"{ring.queues[0].rpartition('-')[0]}-*"]
        try:
            worker = {key: value for each in needs for key, value in each.worker.items()}
            ring.start(max(each.members for each in needs), **worker)
            ring.publish(max(each.rate for each in needs))
            ring.wait_balanced()
            ring.wait_handled(SOME)
            for scenario in scenarios:
                scenario(set_up)
            ring.wait_handled(SOME)
            verdict = ring.settle()
            verdict.raise_for_faults()
            ring.end(*ring.members)
        except (AssertionError, RuntimeError) as error:
            told = f"seed {seed}: {type(error).__name__}: {error}\n{ring.report()}"
            raise AssertionError(told) from error
    return verdict


# -- the long form -------------------------------------------------------------------------------
@dataclass
class Row:
    """What came of one case, over all rounds."""

    case: Case
    runs: int = 0
    messages: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    together: int = 0
    longest_gap_s: float = 0.0
    failed: int = 0

    def add(self, verdict: Verdict) -> None:
        self.runs += 1
        self.messages += verdict.messages
        self.lost += verdict.count("lost")
        self.doubled += verdict.doubled
        self.out_of_order += verdict.count("order")
        self.together += verdict.count("together")
        self.longest_gap_s = max(self.longest_gap_s, verdict.longest_gap_s)


PAGE = """\
# Groups under faults

Groups of real processes work on queues under load while something is done to them: `kill -9`,
SIGSTOP and SIGCONT of members and of the dispatcher, rolling restarts, the broker, one of three
nodes, or etcd killed and brought back, a member's connections reset, frozen half open, or slowed
down by 50 ms each way, queues that come and go, and all kinds of deaths on 200 queues. Members
write down when they begin with a message and when they have ended;
`warren.testing.group_log.check_group` judges from these lines alone. `make soak` does it again.

*Done twice* are messages that a member had ended when it died or lost its connection, before the
broker had its acknowledgement: they came again, flagged redelivered. *Longest gap* is the longest
time that a message at its turn had to wait in any queue: with `kill -9` how fast queues are taken
over, with SIGSTOP how long a hung member is waited for (two `heartbeat_s` at most, of 2 s
here), with a killed broker how long that takes to start.

"""


def table(rows: list[Row]) -> str:
    """A table for the documentation."""
    lines = [
        "| scenario | broker | coordinator | runs | messages | lost | out of order | two at once "
        "| done twice | longest gap |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row.case.title} | {row.case.broker} | {row.case.coordinator} | {row.runs} "
        f"| {row.messages:,} | {row.lost} | {row.out_of_order} | {row.together} | {row.doubled} "
        f"| {row.longest_gap_s:.2f} s |"
        for row in rows
        if row.runs
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.groups.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument(
        "--table", type=Path, help="write the page with the fault table to this file"
    )
    options = parser.parse_args()
    rows = [Row(case) for case in cases() if options.only in str(case)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: nothing is left running
    test_run = Run.begin()
    try:
        for round_number in range(options.rounds):
            for row in rows:
                _one(row, options.seed + round_number)
    finally:
        test_run.end()
    print(table(rows))
    if options.table:
        options.table.write_text(PAGE + table(rows))
    return 1 if any(row.failed for row in rows) else 0


def _one(row: Row, seed: int) -> None:
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="warren-groups-") as folder:
            verdict = run(Path(folder), row.case, seed)
    except Exception as error:  # noqa: BLE001 - one that fails must not end the others
        row.failed += 1
        print(f"FAILED {row.case}, {type(error).__name__}: {error}", flush=True)
        return
    row.add(verdict)
    took_s = time.monotonic() - began
    print(f"ok {row.case}, seed {seed}: {took_s:.1f} s, {verdict}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
