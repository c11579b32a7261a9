"""Random schedules of everything that can go wrong, in a made-up world; the seed is printed.

python -m tests.unit.groups.test_simulation --seed 123     one schedule, with its story
python -m tests.unit.groups.test_simulation --runs 100000  many
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import pytest

from tests.unit.groups.simulation import World
from warren.groups.assign import quotas
from warren.groups.coordination.base import Command

# Each is a hundred schedules: a failing one names its seed.
HUNDREDS = 5


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
    for _ in range(pick.randint(1, 4)):
        world.join()
    for _ in range(pick.randint(5, 40)):
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
    world.note("calm")
    world._lossy = 0.0
    world.run_until(world.now + 10)  # those that hang wake, those that leave have left
    if not world.living:
        world.join()
    world.run_until(world.now + 1)
    for member in [p.name for p in world.living]:
        world.command(Command("undrain", member))
    for queue in sorted(world.queues):
        world.command(Command("resume", queue=queue))
    world.discover()
    world.run_until(world.now + 40)
    while any(len(q.acked) < q.published for q in world.queues.values()) and world.now < 1_000:
        world.run_until(world.now + 10)  # slow handlers


def _check(world: World) -> None:
    dispatcher = world.dispatcher
    assert dispatcher is not None
    assert dispatcher.seat.dispatcher is not None
    assert dispatcher.seat.dispatcher.settled, "the dispatcher still waits for something"
    holders: Counter[str] = Counter()
    for name, queue in world.queues.items():
        assert queue.holder is not None, f"nobody works on {name}"
        assert queue.holder.alive
        holders[queue.holder.name] += 1
        assert queue.acked == list(range(queue.published)), (
            f"{name}: lost, twice or out of order: {queue.acked} of {queue.published}"
        )
    weights = {p.name: p.seat.member.identity.weight for p in world.living}
    assert holders == Counter(quotas(len(world.queues), weights, holders)), "out of balance"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--runs", type=int, default=10_000)
    asked = parser.parse_args()
    seeds = [asked.seed] if asked.seed is not None else range(asked.runs)
    for seed in seeds:
        world = run_schedule(seed)
    print(
        "\n".join(world.trace) if asked.seed is not None else f"{asked.runs} schedules ended well"
    )
    sys.exit(0)


if __name__ == "__main__":
    main()
