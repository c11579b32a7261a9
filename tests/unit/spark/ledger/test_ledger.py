from __future__ import annotations

import errno
import json
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest

from warren.client.blocking_reader import Deliveries
from warren.errors import (
    LedgerDamaged,
    LedgerGone,
    LedgerInUse,
    LedgerMismatch,
    LedgerTooNew,
    LedgerUnusable,
)
from warren.spark.deliveries import to_batch
from warren.spark.ledger.ledger import Ledger, Shelf, prunable
from warren.spark.ledger.names import parse_name, stem_of
from warren.spark.ledger.segment import Segment


def segment(queue: str = "q", start: int = 0, bodies: int = 3, end: int | None = None) -> Segment:
    took = Deliveries()
    for number in range(bodies):
        took.bodies.append(b"%d" % (start + number))
        took.routes.append(b"\x00\x01q")
        took.properties.append(b"\0\0")
    batch = to_batch(took, queue, start, 1_000_000)
    return Segment(queue, start, start + bodies if end is None else end, batch, 5.0, "run")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.at(str(tmp_path / "ledger"))
    ledger.create()
    return ledger


def test_a_segment_comes_back_as_it_was_written(ledger: Ledger) -> None:
    written = segment(end=9)
    assert ledger.write(written)

    found = ledger.read("q", 0)

    assert found == written
    assert found.batch.equals(written.batch)


def test_segments_that_share_a_file_come_back_each_by_its_name(ledger: Ledger) -> None:
    written = [segment("a", 7, bodies=2), segment("b", bodies=0, end=4), segment("long" * 90, 1)]

    assert ledger.write_together(written) == [True, True, True]

    found = [ledger.read(each.queue, each.start) for each in written]
    assert found == written


def test_a_segment_of_a_shared_file_does_not_keep_the_others_in_memory(ledger: Ledger) -> None:
    ledger.write_together([segment(f"q{index}", bodies=1000) for index in range(50)])
    alone = ledger.read("q7", 0)
    assert alone is not None

    assert alone.batch.get_total_buffer_size() < 2 * segment("q7", bodies=1000).batch.nbytes


@pytest.mark.parametrize("refused", [errno.EPERM, errno.EMLINK])
def test_where_a_file_has_one_name_only_each_segment_has_its_own(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    real, made = os.link, []

    def link(path: Path, name: Path) -> None:
        made.append(name)
        if refused != errno.EMLINK or len(made) % 3 == 0:  # two names are allowed, or none
            raise OSError(refused, os.strerror(refused))
        real(path, name)

    monkeypatch.setattr(os, "link", link)
    segments = [segment(f"q{index}", bodies=1000) for index in range(8)]

    first = ledger.write_together(segments)
    ledger.write_together([segment(f"r{index}") for index in range(3)])
    monkeypatch.undo()

    assert [ledger.read(each.queue, 0) for each in segments] == segments
    assert ledger.read("r2", 0) == segment("r2")
    # Those that were made before it was noticed are told as somebody's.
    assert first.count(False) == (2 if refused == errno.EMLINK else 0)
    assert not ledger.files.shares


@pytest.mark.parametrize("name", ["warren.crc32:", "warren.crc32:00000000", 'a"warren.crc32:\\'])
def test_a_queue_of_any_name_may_share_a_file(ledger: Ledger, name: str) -> None:
    written = [segment("a"), segment(name), segment("z")]

    ledger.write_together(written)
    ledger.write(segment(name, 9))

    assert [ledger.read(each.queue, 0) for each in written] == written
    assert ledger.read(name, 9) == segment(name, 9)


def test_of_segments_that_share_a_file_one_that_came_late_is_told(ledger: Ledger) -> None:
    first = segment("b", bodies=5)
    ledger.write(first)

    assert ledger.write_together([segment("a"), segment("b")]) == [True, False]
    assert ledger.read("b", 0) == first
    assert ledger.read("a", 0) == segment("a")


def test_segments_that_share_a_file_are_pruned_one_by_one(ledger: Ledger) -> None:
    for start in (0, 3, 6):
        ledger.write_together([segment("a", start), segment("b", start)])
    ledger.settle_all([("a", 0, False), ("a", 3, False), ("b", 0, False)])

    assert ledger.prune({"a": 9, "b": 9}, older_than=float("inf")) == 3

    shelves = ledger.shelves()
    assert (shelves.of("a").starts, shelves.of("b").starts) == ([6], [3, 6])
    assert ledger.read("b", 3) == segment("b", 3)


def test_a_file_that_bears_the_name_of_another_segment_is_damaged(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.write(segment("a"))
    folder = tmp_path / "ledger"
    (folder / f"a@{0:020}.arrow").rename(folder / f"b@{0:020}.arrow")

    with pytest.raises(LedgerDamaged, match="another segment"):
        ledger.read("b", 0)


def test_a_segment_of_format_1_is_read(ledger: Ledger, tmp_path: Path) -> None:
    written = segment("old", 4)
    about = {"format": 1, "queue": "old", "start": 4, "end": 7, "rows": 3}
    metadata = {
        b"warren.segment": json.dumps({**about, "written_at": 5.0, "run": "run"}).encode(),
        b"warren.sum": b"warren.crc32:--------",
    }
    sink = pa.BufferOutputStream()
    schema = written.batch.schema.with_metadata(metadata)
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(written.batch.replace_schema_metadata(metadata))
    octets = sink.getvalue().to_pybytes()
    total = b"warren.crc32:%08x" % zlib.crc32(octets)
    path = tmp_path / "ledger" / f"old@{4:020}.arrow"
    path.write_bytes(octets.replace(b"warren.crc32:--------", total))

    assert ledger.read("old", 4) == written


def test_a_segment_without_rows_comes_back(ledger: Ledger) -> None:
    ledger.write(segment(bodies=0, end=5))

    found = ledger.read("q", 0)

    assert found is not None
    assert (found.rows, found.end) == (0, 5)


def test_a_segment_is_a_plain_file_that_pyarrow_opens(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write(segment())
    (path,) = (tmp_path / "ledger").glob("*.arrow")

    with pa.ipc.open_file(path) as reader:
        assert reader.read_all().column("body").to_pylist() == [b"0", b"1", b"2"]


def test_a_segment_is_never_replaced(ledger: Ledger) -> None:
    assert ledger.write(segment(bodies=3))
    assert not ledger.write(segment(bodies=2))

    found = ledger.read("q", 0)
    assert found is not None
    assert found.rows == 3


def test_of_many_writers_at_once_one_wins(ledger: Ledger) -> None:
    won: list[int] = []
    ready = threading.Barrier(8)

    def write(rows: int) -> None:
        ready.wait()
        if ledger.write(segment(bodies=rows)):
            won.append(rows)

    threads = [threading.Thread(target=write, args=(rows,)) for rows in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (winner,) = won
    found = ledger.read("q", 0)
    assert found is not None
    assert found.rows == winner


@pytest.mark.parametrize("queue", ["a/b", "ä ö", "..", "a@1", "%41", "x" * 255, "ß" * 127])
def test_any_name_of_a_queue_can_be_written_down(ledger: Ledger, queue: str) -> None:
    ledger.write(segment(queue))
    ledger.settle(queue, 0)

    assert ledger.shelves().of(queue) == Shelf([0], {0})
    found = ledger.read(queue, 0)
    assert found is not None
    assert found.queue == queue


def test_long_names_that_begin_alike_are_told_apart() -> None:
    assert stem_of("x" * 254 + "a") != stem_of("x" * 254 + "b")


def test_other_files_in_the_folder_are_left_alone(ledger: Ledger, tmp_path: Path) -> None:
    for name in ("notes.txt", "q@.arrow", "@1.arrow", ".tmp-0123456789ab"):
        (tmp_path / "ledger" / name).touch()

    assert ledger.shelves() == {}
    assert parse_name("ledger.json") is None


# -- damage --------------------------------------------------------------------------------------
@pytest.mark.parametrize("at", [0, 10, 0.3, 0.5, 0.9, -1])
def test_one_wrong_octet_anywhere_is_found(ledger: Ledger, tmp_path: Path, at: float) -> None:
    ledger.write(segment(bodies=50))
    (path,) = (tmp_path / "ledger").glob("*.arrow")
    data = bytearray(path.read_bytes())
    place = int(at * len(data)) if isinstance(at, float) else at
    data[place] ^= 0x01
    path.write_bytes(data)

    with pytest.raises(LedgerDamaged, match=path.name):
        ledger.read("q", 0)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_segment_cut_short_is_found(ledger: Ledger, tmp_path: Path, share: float) -> None:
    ledger.write(segment())
    (path,) = (tmp_path / "ledger").glob("*.arrow")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])

    with pytest.raises(LedgerDamaged):
        ledger.read("q", 0)


def test_a_body_that_looks_like_a_checksum_does_no_harm(ledger: Ledger) -> None:
    took = Deliveries()
    took.bodies.append(b"warren.crc32:--------" * 3)
    took.routes.append(b"\0\0")
    took.properties.append(b"\0\0")
    ledger.write(Segment("q", 0, 1, to_batch(took, "q", 0, 0)))

    assert ledger.read("q", 0) is not None


def test_a_format_of_the_future_is_left_alone(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "ledger" / "ledger.json").write_text('{"format": 3, "id": "x"}')

    with pytest.raises(LedgerTooNew, match="format 3"):
        ledger.identity()


def test_segments_without_the_marker_are_not_taken_for_a_new_ledger(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.write(segment())
    (tmp_path / "ledger" / "ledger.json").unlink()

    with pytest.raises(LedgerDamaged, match=r"ledger\.json"):
        ledger.create()


def test_a_ledger_that_vanished_is_missed(ledger: Ledger, tmp_path: Path) -> None:
    known = ledger.create()
    ledger.require(known)
    (tmp_path / "ledger").rename(tmp_path / "elsewhere")
    with pytest.raises(LedgerGone, match="it is gone"):
        ledger.require(known)

    ledger.create()
    with pytest.raises(LedgerGone, match=known):
        ledger.require(known)


def test_the_entries_of_all_new_folders_are_on_disk_when_a_ledger_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")) or fsync(file)
    )

    Ledger.at(str(tmp_path / "new" / "ledger")).create()

    assert {str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new" / "ledger")} <= set(synced)


def test_a_ledger_has_one_owner(ledger: Ledger) -> None:
    ledger.claim("query one")
    ledger.claim("query one")

    with pytest.raises(LedgerInUse, match="query one"):
        ledger.claim("query two")


@pytest.mark.parametrize("text", ["[]", "null", "5", "{}", "garbage"])
def test_an_owner_that_can_not_be_read_is_damage(ledger: Ledger, text: str) -> None:
    ledger.files.put_new("owner.json", text.encode())

    with pytest.raises(LedgerDamaged, match=r"owner\.json .* or delete it"):
        ledger.claim("query one")


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LedgerUnusable, match="nothing is lost"):
        Ledger.at(str(tmp_path / "file" / "ledger")).create()


def test_a_full_disk_leaves_no_half_segment(ledger: Ledger, tmp_path: Path) -> None:
    with refusing_disk(), pytest.raises(LedgerUnusable, match="No space left"):
        ledger.write(segment())

    assert sorted(os.listdir(tmp_path / "ledger")) == ["ledger.json"]
    assert ledger.write(segment())


@contextmanager
def refusing_disk() -> Iterator[None]:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", refuse)
        yield


def test_a_segment_is_on_disk_before_it_has_its_name(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, link = os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda file: steps.append("fsync") or fsync(file))
    monkeypatch.setattr(os, "link", lambda *names: steps.append("name") or link(*names))

    ledger.write(segment())

    assert steps == ["fsync", "name", "fsync"]  # the file, its name, the folder


def test_a_mark_does_not_count_for_a_segment_that_is_made_when_its_own_is_gone(
    ledger: Ledger,
) -> None:
    for queue, unordered in (("q", False), ("r", True)):
        for start in (0, 3):
            ledger.write(segment(queue, start))
            ledger.settle(queue, start, unordered=unordered)
        ledger.files.delete(f"{queue}@{0:020}.arrow")

        ledger.drop_stray_marks(queue, ledger.shelves().of(queue))
        ledger.write(segment(queue, 0))

        shelf = ledger.shelves().of(queue)
        assert shelf.in_doubt == [0]
        assert shelf.disturbed == ({3} if unordered else set())


@pytest.mark.parametrize("kept", [[], [0]])
@pytest.mark.parametrize("unordered", [False, True])
def test_a_mark_behind_all_segments_tells_of_one_that_was_lost(
    ledger: Ledger, kept: list[int], unordered: bool
) -> None:
    for start in (0, 3):
        ledger.write(segment("q", start))
        ledger.settle("q", start, unordered=unordered)
    for start in {0, 3}.difference(kept):
        ledger.files.delete(f"q@{start:020}.arrow")
    names = sorted(ledger.files.names())

    ledger.prune({"q": 6}, older_than=inf)
    with pytest.raises(LedgerDamaged, match=rf"q@0*{3 * len(kept)}\.arrow .*it is missing"):
        ledger.drop_stray_marks("q", ledger.shelves().of("q"))

    assert sorted(ledger.files.names()) == names


def test_a_segment_that_was_made_while_the_names_were_listed_is_not_lost(ledger: Ledger) -> None:
    ledger.write(segment("q", 0))
    ledger.settle("q", 0)
    seen = Shelf(starts=[], settled={0})  # its mark, but not yet the segment

    ledger.drop_stray_marks("q", seen)

    assert ledger.shelves().of("q").in_doubt == [0]


# -- chains --------------------------------------------------------------------------------------
def test_a_chain_ends_where_the_next_segment_is_missing(ledger: Ledger) -> None:
    ledger.write(segment(start=0, bodies=3))
    ledger.write(segment(start=3, bodies=1, end=6))

    assert [(each.start, each.end) for each in ledger.chain("q", 0, 10)] == [(0, 3), (3, 6)]


def test_a_segment_that_reaches_beyond_the_range_is_an_error(ledger: Ledger) -> None:
    ledger.write(segment(bodies=5))

    with pytest.raises(LedgerMismatch, match=r"two queries .* loaded the queue twice"):
        list(ledger.chain("q", 0, 4))


# -- marks ---------------------------------------------------------------------------------------
def test_the_last_mark_tells_whether_the_queue_may_be_out_of_order(ledger: Ledger) -> None:
    ledger.write(segment(start=0))
    ledger.settle("q", 0, unordered=True)
    assert ledger.shelves().of("q").unordered
    assert ledger.shelves().of("q").in_doubt == []

    ledger.write(segment(start=3))
    ledger.settle("q", 3)
    assert not ledger.shelves().of("q").unordered
    assert not ledger.shelves().of("another").unordered


def test_both_kinds_of_marks_go_with_their_segments(ledger: Ledger) -> None:
    for start in (0, 3, 6):
        ledger.write(segment(start=start))
        ledger.settle("q", start, unordered=start == 3)

    assert ledger.prune({"q": 6}, older_than=float("inf")) == 2
    left = sorted(name for name in ledger.files.names() if name.startswith("q@"))
    assert left == [f"q@00000000000000000006.{kind}" for kind in ("arrow", "forgotten", "settled")]


# -- pruning -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("starts", "settled", "committed", "gone"),
    [
        ([0, 5, 9], {0, 5, 9}, 9, [0, 5]),
        ([0, 5, 9], {0, 5, 9}, 100, [0, 5]),
        ([0, 5, 9], {0, 5, 9}, 5, [0]),
        ([0, 5, 9], {0, 5, 9}, 4, []),
        ([0, 5, 9], {5, 9}, 9, []),  # or there would be a gap behind what is in doubt
        ([0, 5, 9], {0, 9}, 100, [0]),
        ([0], {0}, 100, []),
        ([], set(), 100, []),
    ],
)
def test_only_what_nobody_needs_is_pruned(
    starts: list[int], settled: set[int], committed: int, gone: list[int]
) -> None:
    assert list(prunable(Shelf(starts, settled), committed)) == gone


def test_pruning_spares_the_young(ledger: Ledger, tmp_path: Path) -> None:
    for start in (0, 3, 6):
        ledger.write(segment(start=start))
        ledger.settle("q", start)

    assert ledger.prune({"q": 6}, older_than=0.0) == 0
    assert ledger.prune({"q": 6}, older_than=float("inf")) == 2
    assert ledger.shelves().of("q") == Shelf([6], {6}, floors=[6])


def test_one_mark_tells_where_what_is_kept_begins(ledger: Ledger) -> None:
    for start in (0, 3, 6, 9):
        ledger.write(segment(start=start))
        ledger.settle("q", start)
        ledger.prune({"q": start}, older_than=float("inf"))

    assert [name for name in ledger.files.names() if name.endswith(".forgotten")] == [
        "q@00000000000000000009.forgotten"
    ]


def test_a_prune_that_was_cut_short_is_finished_by_the_next(ledger: Ledger) -> None:
    ledger.settle("q", 0)  # the mark of a segment that is gone
    ledger.write(segment(start=3))

    ledger.prune({"q": 5}, older_than=0.0)

    assert ledger.shelves().of("q") == Shelf([3])
