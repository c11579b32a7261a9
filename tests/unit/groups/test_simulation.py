"""Random schedules of everything that can go wrong, in a made-up world; the seed is printed.

python -m tests.unit.groups.test_simulation --seed 123     one schedule, with its story
python -m tests.unit.groups.test_simulation --runs 100000  many
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process

import pytest

from tests.unit.groups.simulation import World
from warren.groups.assign import quotas
from warren.groups.coordination.base import Command

# Each is a hundred schedules: a failing one names its seed.
HUNDREDS = 8
#: How many a schedule has. Most are short: it is two or three that meet that break things, and a
#: short one costs little. Some go on and on.
ACCIDENTS = [*range(1, 5)] * 5 + [5, 6, 8, 12, 40]
#: Nothing takes that long, slow handlers included; and for how long it must stay well.
PATIENCE_S, STAYS_S = 1_000.0, 2.5


def run_schedule(seed: int) -> World:
    """A stormy half minute, then calm: by then all must be well."""
    world = World(seed)
    try:
        _storm(world)
        _calm_down(world)
        _check(world)
    except AssertionError as failure:
        story = "\n".join(world.trace[-60:])
        raise AssertionError(f"seed {seed}: {failure}\n{story}") from failure
    return world


def _storm(world: World) -> None:
    pick = world.random
    for _ in range(pick.choice([1, 2, 2, 3, 3, 4])):
        world.join()
    for _ in range(pick.choice(ACCIDENTS)):
        world.run_until(world.now + pick.choice([0.0, 0.01, 0.2, 1.0, 4.0]))
        _accident(world)
        for _ in range(pick.randint(0, 4)):
            world.publish()


def _accident(world: World) -> None:
    pick, able = world.random, [p for p in world.living if p.hung_since is None]
    what = pick.choice(
        ["join", "static", "leave", "crash", "crash", "hang", "cut", "add", "remove", "order"]
    )
    if what == "join" and len(world.living) < 6:
        world.join()
    elif what == "static" and not any(p.name == "static" for p in world.living):
        world.join("static", static=True)
    elif what == "leave" and able:
        world.leave(pick.choice(able))
    elif what == "crash" and world.living:
        world.crash(pick.choice(world.living))
    elif what == "hang" and able:
        world.hang(pick.choice(able), pick.choice([0.5, 3.0, 6.0]))
    elif what == "cut" and able:
        world.cut_off(pick.choice(able), pick.choice([0.5, 3.0, 6.0]))
    elif what == "add":
        world.add_queue()
    elif what == "remove":
        world.remove_queue()
    elif what == "order" and world.living:
        _give_order(world)


def _give_order(world: World) -> None:
    member = world.random.choice(world.living).name
    queue = world.random.choice(sorted(world.queues))
    kind = world.random.choice(["drain", "undrain", "pause", "resume", "move"])
    world.command(Command(kind, member, queue))


def _calm_down(world: World) -> None:
    """All hindrances go; then time passes until all is well, and a little more."""
    world.note("calm")
    world._lossy = 0.0
    while any(p.hung_since is not None or not p.reached or p.leaving for p in world.living):
        world.run_until(world.now + 0.5)
    if not world.living:
        world.join()
    world.run_until(world.now + 1)
    for member in [p.name for p in world.living]:
        world.command(Command("undrain", member))
    for queue in sorted(world.queues):
        world.command(Command("resume", queue=queue))
    world.discover()
    end = world.now + PATIENCE_S
    while world.now < end:
        world.run_until(world.now + (STAYS_S if (well := _is_well(world)) else 1.0))
        if well and _is_well(world):  # else a rebalance was still to come
            break


def _is_well(world: World) -> bool:
    seat = world.dispatcher.seat if world.dispatcher is not None else None
    settled = seat is not None and seat.dispatcher is not None and seat.dispatcher.settled
    done = all(len(queue.acked) == queue.published for queue in world.queues.values())
    return settled and done and _is_balanced(world)


def _is_balanced(world: World) -> bool:
    held = Counter(queue.holder.name for queue in world.queues.values() if queue.holder)
    weights = {p.name: p.seat.member.identity.weight for p in world.living}
    return held == Counter(quotas(len(world.queues), weights, held))


def _check(world: World) -> None:
    dispatcher = world.dispatcher
    assert dispatcher is not None
    assert dispatcher.seat.dispatcher is not None
    assert dispatcher.seat.dispatcher.settled, "the dispatcher still waits for something"
    for name, queue in world.queues.items():
        assert queue.holder is not None, f"nobody works on {name}"
        assert queue.holder.alive
        assert queue.acked == list(range(queue.published)), (
            f"{name}: lost, twice or out of order: {queue.acked} of {queue.published}"
        )
    assert _is_balanced(world), "out of balance"
    _check_rebalances(world)


def _check_rebalances(world: World) -> None:
    """Not more than one in three seconds, but for those that may not wait."""
    assert world.state is not None
    hasty = ("died", "left", "away", "ran out", "drained", "moved", "became dispatcher")
    before = None
    for each in world.state.rebalances:
        if before is not None and not any(word in each.reason for word in hasty):
            assert each.at - before.at >= 2.999, f"{before} and at once {each}"
        before = each


@pytest.mark.parametrize("hundred", range(HUNDREDS))
def test_a_hundred_random_schedules_end_well(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        run_schedule(seed)


def test_a_seed_tells_the_same_story_every_time() -> None:
    assert run_schedule(7).trace == run_schedule(7).trace


def _run_chunk(seeds: range) -> int:
    """How many events these schedules had; a failing one raises, and names its seed."""
    return sum(run_schedule(seed).events for seed in seeds)


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
        events = sum(pool.map(_run_chunk, chunks))
    took_s = time.monotonic() - began
    rates = f"{runs / took_s:,.0f} schedules and {events / took_s:,.0f} events a second"
    return f"{runs:,} schedules ended well in {took_s:.1f} s: {rates}"


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
