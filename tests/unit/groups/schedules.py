"""Random schedules of everything that can go wrong, in a made-up world; the seed is printed.

python -m tests.unit.groups.schedules --seed 123     one schedule, with its story
python -m tests.unit.groups.schedules --runs 100000  many
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context, parent_process
from typing import NoReturn

from tests.unit.groups.cast import Process
from tests.unit.groups.simulation import HEARTBEAT_S, LEASE_S, POLICY, World
from warren.groups.assign import quotas
from warren.groups.coordination.base import Command
from warren.groups.member import Claim

#: How many a schedule has. Most are short: it is two or three that meet that break things, and a
#: short one costs little. Some go on and on.
ACCIDENTS = [1, 1, 2, 2, 3] * 20 + [4, 6, 10, 25]
KINDS = ["join", "static", "leave", "crash", "crash", "drop", "hang", "cut", "cancel"]
KINDS += ["add", "remove", "order", "order"]
ANY = tuple(Claim)
#: Nothing takes that long, slow handlers included.
PATIENCE_S = 60.0


def run_schedule(seed: int) -> World:
    """A few stormy seconds, then calm: by then all must be well."""
    world = World(seed)
    try:
        _storm(world)
        _calm_down(world)
        _check(world)
        world.end()
    except Exception as failure:
        story = "\n".join(world.trace[-60:])
        what = str(failure).partition("\n")[0]
        raise AssertionError(f"seed {seed}: {what}\n{story}") from failure
    return world


def _storm(world: World) -> None:
    pick = world.random
    for _ in range(pick.choice([1, 2, 2, 2, 3, 3])):
        world.join()
    if pick.random() < 0.15:
        world.join("static", static=True)
    for _ in range(pick.choice(ACCIDENTS)):
        for _ in range(pick.choice([0, 1, 1, 3])):
            world.publish()
        world.run_until(world.now + pick.choice([0.0, 0.01, 0.1, 0.3, 0.5, 1.1]))
        _accident(world)


def _accident(world: World) -> None:
    pick, what = world.random, world.random.choice(KINDS)
    able = [p for p in world.living if p.hung_since is None and p.connected]
    if what == "join" and len(world.living) < 6:
        world.join()
    elif what == "static":
        for former in [p for p in world.living if p.name == "static"]:
            world.crash(former)
        world.join("static", static=True)
    elif what == "leave" and able:
        world.leave(pick.choice(able))
    elif what == "crash" and world.living:
        world.crash(pick.choice(world.living))
    elif what == "hang" and able:
        world.hang(pick.choice(able), pick.choice([0.3, 1.0, HEARTBEAT_S + 0.05, 2.2]))
    elif what == "drop" and able:
        world.drop(pick.choice(able), pick.choice([0.0, 0.1, 1.0]))
    elif what == "cut" and able:
        world.cut_off(pick.choice(able), pick.choice([0.3, LEASE_S + 0.05, 1.5]))
    elif what == "cancel":
        world.cancel(pick.choice(list(world.queues)))
    elif what == "add":
        world.add_queue()
    elif what == "remove":
        world.remove_queue()
    elif what == "order" and world.living:
        _give_order(world)


def _give_order(world: World) -> None:
    member = world.random.choice(world.living).name
    queue = world.random.choice(list(world.queues))
    kind = world.random.choice(["drain", "undrain", "pause", "resume", "move", "move"])
    world.command(Command(kind, member, queue))


def _calm_down(world: World) -> None:
    """All hindrances go; then time passes until all is well, and a little more."""
    world.note("calm")
    world._lossy = 0.0
    end = world.now + PATIENCE_S
    while any(_is_hindered(p) for p in world.living):
        assert world.now < end, "one that leaves never goes"
        world.run_until(world.now + 0.25)
    if not world.living:
        world.join()
    world.run_until(world.now + 1.1 * world.latency_s)  # somebody is elected by then
    for each in list(world.commands):
        if (undo := {"drain": "undrain", "pause": "resume"}.get(each.kind)) is not None:
            world.command(replace(each, kind=undo))
    while not (_is_well(world) and _stays_well(world)):
        if world.now > end:
            _tell_what_is_wrong(world)
        world.run_until(world.now + 0.25)


def _is_hindered(process: Process) -> bool:
    hears = process.hung_since is None and process.connected and process.reached
    return process.leaving or not hears


def _stays_well(world: World) -> bool:
    """Whether nothing is still to come: neither what is on its way, nor what was lost before."""
    world.all_report()
    world.run_until(world.now + 1.1 * world.latency_s)
    return _is_well(world)


def _is_well(world: World) -> bool:
    for queue in world.queues.values():
        if len(queue.acked) != queue.published:
            return False
    dispatcher = world.dispatcher.seat.dispatcher if world.dispatcher else None
    settled = dispatcher is not None and dispatcher.settled
    return settled and _is_balanced(world) and not _wrong_beliefs(world)


def _is_balanced(world: World) -> bool:
    weights = {p.name: p.seat.member.identity.weight for p in world.processes if p.alive}
    held = dict.fromkeys(weights, 0)
    for queue in world.queues.values():
        if queue.holder is None or not queue.holder.alive:
            return False
        held[queue.holder.name] += 1
    return held == quotas(len(world.queues), weights, held)


def _tell_what_is_wrong(world: World) -> NoReturn:
    dispatcher = world.dispatcher.seat.dispatcher if world.dispatcher else None
    assert dispatcher is not None, "there is no dispatcher"
    assert dispatcher.settled, "the dispatcher still waits for something"
    for name, queue in world.queues.items():
        assert queue.holder is not None, f"nobody works on {name}"
        assert queue.holder.alive, f"a dead one works on {name}"
    assert _is_balanced(world), "out of balance"
    assert not _wrong_beliefs(world), "; ".join(_wrong_beliefs(world))
    _check(world)
    raise AssertionError("it does not stay well")


def _check(world: World) -> None:
    for name, queue in world.queues.items():
        assert queue.acked == list(range(queue.published)), (
            f"{name}: lost, twice or out of order: {queue.acked} of {queue.published}"
        )
    _check_rebalances(world)


def _wrong_beliefs(world: World) -> list[str]:
    """Where what members believe is not what is so at the broker and at the coordinator."""
    held: dict[str, list[str]] = {process.name: [] for process in world.living}
    for name, queue in world.queues.items():
        if queue.holder is not None:
            held[queue.holder.name].append(name)
    wrong = []
    for process in world.living:
        believed, has = process.seat.member.queues_in(*ANY), sorted(held[process.name])
        if believed != has:
            wrong.append(f"{process.name} is after {believed} and has {has}")
        if (process.seat.dispatcher is None) == (process is world.dispatcher):
            wrong.append(f"{process.name} does not know who is the dispatcher")
    return wrong


def _check_rebalances(world: World) -> None:
    """Not more often than the policy says, but for those that may not wait."""
    assert world.state is not None, "no state was shown"
    hasty = ("died", "left", "away", "ran out", "drained", "moved", "became dispatcher")
    before = None
    found = True
    for each in world.state.rebalances:
        if before is not None and each.at - before.at < POLICY.min_interval_s - 0.001:
            # The queues that a new dispatcher finds first may be nobody's: they don't wait.
            first_found = not found and "appeared" in each.reason
            may_not_wait = first_found or any(word in each.reason for word in hasty)
            assert may_not_wait, f"{before} and at once {each}"
        found = ("appeared" in each.reason or found) and "became dispatcher" not in each.reason
        before = each


def _run_chunk(seeds: range) -> tuple[int, float]:
    """How many events these schedules had, and the processor time they took.

    A failing one raises, and names its seed.
    """
    began = time.process_time()
    events = sum(run_schedule(seed).events for seed in seeds)
    return events, time.process_time() - began


def _end_with_the_parent() -> None:
    """A pool's processes outlive one that was killed."""

    def watch() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="end with the parent", daemon=True).start()


def _run_many(runs: int, jobs: int) -> str:
    began = time.monotonic()
    chunks = [range(first, min(first + 100, runs)) for first in range(0, runs, 100)]
    spawned = get_context("spawn")  # not forked: what a fork takes along is none of theirs
    with ProcessPoolExecutor(jobs, spawned, _end_with_the_parent) as pool:
        events, busy_s = map(sum, zip(*pool.map(_run_chunk, chunks), strict=True))
    took_s = time.monotonic() - began
    rates = f"{runs / took_s:,.0f} schedules and {events / took_s:,.0f} events a second"
    a_core = f"{runs / busy_s:,.0f} schedules a second of one core"
    return f"{runs:,} schedules ended well in {took_s:.1f} s: {rates}, {a_core}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args()
    if asked.seed is not None:
        print("\n".join(run_schedule(asked.seed).trace))
    else:
        print(_run_many(asked.runs, asked.jobs))


if __name__ == "__main__":
    main()
