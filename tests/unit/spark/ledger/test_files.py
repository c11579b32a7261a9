"""What every place of a ledger must do, on each kind of place."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from warren.errors import ConfigError
from warren.spark.ledger.files import ArrowFiles, Files, LocalFiles, ObjectFiles, open_files


class Buckets:
    """An object store as fsspec shows it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

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

        def refuse(*_: object) -> None:
            raise OSError(errno.EPERM, "not here")

        monkeypatch.setattr(os, "link", refuse)
    return LocalFiles(folder)


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
