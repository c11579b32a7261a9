"""A ledger's files in an object store: through drivers of fsspec that put on condition."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from warren.errors import ConfigError, LedgerUnusable
from warren.spark.ledger.files import OneName
from warren.spark.secrets import require_no_secret


@dataclass(frozen=True, slots=True)
class Driver:
    """A package that writes an object only if there is none of that name, in one step."""

    package: str
    #: Which has all that is needed here.
    oldest: tuple[int, int]
    #: What older ones do.
    fault: str
    #: The schemes of its URIs.
    schemes: tuple[str, ...]

    @property
    def requirement(self) -> str:
        return f"{self.package}>={self.oldest[0]}.{self.oldest[1]}.0"


_REPLACES = "replaces objects that it is told to make only if they are not there"
_DRIVERS = (
    Driver("s3fs", (2024, 12), _REPLACES, ("s3", "s3a")),
    Driver("gcsfs", (2024, 12), _REPLACES, ("gs", "gcs")),
    Driver("adlfs", (2026, 2), "can't delete a single object", ("abfs", "abfss", "az")),
)


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """What a driver can't do, it says in errors of libraries of its own (botocore's, aiohttp's),
    which have nothing in common with each other and are not OSErrors."""
    try:
        yield
    except LedgerUnusable:
        raise
    except Exception as error:
        raise LedgerUnusable(place, _reason(error)) from error


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


class ObjectFiles(OneName):
    """An object store that puts on condition, through fsspec: S3, GCS, Azure and their like."""

    def __init__(self, filesystem: Any, folder: str, place: str) -> None:
        self.place = place
        self._fs, self._folder = filesystem, folder.rstrip("/")

    def names(self) -> list[str]:
        with _explained(self.place):
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(self._folder, detail=False)
            except FileNotFoundError:
                return []
            return [path.rpartition("/")[2] for path in found]

    def read(self, name: str) -> bytes | None:
        with _explained(self.place):
            try:
                return bytes(self._fs.cat_file(f"{self._folder}/{name}"))
            except FileNotFoundError:
                return None

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        with _explained(self.place):
            try:
                # Azure's library takes a bytearray for a list of parts.
                self._fs.pipe_file(f"{self._folder}/{name}", bytes(data), mode="create")
            except FileExistsError:
                return False
            except FileNotFoundError as error:
                bucket = self._folder.partition("/")[0]
                raise LedgerUnusable(self.place, f"there is no bucket {bucket}") from error
            except OSError as error:
                # s3fs says so where the store does not tell which condition was not met.
                if error.errno == errno.EINVAL and self.read(name) is not None:
                    return False
                raise
            return True

    def delete(self, name: str) -> None:
        with _explained(self.place):
            try:
                self._fs.rm_file(f"{self._folder}/{name}")
            except FileNotFoundError:
                return

    def modified_at(self, name: str) -> float:
        with _explained(self.place):
            try:
                return float(self._fs.modified(f"{self._folder}/{name}").timestamp())
            except (FileNotFoundError, NotImplementedError, KeyError):
                return 0.0


def object_files(path: str, scheme: str) -> ObjectFiles:
    """pyarrow can't put on condition, and a ledger can't do without: these drivers of fsspec can.

    Others look first and write then, which lets two writers through.
    """
    driver = next((each for each in _DRIVERS if scheme in each.schemes), None)
    if driver is None:
        known = ", ".join(f"{each}://" for driver in _DRIVERS for each in driver.schemes)
        raise ConfigError(
            "ledger", f"{scheme}:// is not known to write on condition: use a folder that every "
            f"machine has mounted, hdfs://, or one of {known}",
        )  # fmt: skip
    require_no_secret(path)
    try:
        _require_version(driver, metadata.version(driver.package))
        filesystem, folder = import_module("fsspec.core").url_to_fs(path)
    except ImportError:
        raise ConfigError(
            "ledger", f"{scheme}:// needs a driver that writes on condition: "
            f"pip install '{driver.requirement}' on every machine",
        ) from None  # fmt: skip
    except ValueError as error:
        raise ConfigError("ledger", str(error)) from None
    except ConfigError:
        raise
    except Exception as error:  # of a library of the driver's, as above
        raise LedgerUnusable(path, _reason(error)) from error
    return ObjectFiles(filesystem, folder, path)


def _require_version(driver: Driver, version: str) -> None:
    """Raises ConfigError if this version can't keep a ledger."""
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < driver.oldest:
        raise ConfigError(
            "ledger", f"{driver.package} {version} {driver.fault}: "
            f"pip install '{driver.requirement}' on every machine",
        )  # fmt: skip
