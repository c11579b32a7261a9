"""Which places of a ledger are refused, and why; what all others do is in ``contract/ledger``."""

from __future__ import annotations

import errno
import os
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warren.errors import ConfigError, LedgerUnusable
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.objects import ObjectFiles
from warren.spark.ledger.places import open_files


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


def refuse_with(code: int) -> Any:
    def refuse(*_: object) -> None:
        raise OSError(code, "not here")

    return refuse


def test_a_path_and_a_file_uri_lead_to_the_same_place(tmp_path: Path) -> None:
    assert open_files(f"file://{tmp_path}").place == open_files(str(tmp_path)).place


@pytest.mark.parametrize("scheme", ["memory", "ftp", "wasb"])
def test_a_place_that_is_not_known_to_write_on_condition_is_refused(scheme: str) -> None:
    with pytest.raises(ConfigError, match=rf"{scheme}:// is not known .* hdfs://, .*s3://"):
        open_files(f"{scheme}://bucket/ledger")


@pytest.mark.parametrize(
    ("scheme", "requirement"),
    [("s3a", "s3fs>=2024.12.0"), ("gcs", "gcsfs>=2024.12.0"), ("abfss", "adlfs>=2026.2.0")],
)
def test_an_object_store_without_its_driver_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, scheme: str, requirement: str
) -> None:
    def not_there(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr("warren.spark.ledger.objects.metadata.version", not_there)

    with pytest.raises(ConfigError, match=f"{scheme}:// needs .* pip install '{requirement}'"):
        open_files(f"{scheme}://bucket/ledger")


def test_a_secret_in_a_uri_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="credentials by environment") as refused:
        open_files("s3://someone:hush@bucket/ledger")

    assert "hush" not in str(refused.value)


def test_a_container_of_an_account_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "abfss://container@account.dfs.core.windows.net/ledger"
    install(monkeypatch, lambda path: (Buckets(), "container/ledger"), "2026.8.0")

    assert open_files(place).place == place


@pytest.mark.parametrize(
    ("scheme", "driver", "version", "oldest", "is_refused"),
    [
        ("s3", "s3fs", "2023.6.0", "2024.12.0", True),
        ("s3", "s3fs", "2024.10.0", "2024.12.0", True),
        ("s3", "s3fs", "2024.12.0", "2024.12.0", False),
        ("gs", "gcsfs", "2024.10.0", "2024.12.0", True),
        ("gs", "gcsfs", "2025.3.2+local", "2024.12.0", False),
        ("abfs", "adlfs", "2025.8.0", "2026.2.0", True),
        ("abfs", "adlfs", "2026.2.0", "2026.2.0", False),
    ],
)
def test_a_driver_that_can_not_keep_a_ledger_is_refused_by_its_version(
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    driver: str,
    version: str,
    oldest: str,
    is_refused: bool,
) -> None:
    install(monkeypatch, lambda path: (Buckets(), path.partition("://")[2]), version)

    if is_refused:
        with pytest.raises(ConfigError, match=f"{driver} {version}.*'{driver}>={oldest}'"):
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
        with pytest.raises(LedgerUnusable, match=r"s3://b/l .*replaced.* 2024\.12\.0"):
            Ledger(ObjectFiles(buckets, "b/l", "s3://b/l")).create()


def test_a_folder_that_can_only_replace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refuse_with(errno.EPERM))
    monkeypatch.setattr("warren.spark.ledger.rename._rename", refuse_with(errno.EINVAL))

    with pytest.raises(LedgerUnusable, match=r"neither hard links nor .* hdfs://"):
        Ledger.at(str(tmp_path / "ledger")).create()

    assert LocalFiles(str(tmp_path / "ledger")).names() == []
