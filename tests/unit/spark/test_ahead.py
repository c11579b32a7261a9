from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from warren.spark import ahead as ahead_module
from warren.spark.ahead import ahead


def test_items_come_in_order() -> None:
    assert list(ahead(iter(range(100)), 4)) == list(range(100))


def test_the_next_item_is_made_while_one_is_in_use() -> None:
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    rest = ahead(items(), 2)
    assert next(rest) == 1
    assert made.wait(10)
    assert list(rest) == [2]


def test_an_error_comes_behind_what_was_made_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    rest = ahead(items(), 4)
    assert next(rest) == 1
    with pytest.raises(ValueError, match="no more"):
        next(rest)


def test_who_stops_reading_stops_the_work() -> None:
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(10**9)
        finally:
            ended.set()

    rest = ahead(items(), 1)
    next(rest)
    rest.close()  # type: ignore[attr-defined]

    assert ended.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "warren drain"]


def test_the_thread_that_waits_for_room_keeps_the_connection_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ahead_module, "_LOOK_S", 0.001)
    beats: list[str] = []
    enough = threading.Event()

    def beat() -> None:
        beats.append(threading.current_thread().name)
        if len(beats) >= 3:
            enough.set()

    items = ahead(iter(range(9)), 2, beat)
    assert next(items) == 0
    assert enough.wait(10)  # nobody takes the next
    assert list(items) == [*range(1, 9)]
    assert set(beats) == {"warren drain"}
