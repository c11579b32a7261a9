"""How often a query that finds nothing looks again."""

from __future__ import annotations

from warren.spark.pace import Pace
from warren.testing import FakeClock


class Looks:
    """Looks that follow one another at once, as Spark's do; each takes so long."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pace = Pace(self.now, self.clock.advance)

    def now(self) -> float:
        return self.clock.monotonic_ms() / 1000

    def look(self, *, takes_s: float, found: bool) -> float:
        """When it began."""
        self.pace.begin()
        began = self.now()
        self.clock.advance(takes_s)
        self.pace.end(found=found)
        return began

    def pauses(self, *, takes_s: float, found: bool) -> float:
        before = self.look(takes_s=takes_s, found=found) + takes_s
        return round(self.look(takes_s=takes_s, found=found) - before, 6)


def test_who_finds_nothing_looks_for_a_small_part_of_the_time() -> None:
    assert Looks().pauses(takes_s=0.004, found=False) == 0.04


def test_and_never_sees_what_comes_much_later() -> None:
    assert Looks().pauses(takes_s=3.0, found=False) == 0.25


def test_who_finds_something_looks_again_at_once() -> None:
    assert Looks().pauses(takes_s=0.1, found=True) == 0.0


def test_who_looks_seldom_never_waits() -> None:
    looks = Looks()
    looks.look(takes_s=0.1, found=False)
    looks.clock.advance(10.0)
    now = looks.now()

    assert looks.look(takes_s=0.1, found=False) == now
