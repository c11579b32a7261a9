"""How much a task takes at once, of one queue and of many."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.spark.test_deliveries import deliveries
from warren.amqp.client_runs import Run
from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking_reader import Tap
from warren.client.blocking_stream import StreamTap
from warren.spark.deliveries import to_batch
from warren.spark.drain.job import FIRST_IN_TURNS, FIRST_PART, Job, Range
from warren.spark.drain.parts import Parts, overflow
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment
from warren.spark.stream import _is_part


@pytest.mark.parametrize(
    ("beside", "first"), [(1, FIRST_PART), (10, FIRST_PART // 10), (100, 20), (10_000, 20)]
)
def test_queues_of_unknown_weight_share_the_first_part(
    tmp_path: Path, beside: int, first: int
) -> None:
    parts = Parts(Ledger.at(str(tmp_path)), most=20_000)
    parts.beside = beside

    assert parts.first("orders") == first


@pytest.mark.parametrize(("beside", "octets"), [(1, 3 << 20), (100, (256 << 20) // 100)])
def test_queues_that_are_read_together_share_what_fits_into_memory(
    tmp_path: Path, beside: int, octets: int
) -> None:
    parts = Parts(Ledger.at(str(tmp_path)), most=20_000)
    parts.beside = beside
    batch = to_batch(deliveries(*[(bytes(1024), {})] * 10), "orders", 0, 0)

    segment = Segment("orders", 0, 10, batch, 0.0, "")

    assert parts.after(segment) == octets // (segment.octets // 10)


def test_a_queue_that_gives_out_in_turns_begins_with_less(tmp_path: Path) -> None:
    parts = Parts(Ledger.at(str(tmp_path)), 65_535)

    assert parts.first("orders", in_turns=True) == FIRST_IN_TURNS < parts.first("orders")


def holding(octets: int, mode: str = "exclusive", **state: Any) -> Job:
    link: Any = None
    tap = Tap(link)
    tap.took.bodies, tap.took.body_bytes = [b""] * bool(octets), octets
    return Job(Range("orders", 0, 9), 0, mode, tap=tap, **state)


@pytest.mark.parametrize(
    ("octets", "overflows"),
    [
        ([300, 400, 300], [False, False, False]),
        ([300, 401, 300], [False, True, False]),
        ([1001], [True]),
    ],
)
def test_the_heaviest_window_is_written_when_all_hold_too_much(
    octets: list[int], overflows: list[bool]
) -> None:
    jobs = [holding(each) for each in octets]

    overflow(jobs, 1000)

    assert [job.overflows for job in jobs] == overflows


def test_a_window_that_is_compared_with_the_ledger_is_not_cut() -> None:
    compared, other, third = holding(900, looking=True), holding(600), holding(500)
    assert compared.tap is not None
    compared.tap.took.redelivered = [0]

    overflow([compared, other, third], 1000)

    assert [job.overflows for job in (compared, other, third)] == [False, True, False]


def test_a_window_that_is_compared_is_cut_behind_all_that_came_back() -> None:
    compared, other = holding(900, looking=True), holding(600)

    overflow([compared, other], 1000)

    assert [job.overflows for job in (compared, other)] == [True, False]


@pytest.mark.parametrize(("octets", "overflows"), [(900, False), (3900, False), (4001, True)])
def test_a_window_whose_first_may_be_yet_to_come_is_cut_only_for_its_own_weight(
    octets: int, overflows: bool
) -> None:
    unsure, other = holding(octets, unsure=True, mode="single active"), holding(200)
    assert unsure.tap is not None
    unsure.tap.took.redelivered = [0]

    overflow([unsure, other], 1000)

    assert (unsure.overflows, other.overflows) == (overflows, not overflows)


def test_a_window_that_holds_all_that_came_back_is_cut_like_any_other() -> None:
    unsure, other = holding(900, unsure=True, mode="single active"), holding(200)
    assert unsure.tap is not None
    unsure.tap.took.bodies, unsure.tap.took.redelivered = [b"", b""], [0]

    overflow([unsure, other], 1000)

    assert (unsure.overflows, other.overflows) == (True, False)


# -- what is heavy besides bodies ------------------------------------------------------------------
def headers(octets: int, **more: int) -> bytes:
    return encode_properties(Properties(headers={"x": "y" * octets, **more}))


def fill(tap: Any, properties: list[bytes]) -> None:
    for tag, each in enumerate(properties, start=1):
        tap.deliver(b"warren", tag, False, b"\0\0", each, b"")


def test_headers_count_when_windows_hold_too_much() -> None:
    light, heavy = holding(300), holding(0)
    assert heavy.tap is not None
    fill(heavy.tap, [headers(400)] * 2)

    overflow([light, heavy], 1000)

    assert [job.overflows for job in (light, heavy)] == [False, True]


def test_headers_of_a_run_count_too() -> None:
    tap = Tap(cast(Any, None))
    run = Run(lambda run: None)
    run.properties, run.bodies = [headers(400)] * 3, [b"body"] * 3

    assert tap.run is not None
    tap.run.take(run)

    assert tap.took.octets == 3 * (len(headers(400)) + 4)


def test_a_window_is_cut_by_what_its_headers_weigh() -> None:
    tap = Tap(cast(Any, None))
    fill(tap, [headers(400)] * 5)

    assert tap.keep_octets(2 * len(headers(400)))
    assert (len(tap.took), tap.took.octets) == (2, 2 * len(headers(400)))
    assert not tap.keep_octets(2 * len(headers(400)))


def test_a_part_of_a_stream_ends_when_its_headers_are_heavy() -> None:
    tap = StreamTap(cast(Any, None))
    tap._window = 1000
    fill(tap, [headers(1 << 20, **{"x-stream-offset": offset}) for offset in range(31)])
    assert not _is_part(tap, 1000)

    fill(tap, [headers(1 << 20, **{"x-stream-offset": 31})])

    assert _is_part(tap, 1000)
