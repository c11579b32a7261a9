"""A ledger that is not on a local disk: the same drain, with a task that dies, on other places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs

from tests.contract.ledger.test_files import reached
from tests.spark.drains import Task, publish
from tests.support import object_stores
from tests.support.brokers import TestBroker
from tests.support.wire import Channel
from warren.spark.ledger.files import ArrowFiles, Files
from warren.spark.ledger.places import open_files

pytestmark = pytest.mark.parametrize("broker", ["warren"], indirect=True)


class NoReplacing(fs.FileSystemHandler):  # type: ignore[misc]
    """HDFS as far as a ledger needs it: a rename onto a file that is there is refused."""

    def __init__(self, folder: Path) -> None:
        self._below = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())

    def get_type_name(self) -> str:
        return "no-replacing"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return self._below.get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return self._below.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._below.create_dir(path, recursive=recursive)

    def delete_file(self, path: str) -> None:
        self._below.delete_file(path)

    def move(self, source: str, to: str) -> None:
        if self._below.get_file_info(to).type != fs.FileType.NotFound:
            raise FileExistsError(to)
        self._below.move(source, to)

    def open_input_stream(self, path: str) -> object:
        return self._below.open_input_stream(path)

    def open_output_stream(self, path: str, metadata: object) -> object:
        return self._below.open_output_stream(path)

    def _not_used(self, *_: object) -> None:
        raise NotImplementedError

    delete_dir = delete_dir_contents = delete_root_dir_contents = _not_used
    copy_file = open_input_file = open_append_stream = _not_used


@pytest.fixture(params=["pyarrow.fs", *object_stores.NAMES])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    if request.param in object_stores.NAMES:
        return open_files(reached(request.param, monkeypatch).new_place())
    return ArrowFiles(fs.PyFileSystem(NoReplacing(tmp_path)), "ledger", "hdfs://name/ledger")


@pytest.mark.parametrize("point", ["before segment", "after segment", "before settled"])
def test_a_task_that_dies_loses_and_doubles_nothing_wherever_the_ledger_is(
    broker: TestBroker, place: Files, channel: Channel, name: Callable[..., str], point: str
) -> None:
    queue = name("drained")
    channel.declare(queue, durable=True)
    task = Task(broker.url, place)
    publish(channel, queue, range(10))
    task.crash(queue, 0, 10, point)
    publish(channel, queue, range(10, 15))

    assert task.run(queue, 0, 10) + task.run(queue, 10, 30) == list(range(15))
    assert task.run(queue, 0, 10) == list(range(10))  # and again, from the ledger
    assert task.in_doubt(queue) == []
    assert task.ledger.prune({queue: 30}, older_than=float("inf")) > 0
