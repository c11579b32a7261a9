"""What is gathered into a batch, when it counts as safe, and what is done when it can't be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.broker.messages import message
from warren.broker import journal as journal_module
from warren.broker.core import BrokerCore
from warren.broker.journal import ENOUGH, RETRY_MS, SHARED, SPACE_CHECK_MS, Journal
from warren.broker.message import Message
from warren.broker.queues.queue import Queue
from warren.store.base import LAST_POSITION, Batch, LogSummary, Row, as_row, entry_id
from warren.testing import FakeClock

LOG = 3


class HeldStore:
    """A store that writes when the test says so."""

    name = "the test's store"
    readable = 0

    def __init__(self) -> None:
        self.handed_over: list[Batch] = []
        self._done: list[Callable[[Exception | None], None]] = []
        self.free = 1 << 40

    def commit(self, batch: Batch, done: Callable[[Exception | None], None]) -> None:
        self.handed_over.append(batch)
        self._done.append(done)

    def finish(self, error: Exception | None = None) -> None:
        self._done.pop(0)(error)

    def free_bytes(self) -> int:
        return self.free

    def last_shared(self) -> int:
        return 100

    def definitions(self) -> list[tuple[str, str, str]]:
        return []

    def logs(self) -> dict[int, LogSummary]:
        return {}

    def read(self, log: int, after: int, limit: int) -> list[tuple[int, Row]]:
        return []

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def store() -> HeldStore:
    return HeldStore()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def core(clock: FakeClock) -> BrokerCore:
    return BrokerCore(clock=clock)


@pytest.fixture
def journal(core: BrokerCore, store: HeldStore) -> Journal:
    return Journal(core, store, free_limit_bytes=1000)


def put(journal: Journal, position: int, content: Message | None = None, **fields: Any) -> Message:
    kept = content or message(b"body", delivery_mode=2)
    journal.put(LOG, (position, kept, 0, 0), **fields)
    return kept


def shared_message() -> Message:
    kept = message(b"body", delivery_mode=2)
    kept.shared = SHARED
    return kept


def write(journal: Journal, store: HeldStore) -> Batch:
    journal.flush()
    store.finish()
    return store.handed_over[-1]


# -- what a batch holds --------------------------------------------------------------------------
def test_a_row_holds_what_comes_back(journal: Journal, clock: FakeClock, store: HeldStore) -> None:
    kept = message(b"body", delivery_mode=2)
    journal.put(LOG, (7, kept, clock.monotonic_ms() + 500, 2))
    assert write(journal, store).puts == {
        entry_id(LOG, 7): (4, clock.wall_ms() + 500, 2, 0, 0, "ex", "key", kept.content)
    }


def test_a_message_acknowledged_before_its_batch_goes_is_never_written(
    journal: Journal, store: HeldStore
) -> None:
    journal.forget(LOG, 1, put(journal, 1))
    journal.flush()
    assert store.handed_over == []
    assert journal.idle


def test_a_message_acknowledged_while_its_batch_is_written_is_deleted_by_the_next(
    journal: Journal, store: HeldStore
) -> None:
    kept = put(journal, 1)
    journal.flush()
    journal.forget(LOG, 1, kept)
    store.finish()
    assert write(journal, store).deletes == [entry_id(LOG, 1)]


def test_a_shared_message_is_written_once(journal: Journal, store: HeldStore) -> None:
    kept = shared_message()
    for log in (1, 2, 3):
        journal.put(log, (1, kept, 0, 0))
    batch = write(journal, store)
    assert batch.shared == {101: ("ex", "key", kept.content)}
    assert batch.references == {101: 3}
    assert [as_row(put)[4:] for put in batch.puts.values()] == [(101, None, None, None)] * 3


def test_a_shared_message_that_every_queue_is_done_with_is_never_written(
    journal: Journal, store: HeldStore
) -> None:
    kept = shared_message()
    for log in (1, 2):
        journal.put(log, (1, kept, 0, 0))
    for log in (1, 2):
        journal.forget(log, 1, kept)
    journal.flush()
    assert store.handed_over == []


def test_one_queue_may_be_done_with_a_message_before_the_next_has_it(
    journal: Journal, store: HeldStore
) -> None:
    kept = shared_message()
    journal.put(1, (1, kept, 0, 0))
    journal.forget(1, 1, kept)
    journal.put(2, (1, kept, 0, 0))
    batch = write(journal, store)
    assert list(batch.shared.values()) == [("ex", "key", kept.content)]
    assert list(batch.references.values()) == [1]
    assert as_row(batch.puts[entry_id(2, 1)])[4] in batch.shared


def test_a_shared_message_counts_its_entries_across_batches(
    journal: Journal, store: HeldStore
) -> None:
    kept = shared_message()
    for log in (1, 2):
        journal.put(log, (1, kept, 0, 0))
    write(journal, store)
    journal.forget(1, 1, kept)
    assert write(journal, store).references == {101: -1}


def test_a_cut_takes_what_is_in_the_batch_and_in_the_store(
    journal: Journal, store: HeldStore
) -> None:
    for position in (1, 2, 3):
        put(journal, position)
    put(journal, 4, shared_message())
    journal.cut(LOG, 2, 4)
    batch = write(journal, store)
    assert list(batch.puts) == [entry_id(LOG, 1)]
    assert batch.shared == batch.references == {}
    assert batch.cuts == [(entry_id(LOG, 2), entry_id(LOG, 4))]


def test_a_log_that_ends_takes_its_mark_along(journal: Journal, store: HeldStore) -> None:
    put(journal, 1)
    journal.mark(LOG, 1, alone=True)
    journal.end_log(LOG)
    batch = write(journal, store)
    assert (batch.puts, batch.marks) == ({}, {})
    assert batch.cuts == [(entry_id(LOG, 0), entry_id(LOG, LAST_POSITION))]


def test_a_count_of_returns_goes_into_the_row_or_behind_it(
    journal: Journal, store: HeldStore
) -> None:
    put(journal, 1)
    journal.returned(LOG, 1, 3)
    batch = write(journal, store)
    assert (batch.puts[entry_id(LOG, 1)][2], batch.returns) == (3, {})

    journal.returned(LOG, 1, 4)
    assert write(journal, store).returns == {entry_id(LOG, 1): 4}


def test_a_mark_of_messages_in_the_batch_goes_only_with_them(
    journal: Journal, store: HeldStore
) -> None:
    kept = put(journal, 1)
    journal.mark(LOG, 1, alone=False)
    journal.forget(LOG, 1, kept)
    journal.flush()
    assert store.handed_over == []

    put(journal, 2)
    assert write(journal, store).marks == {LOG: 1}


def test_a_mark_of_messages_on_disk_goes_at_once(journal: Journal, store: HeldStore) -> None:
    journal.mark(LOG, 1, alone=True)
    assert write(journal, store).marks == {LOG: 1}


# -- when it is safe -----------------------------------------------------------------------------
def test_while_one_batch_is_written_the_next_grows(journal: Journal, store: HeldStore) -> None:
    put(journal, 1)
    journal.flush()
    for position in (2, 3):
        put(journal, position)
        journal.flush()
    assert len(store.handed_over) == 1

    store.finish()
    journal.flush()
    assert [len(batch.puts) for batch in store.handed_over] == [1, 2]


def test_nothing_to_write_is_nothing_to_wait_for(journal: Journal) -> None:
    journal.flush()
    assert journal.barrier <= journal.committed


def test_what_happened_is_safe_when_the_barrier_is_committed(
    journal: Journal, store: HeldStore
) -> None:
    put(journal, 1)
    first = journal.barrier
    journal.flush()
    put(journal, 2)
    second = journal.barrier
    assert journal.committed < first < second

    store.finish()
    assert first <= journal.committed < second
    journal.flush()
    store.finish()
    assert second <= journal.committed


def test_who_waits_for_a_batch_that_was_undone_waits_no_longer(
    journal: Journal, store: HeldStore
) -> None:
    """Published behind a batch being written, acknowledged before it was: no batch will come."""
    put(journal, 1)
    journal.flush()
    kept = put(journal, 2)
    barrier = journal.barrier
    journal.forget(LOG, 2, kept)
    store.finish()
    assert barrier <= journal.committed
    assert journal.idle


def test_who_waits_for_a_batch_that_was_undone_at_once_waits_no_longer(journal: Journal) -> None:
    kept = put(journal, 1)
    barrier = journal.barrier
    journal.forget(LOG, 1, kept)
    journal.flush()
    assert barrier <= journal.committed


def test_a_batch_that_was_passed_over_does_not_make_the_next_safe(
    journal: Journal, store: HeldStore
) -> None:
    journal.flush()
    put(journal, 1)
    assert journal.barrier > journal.committed
    journal.flush()
    assert journal.barrier > journal.committed
    store.finish()
    assert journal.barrier <= journal.committed


def test_the_shell_hears_of_every_batch(journal: Journal, store: HeldStore) -> None:
    heard: list[int] = []
    journal.on_committed = lambda: heard.append(journal.committed)
    put(journal, 1)
    number = journal.number
    write(journal, store)
    assert heard[0] >= number


def test_much_is_handed_over_before_the_turn_of_the_loop_is_over(
    journal: Journal, store: HeldStore
) -> None:
    """While some connections are read from, the disk works for those that were."""
    later: list[Callable[[], None]] = []
    journal.call_back = later.append
    put(journal, 1)
    journal.flush_early()
    assert store.handed_over == []  # too little for a write of its own

    large = message(bytes(ENOUGH), delivery_mode=2)
    put(journal, 2, large)
    journal.flush_early()
    first = journal.number - 1
    put(journal, 3, large)
    journal.flush_early()
    assert len(store.handed_over) == 1  # one at a time

    store.finish()
    assert journal.committed < first  # the loop's turn is not over
    journal.flush_early()
    assert journal.committed >= first
    assert len(store.handed_over) == 2
    for act in later:
        act()
    assert journal.committed == first  # heard of once


def test_a_message_for_one_queue_is_written_as_any_other(
    core: BrokerCore, journal: Journal, store: HeldStore
) -> None:
    core.journal = journal
    queue = Queue(core.vhosts["/"], "q", durable=True, log_id=LOG)
    kept = message(b"body", delivery_mode=2)
    assert queue.publish_alone(kept)
    alone, waiting = journal.batch.puts[entry_id(LOG, 1)], journal.batch.bytes_waiting
    assert queue.publish(kept)
    assert journal.batch.bytes_waiting == 2 * waiting
    assert as_row(alone) == as_row(journal.batch.puts[entry_id(LOG, 2)])

    journal.forget(LOG, 1, kept)
    journal.returned(LOG, 2, 1)
    assert journal.batch.bytes_waiting == waiting
    batch = write(journal, store)
    assert {key: as_row(put)[2] for key, put in batch.puts.items()} == {entry_id(LOG, 2): 1}


def test_a_plain_message_that_was_given_back_says_so_in_its_batch(
    core: BrokerCore, journal: Journal, store: HeldStore
) -> None:
    core.journal = journal
    queue = Queue(core.vhosts["/"], "q", durable=True, log_id=LOG)
    queue.publish_alone(message(b"body", delivery_mode=2))
    journal.returned(LOG, 1, 3)
    batch = write(journal, store)
    assert (as_row(batch.puts[entry_id(LOG, 1)])[2], batch.returns) == (3, {})


def test_a_batch_says_if_a_queue_waits_to_read_it_back(
    journal: Journal, store: HeldStore, core: BrokerCore
) -> None:
    put(journal, 1)
    assert not write(journal, store).paged
    core.waits_for_commit[object()] = None
    put(journal, 2)
    journal.flush()
    assert store.handed_over[-1].paged


# -- trouble -------------------------------------------------------------------------------------
def test_a_batch_that_failed_is_tried_again_until_it_is_safe(
    journal: Journal, store: HeldStore, clock: FakeClock, core: BrokerCore
) -> None:
    heard: list[int] = []
    journal.on_committed = lambda: heard.append(journal.committed)
    put(journal, 1)
    barrier = journal.barrier
    journal.flush()
    for attempt in range(1, 4):
        store.finish(OSError("disk full"))
        assert journal.committed < barrier
        assert core.alarm == "low on disk"
        assert len(heard) == attempt  # the shell sets its timer
        put(journal, 1 + attempt)
        journal.flush()
        assert len(store.handed_over) == attempt
        clock.advance(RETRY_MS / 1000)
        core.tick()
        assert store.handed_over == [store.handed_over[0]] * (attempt + 1)
    store.finish()
    assert journal.committed >= barrier
    assert core.alarm == ""

    journal.flush()
    assert len(store.handed_over[-1].puts) == 3


def test_publishers_wait_when_the_disk_can_not_follow(
    journal: Journal, store: HeldStore, core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MOST_WAITING", 10_000)
    put(journal, 1)
    journal.flush()
    for position in range(2, 40):
        put(journal, position)
    journal.flush()
    assert core.alarm == "low on disk"

    store.finish()
    journal.flush()
    assert core.alarm == ""


def test_what_is_acknowledged_meanwhile_waits_for_the_disk_no_longer(
    journal: Journal, core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MOST_WAITING", 10_000)
    put(journal, 1)
    journal.flush()
    waiting = [(position, put(journal, position, shared_message())) for position in range(2, 40)]
    journal.flush()
    assert core.alarm == "low on disk"
    for position, kept in waiting:
        journal.forget(LOG, position, kept)
    journal.flush()
    assert core.alarm == ""


def test_too_little_free_space_blocks_publishers(
    journal: Journal, store: HeldStore, clock: FakeClock, core: BrokerCore
) -> None:
    journal.watch_space()
    assert core.alarm == ""
    store.free = 999
    put(journal, 1)
    write(journal, store)
    assert core.alarm == "low on disk"

    store.free = 1000  # somebody else made room: nothing is written meanwhile
    clock.advance(SPACE_CHECK_MS / 1000)
    core.tick()
    assert core.alarm == ""


def test_space_may_become_short_while_nothing_is_written(
    journal: Journal, store: HeldStore, clock: FakeClock, core: BrokerCore
) -> None:
    journal.watch_space()
    store.free = 0
    clock.advance(SPACE_CHECK_MS / 1000)
    core.tick()
    assert core.alarm == "low on disk"
