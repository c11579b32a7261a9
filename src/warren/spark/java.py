"""The Java that Spark runs on: finds it, ends it, tells it of paths."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from warren.errors import JavaMissing

#: The oldest Java that Spark runs on, and those that it is tested with.
OLDEST = 17
_TRIED = (17, 21)
JVM_FOLDER = Path("/usr/lib/jvm")


def java_home(jvm_folder: Path = JVM_FOLDER) -> Path:
    """The home of a Java that Spark can run on: JAVA_HOME, the one in PATH, then /usr/lib/jvm.

    Raises:
        JavaMissing: names what was found, and what to install.
    """
    too_old: list[str] = []
    for home in _homes(jvm_folder):
        version = _version(home)
        if version is not None and version >= OLDEST:
            return home
        if version is not None:
            too_old.append(f"{home} has Java {version}")
    raise JavaMissing(OLDEST, ", ".join(too_old))


def end_java(within_s: float = 300.0) -> int:
    """End the Java of this process's sessions, which are stopped; returns its exit code."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return 0
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()  # it ends when nobody can speak to it
    return int(process.wait(within_s))


def in_options(path: Path | str) -> str:
    """A path within ``extraJavaOptions``, which Spark splits at spaces that are not quoted."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _homes(jvm_folder: Path) -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if found := shutil.which("java"):
        yield Path(found).resolve().parent.parent
    if jvm_folder.is_dir():
        homes = [home for home in sorted(jvm_folder.iterdir()) if (home / "bin/java").exists()]
        tried = [home for each in _TRIED for home in homes if re.search(rf"\b{each}\b", home.name)]
        yield from [*tried, *homes]


def _version(home: Path) -> int | None:
    """The major version of the Java there; None if there is none."""
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None
