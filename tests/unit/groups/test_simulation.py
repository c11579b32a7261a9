"""Random schedules of everything that can go wrong, in a made-up world; the seed is printed.

Many more of them: ``python -m tests.unit.groups.schedules --runs 100000``.
"""

from __future__ import annotations

import pytest

from tests.unit.groups.schedules import main, run_schedule

# Each is a hundred schedules: a failing one names its seed.
HUNDREDS = 24


@pytest.mark.parametrize("hundred", range(HUNDREDS))
def test_a_hundred_random_schedules_end_well(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        run_schedule(seed)


def test_a_seed_tells_the_same_story_every_time() -> None:
    one, other = run_schedule(7), run_schedule(7)
    assert (one.trace, one.events, one.state) == (other.trace, other.events, other.state)


if __name__ == "__main__":
    main()
