"""What lets Spark's Java start in two thirds of the time: an archive of its classes, made once.

Java can keep the classes that a program has loaded, read and checked, in a file that the next
process maps into its memory. It takes such an archive only with the list of jars that it was made
with, so the home they lie in is kept beside it. An archive that fits no longer is passed over by
Java without a word; so another Java, or another PySpark, looks for one in a folder of its own.

``warren spark prepare`` makes it (``cli/spark.py``); each session on this machine looks for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warren.errors import NotPrepared
from warren.spark.java import in_options

#: What holds PySpark's archive in the package, and nothing else that a session needs.
_LEFT_OUT = "python"
#: Else Java tells on stdout of each class that it leaves out, and of an archive that does not fit.
_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


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
    def is_there(self) -> bool:
        return self.archive.is_file() and self.home.is_dir()

    @property
    def java_options(self) -> str:
        """For Spark's ``extraJavaOptions``."""
        return f"-XX:SharedArchiveFile={in_options(self.archive)} {_QUIETLY}"

    def making_options(self, archive: Path) -> str:
        """The same, for a Java that writes the archive when it ends."""
        return f"-XX:ArchiveClassesAtExit={in_options(archive)} {_QUIETLY}"

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def find(java_home: Path) -> Prepared | None:
    """What was prepared for this Java and the PySpark that is installed, if anything was."""
    return next((each for each in _candidates(java_home) if each.is_there), None)


def begin(java_home: Path) -> Prepared:
    """A place where it can be made, with the home in it.

    Raises:
        NotPrepared: there is no folder that can be written.
    """
    reasons = []
    for each in _candidates(java_home):
        try:
            each.folder.mkdir(parents=True, exist_ok=True)
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


def _make_whole(prepared: Prepared) -> None:
    """All of the home, or none: sessions may look for it meanwhile."""
    if os.pathsep in str(prepared.folder):  # Java's list of jars would end there
        raise OSError("not a place for jars")
    made = Path(tempfile.mkdtemp(prefix="new-", dir=prepared.folder))
    try:
        home = make_home(made)
        with suppress(OSError):  # somebody was faster
            home.rename(prepared.home)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _candidates(java_home: Path) -> list[Prepared]:
    """With the environment that has PySpark, where there is one; or with the user's caches."""
    found = [_user_caches() / "warren"]
    if sys.prefix != sys.base_prefix:
        found.insert(0, Path(sys.prefix) / "var" / "warren")
    return [Prepared(each / f"spark-{_mark(java_home)}") for each in found]


def _user_caches() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".cache"


def _mark(java_home: Path) -> str:
    """Another one for another PySpark, and for another Java."""
    import pyspark

    digest = hashlib.sha256()
    for each in (pyspark.__version__, pyspark.__file__, str(java_home.resolve())):
        digest.update(each.encode() + b"\0")
    with suppress(OSError):
        digest.update((java_home / "release").read_bytes())
    return f"{pyspark.__version__}-{digest.hexdigest()[:12]}"
