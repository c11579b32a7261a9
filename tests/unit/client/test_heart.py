from __future__ import annotations

import threading
import time

from tests.support.eventually import eventually
from warren.client.heart import Heart


class Member:
    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due = time.monotonic() + every_s
        self.beats = 0

    def next_beat(self) -> float:
        return self._due

    def beat(self, now: float) -> None:
        self.beats += 1
        self._due = now + self._every_s


def beating() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "warren-heartbeats"}


def test_each_member_beats_at_its_own_pace() -> None:
    heart, fast, slow = Heart(), Member(0.02), Member(3600)
    heart.add(slow)
    heart.add(fast)
    try:
        eventually(lambda: fast.beats >= 3)
        assert slow.beats == 0
    finally:
        heart.discard(fast)
        heart.discard(slow)


def test_the_thread_ends_with_the_last_member_and_starts_again_with_the_next() -> None:
    heart, member = Heart(), Member(0.02)
    before = set(threading.enumerate())
    for _ in range(2):
        heart.add(member)
        eventually(lambda: member.beats >= 1)
        heart.discard(member)
        eventually(lambda: not beating() - before)
        member.beats = 0
