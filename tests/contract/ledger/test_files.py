"""What every place of a ledger must do, on each kind of place."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyarrow import fs

from tests.support import object_stores
from tests.support.object_stores import LISTED_AT_A_TIME, ObjectStore
from tests.unit.spark.ledger.test_files import refuse_with
from warren.errors import LedgerGone, LedgerUnusable
from warren.spark.ledger.files import ArrowFiles, Files, LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.objects import ObjectFiles
from warren.spark.ledger.places import open_files


def reached(name: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """A store that its driver finds."""
    store = object_stores.object_store(name)
    for variable, value in store.env.items():
        monkeypatch.setenv(variable, value)
    return store


@pytest.fixture(params=["local", "no links", "arrow", *object_stores.NAMES])
def unmade(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Files:
    """A place where no ledger was made yet."""
    folder = str(tmp_path / "ledger")
    if request.param in object_stores.NAMES:
        return open_files(reached(request.param, monkeypatch).new_place())
    if request.param == "arrow":
        return ArrowFiles(fs.LocalFileSystem(), folder, folder)
    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse_with(errno.EPERM))
    return LocalFiles(folder)


@pytest.fixture
def files(unmade: Files) -> Files:
    unmade.make()
    return unmade


def test_a_folder_that_is_not_there_is_empty(unmade: Files) -> None:
    assert unmade.names() == []
    assert unmade.read("a") is None


def test_a_folder_that_is_there_may_be_made_again(files: Files) -> None:
    files.put_new("a", b"one")

    files.make()

    assert files.names() == ["a"]


@pytest.mark.parametrize(
    "put",
    [
        lambda files: files.put_new("a", b"one"),
        lambda files: files.put_shared(["a", "b"], b"one") or files.put_new("a", b"one"),
        lambda files: files.put_empty(["a", "b"]),
    ],
)
def test_nothing_is_put_where_the_folder_is_gone(
    unmade: Files, tmp_path: Path, put: Callable[[Files], object]
) -> None:
    if isinstance(unmade, ObjectFiles):
        return  # it has no folders

    with pytest.raises(LedgerGone, match="its folder is gone"):
        put(unmade)

    assert not (tmp_path / "ledger").exists()


def test_what_is_put_is_there(files: Files) -> None:
    assert files.put_new("a", b"one")

    assert files.names() == ["a"]
    assert files.read("a") == b"one"


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # aiohttp's, of adlfs
@pytest.mark.parametrize("octets", [0, 1, 5 << 20])
def test_what_is_put_may_be_a_bytearray_of_any_size(files: Files, octets: int) -> None:
    data = bytearray(b"x" * octets)

    assert files.put_new("a", data)

    assert files.read("a") == data


def test_what_is_there_is_not_replaced(files: Files) -> None:
    files.put_new("a", b"one")

    assert not files.put_new("a", b"two")
    assert files.read("a") == b"one"
    assert files.names() == ["a"]


@pytest.mark.slow
def test_of_many_writers_of_one_name_one_is_told_that_it_is_new(files: Files) -> None:
    if isinstance(files, ArrowFiles):
        return  # it rests on a move that does not replace, which HDFS has, and this has not
    writers, rounds = 8, 20
    begin = threading.Barrier(writers)

    def write(who: int) -> list[bool]:
        made = []
        for number in range(rounds):
            begin.wait()
            made.append(files.put_new(f"a{number}", b"%d" % who))
        return made

    with ThreadPoolExecutor(writers) as pool:
        told = list(pool.map(write, range(writers)))

    for number in range(rounds):
        winners = [who for who in range(writers) if told[who][number]]
        assert [files.read(f"a{number}")] == [b"%d" % who for who in winners]


def test_one_file_under_several_names_is_there_under_each(files: Files) -> None:
    made = files.put_shared(["a", "b", "c"], b"one")
    if made is None:
        assert not files.shares
        return

    assert made == [True, True, True]
    assert sorted(files.names()) == ["a", "b", "c"]
    assert {files.read(name) for name in "abc"} == {b"one"}


def test_of_several_names_those_that_are_taken_stay_as_they_are(files: Files) -> None:
    files.put_new("b", b"one")

    made = files.put_shared(["a", "b", "c"], b"two")
    if made is None:
        assert files.names() == ["b"]
        return

    assert made == [True, False, True]
    assert [files.read(name) for name in "abc"] == [b"two", b"one", b"two"]
    assert sorted(files.names()) == ["a", "b", "c"]


def test_a_shared_file_that_loses_a_name_keeps_the_others(files: Files) -> None:
    if files.put_shared(["a", "b"], b"one") is None:
        assert files.names() == []
        return

    files.delete("a")

    assert files.read("a") is None
    assert files.read("b") == b"one"


def test_names_are_kept_to_the_letter(files: Files) -> None:
    names = ["a b@0.arrow", "a%2Fb@0.arrow", "ü@0.arrow", "%C3%BC@0.arrow", "a+b&c=d@0.arrow"]

    assert [files.put_new(name, name.encode()) for name in names] == [True] * len(names)

    assert sorted(files.names()) == sorted(names)
    assert [files.read(name) for name in names] == [name.encode() for name in names]


def test_empty_files_are_made_and_others_stay(files: Files) -> None:
    files.put_new("b", b"one")

    files.put_empty(["a", "b", "c"])
    files.put_empty(["c", "d"])

    assert [files.read(name) for name in "abcd"] == [b"", b"one", b"", b""]


def test_what_is_deleted_is_gone_and_may_be_deleted_again(files: Files) -> None:
    files.put_new("a", b"one")
    files.delete("a")
    files.delete("a")

    assert files.names() == []
    assert files.put_new("a", b"two")


def test_the_age_of_a_file_is_told_or_unknown(files: Files) -> None:
    files.put_new("a", b"one")

    assert files.modified_at("a") >= 0.0
    assert files.modified_at("b") == 0.0


@pytest.mark.parametrize("queue", ["jobs.tmp-1", ".tmp-jobs", ".tmp-", ".hidden"])
def test_a_file_with_a_name_like_an_unfinished_one_is_there(files: Files, queue: str) -> None:
    files.put_new(f"{queue}@0.arrow", b"one")

    assert files.names() == [f"{queue}@0.arrow"]


def test_a_place_that_replaces_nothing_keeps_its_id(files: Files) -> None:
    made = Ledger(files).create()

    assert Ledger(files).create() == made


@pytest.mark.parametrize("name", object_stores.NAMES)
def test_a_bucket_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = reached(name, monkeypatch)

    with pytest.raises(LedgerUnusable, match=r"(?i)no bucket nowhere-at-all|does not exist"):
        Ledger.at(f"{store.scheme}://nowhere-at-all/ledger").create()


def test_more_names_than_a_store_lists_at_a_time_are_all_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = open_files(reached("s3", monkeypatch).new_place())
    names = [f"{number:04d}" for number in range(2 * LISTED_AT_A_TIME + 1)]
    for name in names:
        files.put_empty([name])

    assert sorted(files.names()) == names
