"""What lets Spark's Java start in two thirds of the time: an archive of its classes, made once.

Java can keep the classes that a program has loaded, read and checked, in a file that the next
process maps into its memory. It takes such an archive only with the list of jars that it was made
with, so the home they lie in is kept beside it. An archive that fits no longer is passed over by
Java without a word; so another Java, or another PySpark, looks for one in a folder of its own. But
one that was cut short makes Java crash: its size is kept as well, and compared before it is used.

``warren spark prepare`` makes it (``cli/spark.py``); each session on this machine looks for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warren.errors import NotPrepared
from warren.spark.java import in_options

#: What holds PySpark's archive in the package, and nothing else that a session needs.
_LEFT_OUT = "python"
#: Else Java tells on stdout of each class that it leaves out, and of an archive that does not fit.
_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_NEW = "new-"
#: What is new for longer was left by somebody who was killed.
_NEW_FOR_S = 3600.0


@dataclass(frozen=True)
class Prepared:
    """A folder for one Java and one PySpark."""

    folder: Path

    @property
    def home(self) -> Path:
        """The SPARK_HOME that the archive is good for."""
        return self.folder / "spark-home"

    @property
    def archive(self) -> Path:
        return self.folder / "classes.jsa"

    @property
    def size(self) -> Path:
        """How many octets the archive has when it is whole."""
        return self.folder / "size"

    @property
    def is_there(self) -> bool:
        try:
            whole = self.archive.stat().st_size == int(self.size.read_bytes())
        except (OSError, ValueError):  # nothing there, or nothing that this user may see
            return False
        return whole and self.home.is_dir()

    @property
    def java_options(self) -> str:
        """For Spark's ``extraJavaOptions``."""
        return f"-XX:SharedArchiveFile={in_options(self.archive)} {_QUIETLY}"

    def making_options(self, archive: Path) -> str:
        """The same, for a Java that writes the archive when it ends."""
        return f"-XX:ArchiveClassesAtExit={in_options(archive)} {_QUIETLY}"

    def keep(self, archive: Path) -> None:
        """Take a finished archive, which lies in a new folder of this one.

        Raises:
            OSError: it can't be kept.
        """
        with archive.open("rb") as file:
            os.fsync(file.fileno())
        size = archive.with_name(self.size.name)
        size.write_text(str(archive.stat().st_size))
        archive.replace(self.archive)
        size.replace(self.size)


def find(java_home: Path) -> Prepared | None:
    """What was prepared for this Java and the PySpark that is installed, if anything was."""
    return next((each for each in _candidates(java_home) if each.is_there), None)


def remove() -> list[Path]:
    """Remove all that was prepared, for whichever Java and PySpark; returns its folders."""
    found = [folder for each in _places() for folder in sorted(each.glob("spark-*"))]
    for folder in found:
        shutil.rmtree(folder)
    return found


def begin(java_home: Path) -> Prepared:
    """A place where it can be made, with the home in it.

    Raises:
        NotPrepared: there is no folder that can be written.
    """
    reasons = []
    for each in _candidates(java_home):
        try:
            each.folder.mkdir(parents=True, exist_ok=True)
            _sweep(each)
            _make_whole(each)
        except OSError as error:
            reasons.append(f"{each.folder}: {error.strerror or error}")
        else:
            return each
    raise NotPrepared("no folder for it can be written", "; ".join(reasons))


def make_home(folder: Path) -> Path:
    """Links to what the installed PySpark has, but for its archive; in a new folder in this one."""
    import pyspark

    home = folder / "spark-home"
    home.mkdir(parents=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != _LEFT_OUT:
            (home / entry.name).symlink_to(entry)
    return home


def new_folder(prepared: Prepared) -> tempfile.TemporaryDirectory[str]:
    """Where the next archive is made."""
    return tempfile.TemporaryDirectory(prefix=_NEW, dir=prepared.folder, ignore_cleanup_errors=True)


def _sweep(prepared: Prepared) -> None:
    for each in prepared.folder.glob(f"{_NEW}*"):
        if time.time() - each.stat().st_mtime > _NEW_FOR_S:
            shutil.rmtree(each, ignore_errors=True)


def _make_whole(prepared: Prepared) -> None:
    """All of the home, or none: sessions may look for it meanwhile."""
    if os.pathsep in str(prepared.folder):  # Java's list of jars would end there
        raise OSError("not a place for jars")
    with new_folder(prepared) as folder:
        home = make_home(Path(folder))
        with suppress(OSError):  # somebody was faster
            home.rename(prepared.home)


def _candidates(java_home: Path) -> list[Prepared]:
    mark = _mark(java_home)
    return [Prepared(each / f"spark-{mark}") for each in _places()]


def _places() -> Iterator[Path]:
    """With the environment that has PySpark, where there is one; or with the user's caches."""
    if sys.prefix != sys.base_prefix:
        yield Path(sys.prefix) / "var" / "warren"
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        yield Path(named) / "warren"
    else:
        with suppress(RuntimeError):  # a user without a home
            yield Path.home() / ".cache" / "warren"


def _mark(java_home: Path) -> str:
    """Another one for another PySpark, for one that was installed again, and for another Java."""
    import pyspark

    package = Path(pyspark.__file__).parent
    digest = hashlib.sha256()
    for each in (pyspark.__version__, str(package), str(java_home.resolve())):
        digest.update(each.encode() + b"\0")
    with suppress(OSError):
        digest.update((java_home / "release").read_bytes())
    with suppress(OSError):
        for name, status in sorted(_seen_by_java(package)):
            digest.update(f"{name}\0{status.st_size}\0{int(status.st_mtime)}\0".encode())
    return f"{pyspark.__version__}-{digest.hexdigest()[:12]}"


def _seen_by_java(package: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The jars, which Java knows by size and time; and a conf that somebody has put there."""
    for folder in (package / "jars", package / "conf"):
        if folder.is_dir():
            with os.scandir(folder) as entries:
                yield from ((entry.path, entry.stat()) for entry in entries)
