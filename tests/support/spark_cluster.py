"""A real Spark standalone cluster on loopback: a master and two workers, each a process."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually
from tests.support.servers import Run, free_ports, missing
from warren.errors import JavaMissing
from warren.spark import prepared
from warren.spark.java import java_home
from warren.spark.prepared import make_home

WORKERS = 2
#: What a driver is told to give its executors.
EXECUTOR_ENV = "WARREN_TEST_EXECUTOR_ENV"
#: Half the work for a JVM that lives a minute: compile once, collect garbage with one thread, and
#: don't verify the classes of Spark's own archives.
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def quick_home(folder: Path) -> str:
    """A SPARK_HOME as ``warren.spark.session`` has it: prepared, or made in ``folder``."""
    found = prepared.find(java_home())
    home = folder / "spark-home" if found is None else found.home
    return str(home if home.is_dir() else make_home(folder))


def quick_java() -> str:
    """Options for a Java that has such a home: ``QUICK_JAVA``, and what was prepared for it."""
    found = prepared.find(java_home())
    return QUICK_JAVA if found is None else f"{found.java_options} {QUICK_JAVA}"


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster; any process of the run may hold one."""

    folder: str
    url: str
    page: str

    def workers(self) -> list[dict[str, Any]]:
        """The live workers, as the master tells of them."""
        try:
            with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:
                told = json.load(answer)
        except (OSError, ValueError):  # for a moment, it has its first page for every address
            return []
        return [each for each in told["workers"] if each["state"] == "ALIVE"]


def cluster() -> SparkCluster:
    """The run's cluster, started if it is not yet."""
    try:
        java_home()
    except JavaMissing as error:
        missing("Java", str(error))
    return SparkCluster(**Run.current().shared("spark-cluster", _start))


def _start(folder: Path) -> dict[str, Any]:
    port, page, *pages = free_ports(2 + WORKERS)
    started = SparkCluster(str(folder), f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}")
    _spawn(folder, "master", "master.Master", "--port", str(port), "--webui-port", str(page))
    for number, each in enumerate(pages):
        _spawn(
            *(folder, f"worker{number}", "worker.Worker", "--webui-port", str(each)),
            *("--cores", "2", "--memory", "1g", started.url),  # for two drivers at a time
        )
    eventually(lambda: len(started.workers()) == WORKERS, within_s=90, every_s=0.1)
    return {"folder": started.folder, "url": started.url, "page": started.page}


def _spawn(folder: Path, name: str, main: str, *options: str) -> None:
    home, work = Path(quick_home(folder)), folder / name
    work.mkdir()
    Run.current().spawn(
        [
            *(
                str(java_home() / "bin" / "java"),
                *shlex.split(quick_java()),
                f"-Djava.io.tmpdir={folder}",
                "-Xmx512m",
                "-cp",
                _class_path(home),
            ),
            *(f"org.apache.spark.deploy.{main}", "--host", "127.0.0.1", *options),
        ],
        env={
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": "2.13",  # as bin/load-spark-env.sh does
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(work),
            "SPARK_WORKER_DIR": str(work),
        },
        log=folder / "log" / f"{name}.log",
    )


def _class_path(home: Path) -> str:
    """As bin/spark-class has it: Java's archive of classes is good for this list only."""
    first = sorted((home / "jars").glob("slf4j-api-*.jar"))
    return os.pathsep.join([f"{home}/conf", *map(str, first), f"{home}/jars/*"])


# -- a driver of its own: there is one Spark session a process -----------------------------------
class Driver:
    """A process with a session on the cluster that does what it is asked, job by job."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def run(self, job: str, **options: Any) -> dict[str, Any]:
        """What the job returns (``tests/support/spark_jobs.py``)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"job": job, **options}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"the driver ended: {self._log.read_text()[-3000:]}"
        answer: dict[str, Any] = json.loads(line)
        assert "failed" not in answer, answer["failed"]
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=20)


@contextmanager
def driver(running: SparkCluster, **env: str) -> Iterator[Driver]:
    """A driver that has these in its environment, as its executors have."""
    folder = Path(running.folder)
    log = folder / "log" / "driver.log"
    with open(log, "ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark_jobs", running.url, str(folder)],
            cwd=Path(__file__).parents[2],
            env={
                **os.environ,
                **env,
                EXECUTOR_ENV: json.dumps(env),
                "PYTHONWARNINGS": "ignore",
                "SPARK_HOME": quick_home(folder),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    started = Driver(process, log)
    try:
        yield started
    finally:
        started.end()
