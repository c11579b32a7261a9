"""What every place of a ledger must do, on each kind of place."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from warren.errors import ConfigError, LedgerUnusable
from warren.spark.ledger.files import ArrowFiles, Files, LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.objects import ObjectFiles
from warren.spark.ledger.places import open_files


class Buckets:
    """An object store as fsspec shows it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self._one_at_a_time = threading.Lock()

    def invalidate_cache(self) -> None:
        """There is none."""

    def ls(self, folder: str, *, detail: bool) -> list[str]:
        found = [path for path in self.objects if path.startswith(folder + "/")]
        if not found:
            raise FileNotFoundError(folder)
        return found

    def cat_file(self, path: str) -> bytes:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def pipe_file(self, path: str, data: bytes, *, mode: str) -> None:
        assert mode == "create"
        with self._one_at_a_time:
            if path in self.objects:
                raise FileExistsError(path)
            self.objects[path] = bytes(data)

    def rm_file(self, path: str) -> None:
        if self.objects.pop(path, None) is None:
            raise FileNotFoundError(path)

    def modified(self, path: str) -> Any:
        raise NotImplementedError


@pytest.fixture(params=["local", "no links", "arrow", "objects"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    folder = str(tmp_path / "ledger")
    if request.param == "objects":
        return ObjectFiles(Buckets(), "bucket/ledger", "s3://bucket/ledger")
    if request.param == "arrow":
        return ArrowFiles(fs.LocalFileSystem(), folder, folder)
    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse_with(errno.EPERM))
    return LocalFiles(folder)


def refuse_with(code: int) -> Any:
    def refuse(*_: object) -> None:
        raise OSError(code, "not here")

    return refuse


def test_a_folder_that_is_not_there_is_empty(files: Files) -> None:
    assert files.names() == []
    assert files.read("a") is None


def test_what_is_put_is_there(files: Files) -> None:
    assert files.put_new("a", b"one")

    assert files.names() == ["a"]
    assert files.read("a") == b"one"


def test_what_is_there_is_not_replaced(files: Files) -> None:
    files.put_new("a", b"one")

    assert not files.put_new("a", b"two")
    assert files.read("a") == b"one"
    assert files.names() == ["a"]


def test_of_many_writers_of_one_name_one_is_told_that_it_is_new(files: Files) -> None:
    if isinstance(files, ArrowFiles):
        return  # it rests on a move that does not replace, which HDFS has, and this has not
    writers, rounds = 8, 40
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
    assert LocalFiles("/nowhere").modified_at("a") == 0.0


def test_a_path_and_a_file_uri_lead_to_the_same_place(tmp_path: Path) -> None:
    assert open_files(f"file://{tmp_path}").place == open_files(str(tmp_path)).place


def test_a_file_with_a_name_like_an_unfinished_one_is_there(files: Files) -> None:
    files.put_new("jobs.tmp-1@0.arrow", b"one")

    assert files.names() == ["jobs.tmp-1@0.arrow"]


@pytest.mark.parametrize("scheme", ["memory", "ftp", "abfs"])
def test_a_place_that_is_not_known_to_write_on_condition_is_refused(scheme: str) -> None:
    with pytest.raises(ConfigError, match=rf"{scheme}:// is not known .* hdfs://, .*s3://"):
        open_files(f"{scheme}://bucket/ledger")


def test_an_object_store_without_its_driver_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="s3fs"):
        open_files("s3://bucket/ledger")


@pytest.mark.parametrize(("scheme", "driver"), [("s3", "s3fs"), ("gs", "gcsfs")])
@pytest.mark.parametrize(
    ("version", "is_refused"),
    [("2023.6.0", True), ("2024.10.0", True), ("2024.12.0", False), ("2025.3.2+local", False)],
)
def test_a_driver_that_ignores_the_condition_is_refused_by_its_version(
    monkeypatch: pytest.MonkeyPatch, scheme: str, driver: str, version: str, is_refused: bool
) -> None:
    install(monkeypatch, lambda path: (Buckets(), path.partition("://")[2]), version)

    if is_refused:
        with pytest.raises(ConfigError, match=f"{driver} {version}.*'{driver}>=2024.12.0'"):
            open_files(f"{scheme}://bucket/ledger")
    else:
        assert open_files(f"{scheme}://bucket/ledger").put_new("a", b"one")


def install(monkeypatch: pytest.MonkeyPatch, opener: Any, version: str) -> None:
    """Have fsspec, and a driver of that version."""
    core = SimpleNamespace(url_to_fs=opener)
    monkeypatch.setattr("warren.spark.ledger.objects.import_module", lambda _: core)
    monkeypatch.setattr("warren.spark.ledger.objects.metadata.version", lambda _: version)


class NoCredentials(Exception):
    """As botocore's errors, which are no OSErrors."""


class Refused:
    """An object store that lets nobody in."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any, **__: Any) -> None:
            raise NoCredentials("Unable to locate credentials")

        return refuse


@pytest.mark.parametrize(
    "use",
    [
        lambda files: files.names(),
        lambda files: files.read("a"),
        lambda files: files.put_new("a", b"one"),
        lambda files: files.put_empty(["a"]),
        lambda files: files.delete("a"),
        lambda files: files.modified_at("a"),
    ],
)
def test_whatever_an_object_store_raises_is_an_error_of_the_ledger(use: Any) -> None:
    with pytest.raises(LedgerUnusable, match=r"s3://b/l .*Unable to locate credentials"):
        use(ObjectFiles(Refused(), "b/l", "s3://b/l"))


def test_a_driver_that_can_not_be_made_is_an_error_of_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, Refused().connect, "2025.3.0")

    with pytest.raises(LedgerUnusable, match="Unable to locate credentials"):
        open_files("s3://bucket/ledger")


def test_a_condition_that_is_not_named_in_the_refusal_is_understood() -> None:
    class Terse(Buckets):
        def pipe_file(self, path: str, data: bytes, *, mode: str) -> None:
            try:
                super().pipe_file(path, data, mode=mode)
            except FileExistsError:
                raise OSError(errno.EINVAL, "At least one of the conditions did not hold") from None

    files = ObjectFiles(Terse(), "b/l", "s3://b/l")

    assert files.put_new("a", b"one")
    assert not files.put_new("a", b"two")
    assert files.read("a") == b"one"


class Careless(Buckets):
    """An object store, or its driver, that ignores the condition: s3fs before 2024.12.0."""

    def pipe_file(self, path: str, data: bytes, *, mode: str) -> None:
        self.objects[path] = bytes(data)


def test_a_place_that_replaces_files_is_not_taken_for_a_ledger() -> None:
    buckets = Careless()

    for _ in range(2):  # nor the second time, when there seems to be one
        with pytest.raises(LedgerUnusable, match=r"s3://b/l .*replaced.* s3fs 2024\.12\.0"):
            Ledger(ObjectFiles(buckets, "b/l", "s3://b/l")).create()


def test_a_place_that_replaces_nothing_keeps_its_id(files: Files) -> None:
    made = Ledger(files).create()

    assert Ledger(files).create() == made


def test_a_folder_that_can_only_replace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refuse_with(errno.EPERM))
    monkeypatch.setattr("warren.spark.ledger.rename._rename", refuse_with(errno.EINVAL))

    with pytest.raises(LedgerUnusable, match=r"neither hard links nor .* hdfs://"):
        Ledger.at(str(tmp_path / "ledger")).create()

    assert LocalFiles(str(tmp_path / "ledger")).names() == []
