"""For tests of programs that use a broker: a clock that is moved by hand, and a pytest fixture."""

from warren.testing.clock import FakeClock

__all__ = ["FakeClock"]
