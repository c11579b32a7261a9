"""Where a ledger's files are: what each file system must be able to do, and how it does it.

One thing matters: ``put_new`` makes a file that is whole or not there, never replaces one, and
returns only when it will survive a power cut, as far as the place lets us (HDFS does not). Of two
writers of one name, one is told False.
"""

from __future__ import annotations

import errno
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from pyarrow import fs as arrow_fs

from warren.errors import LedgerGone, LedgerUnusable
from warren.spark.ledger.rename import NoSafeRename, rename_new

#: What is being written is called so and by hexadecimal digits. A file of a queue whose name
#: begins like that has an '@' behind it.
_TEMPORARY, _OF_A_QUEUE = ".tmp-", "@"
#: What says that a file can have no further name.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)


class Files(Protocol):
    """A flat folder of files."""

    #: For errors and logs.
    place: str
    #: One file can have several names: ``put_shared`` writes it once.
    shares: bool
    #: About how many octets a segment should have, at the most.
    segment_bytes: int

    def make(self) -> None:
        """Make the folder, so that it survives a power cut. Nothing else makes it."""
        ...

    def names(self) -> list[str]:
        """All file names; [] if the folder is not there."""
        ...

    def read(self, name: str) -> bytes | None:
        """The whole file; None if it is not there."""
        ...

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        """Make a file; False if there is one. Raises LedgerGone if the folder is not there."""
        ...

    def put_empty(self, names: Sequence[str]) -> None:
        """Make empty files, where there is none. They need not survive a power cut."""
        ...

    def put_shared(self, names: Sequence[str], data: bytes | bytearray) -> list[bool] | None:
        """Make one file under several names; of each, False if it is taken.

        None if a file has one name only here; some may have been made.
        """
        ...

    def sync(self) -> None:
        """Have the names that are there survive a power cut."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        ...

    def modified_at(self, name: str) -> float:
        """When it was written, in seconds since 1970; 0.0 if that can't be told."""
        ...


def _is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY) and _OF_A_QUEUE not in name


@contextmanager
def explained(place: str) -> Iterator[None]:
    """What the system refuses becomes LedgerUnusable; a folder that is not there, LedgerGone."""
    try:
        yield
    except FileNotFoundError:
        raise LedgerGone(place, "its folder is gone") from None
    except OSError as error:
        raise LedgerUnusable(place, error.strerror or str(error)) from None
    except NoSafeRename:
        raise LedgerUnusable(
            place,
            "it has neither hard links nor a rename that refuses to replace a file, so of two "
            "tasks both would take their segment for kept: use a folder on another file system "
            "(a local disk, NFS, SMB), hdfs://, s3://, gs:// or abfs://",
        ) from None


class LocalFiles:
    """A folder of this machine, or one that is mounted on every machine (NFS)."""

    shares = True
    # A sync takes milliseconds: no more, for RabbitMQ works the harder the more is unacknowledged.
    segment_bytes = 3 << 20

    def __init__(self, folder: str) -> None:
        self.place = folder
        self._folder = Path(folder)

    def make(self) -> None:
        with explained(self.place):
            above = (self._folder, *self._folder.parents)
            new = [folder for folder in above if not folder.exists()]
            self._folder.mkdir(parents=True, exist_ok=True)
            for folder in new:
                _sync(folder.parent)

    def names(self) -> list[str]:
        with explained(self.place):
            try:
                return [name for name in os.listdir(self._folder) if not _is_temporary(name)]
            except FileNotFoundError:
                return []

    def read(self, name: str) -> bytes | None:
        with explained(self.place):
            try:
                return (self._folder / name).read_bytes()
            except FileNotFoundError:
                return None

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        return self._put([name], data)[0]

    def put_shared(self, names: Sequence[str], data: bytes | bytearray) -> list[bool] | None:
        try:
            return self._put(names, data)
        except _NoLinks:
            self.shares = False
            return None

    def _put(self, names: Sequence[str], data: bytes | bytearray) -> list[bool]:
        with explained(self.place):
            temporary = self._folder / f"{_TEMPORARY}{secrets.token_hex(6)}"
            try:
                _write(temporary, data)
                alone = len(names) == 1
                made = [_publish(temporary, self._folder / name, alone=alone) for name in names]
                if any(made):
                    self.sync()
                return made
            finally:
                temporary.unlink(missing_ok=True)

    def put_empty(self, names: Sequence[str]) -> None:
        first: Path | None = None
        with explained(self.place):
            for name in names:
                path = self._folder / name
                # Another name for an empty file is cheaper than another file.
                if first is None or not _link(first, path):
                    _touch(path)
                    first = path

    def sync(self) -> None:
        with explained(self.place):
            _sync(self._folder)

    def delete(self, name: str) -> None:
        with explained(self.place):
            (self._folder / name).unlink(missing_ok=True)

    def modified_at(self, name: str) -> float:
        with explained(self.place):
            try:
                return (self._folder / name).stat().st_mtime
            except FileNotFoundError:
                return 0.0


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _touch(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o644))


def _link(path: Path, name: Path) -> bool:
    """Give a file another name; False where that can't be."""
    try:
        os.link(path, name)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def _write(path: Path, data: bytes | bytearray) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _NoLinks(Exception):
    """A file has one name here."""


def _publish(temporary: Path, final: Path, *, alone: bool) -> bool:
    """Give a finished file its name; False if the name is taken. Atomic.

    ``alone``: it is its only one.
    """
    try:
        # A rename would replace the file of somebody else; a link refuses.
        os.link(temporary, final)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if not alone:
            raise _NoLinks from None
        return rename_new(temporary, final)
    return True


class OneName(ABC):
    """Where a file has one name, and what is there stays."""

    shares = False
    segment_bytes = 32 << 20  # an answer takes its time, however small the file is

    def make(self) -> None:
        return  # an object store has no folders

    @abstractmethod
    def put_new(self, name: str, data: bytes | bytearray) -> bool: ...

    def put_empty(self, names: Sequence[str]) -> None:
        for name in names:
            self.put_new(name, b"")

    def put_shared(self, names: Sequence[str], data: bytes | bytearray) -> list[bool] | None:
        return None

    def sync(self) -> None:
        return


class ArrowFiles(OneName):
    """A file system of ``pyarrow.fs`` whose move does not replace: HDFS.

    What is closed is on several data nodes; pyarrow has no call that waits for their disks.
    """

    def __init__(self, filesystem: arrow_fs.FileSystem, folder: str, place: str) -> None:
        self.place = place
        self._fs, self._folder = filesystem, folder.rstrip("/")

    def make(self) -> None:
        with explained(self.place):
            self._fs.create_dir(self._folder, recursive=True)

    def names(self) -> list[str]:
        with explained(self.place):
            selector = arrow_fs.FileSelector(self._folder, allow_not_found=True)
            return [
                info.base_name
                for info in self._fs.get_file_info(selector)
                if info.is_file and not _is_temporary(info.base_name)
            ]

    def read(self, name: str) -> bytes | None:
        with explained(self.place):
            try:
                with self._fs.open_input_stream(f"{self._folder}/{name}") as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        with explained(self.place):
            if self._there(name):
                return False
            temporary = f"{self._folder}/{_TEMPORARY}{secrets.token_hex(6)}"
            with self._fs.open_output_stream(temporary) as stream:
                stream.write(data)
            try:
                self._fs.move(temporary, f"{self._folder}/{name}")
            except OSError:
                self._fs.delete_file(temporary)
                if self._there(name):
                    return False
                raise
            return True

    def _there(self, name: str) -> bool:
        info = self._fs.get_file_info(f"{self._folder}/{name}")
        return bool(info.type != arrow_fs.FileType.NotFound)

    def delete(self, name: str) -> None:
        with explained(self.place):
            try:
                self._fs.delete_file(f"{self._folder}/{name}")
            except FileNotFoundError:
                return

    def modified_at(self, name: str) -> float:
        with explained(self.place):
            info = self._fs.get_file_info(f"{self._folder}/{name}")
            return info.mtime.timestamp() if info.mtime else 0.0
