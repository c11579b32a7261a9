"""The projects in examples/ do what their pages say."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import warren
import warren.spark
from tests.support.eventually import eventually
from tests.support.spark_cluster import QUICK_JAVA, quick_home, quick_java
from tests.support.wire import Connection
from warren.spark.java import java_home

EXAMPLES = Path(__file__).parents[2] / "examples"
PUBLISHER = EXAMPLES / "shop-pyspark" / "publish_events.py"
LOCAL = "amqp://guest:guest@localhost:5672/"
COUNT = 600
#: By the rules of publish_events.py: one in fifty is cut; of the others, one in three is packed.
CUT = {number for number in range(COUNT) if number % 50 == 0}
ORDER = b'{"order_id": 1, "country": "de", "cents": 5}'
#: Messages that belong in no table, by their ids: body, properties, and the reason that is told.
ODD: dict[int, tuple[bytes, dict[str, Any], str]] = {
    1001: (ORDER, {}, "no type"),
    1002: (ORDER, {"type": "refund"}, "unknown type"),
    1003: (b"{}", {"type": "order"}, "no field 'order_id'"),
    1004: (b'{"order_id": 1, "country": "de"}', {"type": "payment"}, "no field 'cents'"),
    1005: (b"", {"type": "order"}, "empty"),
    1006: (b"null", {"type": "order"}, "not JSON, or of other types"),
    1007: (b'{"order_id": "one"}', {"type": "order"}, "not JSON, or of other types"),
    1008: (b"\xff" + ORDER, {"type": "order"}, "not UTF-8"),
}
#: The same for what is packed: no gzip at all, and gzip that is broken inside.
BROKEN = gzip.compress(ORDER)[:14] + bytes(20)
NOT_GZIP = "not gzip, as its content encoding says"
ODD_PACKED: dict[int, tuple[bytes, dict[str, Any], str]] = {
    1011: (ORDER, {"type": "order", "content_encoding": "gzip"}, NOT_GZIP),
    1012: (BROKEN, {"type": "order", "content_encoding": "gzip"}, NOT_GZIP),
    1013: (gzip.compress(b"\xff"), {"type": "order", "content_encoding": "gzip"}, "not UTF-8"),
}
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def commands(project: str) -> list[str]:
    """What its page tells people to type."""
    page = (EXAMPLES / project / "README.md").read_text()
    block = re.findall(r"(?ms)^```sh\n(.*?)^```$", page)[0]
    return [line.partition("  #")[0].rstrip() for line in block.splitlines()]


def command(project: str, program: str, url: str) -> str:
    """The one with this program, told where the test's broker is."""
    found = next(line for line in commands(project) if program in line)
    return found.replace(LOCAL, url)


def publish(url: str, odd: dict[int, tuple[bytes, dict[str, Any], str]]) -> None:
    words = shlex.split(command("shop-pyspark", "publish_events.py", url))[1:-1]
    subprocess.run(
        [sys.executable, *words, str(COUNT)],
        cwd=PUBLISHER.parent,
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    connection = Connection.open(url)
    channel = connection.channel()
    for number, (body, properties, _) in odd.items():
        channel.publish("shop.de", body, message_id=str(number), **properties)
    channel.sync()
    connection.close()


def quarantined(folder: Path) -> dict[int, tuple[bytes, str]]:
    """Body and reason by message id, of those that ``publish_events.py`` has not sent."""
    rows = pq.read_table(folder / "quarantine").to_pylist()
    found = {int(row["message_id"]): (row["body"], row["reason"]) for row in rows}
    return {number: each for number, each in found.items() if number >= COUNT}


def table(folder: Path, name: str, column: str = "message_id") -> list[int]:
    return sorted(map(int, pq.read_table(folder / name).column(column).to_pylist()))


def module(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "the following arguments are required: url, count"),
        (["amqp://guest:guest@127.0.0.1:9/", "1"], "no broker answers at 127.0.0.1:9"),
        (["http://localhost/", "1"], "amqp"),
    ],
)
def test_the_publisher_says_in_a_sentence_what_it_lacks(given: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PUBLISHER), *given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("project", "tried_below"),
    [
        ("shop-pyspark", ["publish_events.py", "shop.py"]),
        ("shop-pipeline", ["publish_events.py", "spark-pipelines"]),
        ("shop-file", ["publish_events.py", "warren run"]),
    ],
)
def test_every_command_of_a_page_is_tried(project: str, tried_below: list[str]) -> None:
    clone, install, broker, *others = commands(project)
    folder = clone.removeprefix("WARREN=")
    package = tomllib.loads((EXAMPLES / project / folder / "pyproject.toml").read_text())["project"]
    extra = re.fullmatch(r'pip install "\$\{WARREN\}\[(\w+)\]"', install)
    assert extra is not None
    assert extra[1] in package["optional-dependencies"]
    assert broker == "warren broker"
    assert [command(project, program, "") for program in tried_below] == [
        line.replace(LOCAL, "") for line in others
    ]


@pytest.mark.parametrize("project", ["shop-pipeline", "shop-file"])
def test_all_projects_have_the_same_publisher(project: str) -> None:
    other = EXAMPLES / project / "publish_events.py"
    assert other.read_text() == PUBLISHER.read_text()


def test_the_pyspark_project_puts_every_event_into_its_table_once(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with warren.Broker.in_thread() as broker:
        publish(broker.url, ODD | ODD_PACKED)
        shop = module(EXAMPLES / "shop-pyspark" / "shop.py")
        typed = command("shop-pyspark", "shop.py", broker.url).replace("./shop-data", str(tmp_path))
        monkeypatch.setattr(sys, "argv", shlex.split(typed)[1:])
        shop.main()
        results = _drained(broker.url, "shop.results")

    tables = [table(tmp_path, name) for name in ("orders", "payments", "quarantine")]
    odd = ODD | ODD_PACKED
    assert sorted([*tables[0], *tables[1], *tables[2]]) == [*range(COUNT), *odd]
    assert set(tables[2]) == CUT | set(odd)
    assert quarantined(tmp_path) == {
        number: (body, reason) for number, (body, _, reason) in odd.items()
    }
    assert len(results) == 4  # a country each
    counts = [len(each) for each in tables]
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"{sum(counts)} events: {counts[0]} in orders, {counts[1]} in payments, "
        f"{counts[2]} in quarantine"
    )


def _drained(url: str, queue: str) -> list[bytes]:
    connection = Connection.open(url)
    try:
        return connection.channel().drain(queue)
    finally:
        connection.close()


@pytest.mark.slow
def test_the_pyspark_project_works_when_copied_and_stops_with_a_line_at_ctrl_c(
    tmp_path: Path,
) -> None:
    project = tmp_path / "mine"
    shutil.copytree(EXAMPLES / "shop-pyspark", project)
    with warren.Broker.in_thread() as broker:
        publisher = [sys.executable, "publish_events.py", broker.url, "50"]
        subprocess.run(publisher, check=True, cwd=project, timeout=60, stdout=subprocess.DEVNULL)
        job = subprocess.Popen(
            [sys.executable, "shop.py", broker.url, "./shop-data"],
            cwd=project,
            env={
                **os.environ,
                "JDK_JAVA_OPTIONS": QUICK_JAVA,
                "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            done = project / "shop-data" / "quarantine"
            eventually(
                lambda: any(done.glob("batch_id=*-0/_SUCCESS")) or job.poll() is not None,
                within_s=180,
            )
            os.killpg(job.pid, signal.SIGINT)  # as a terminal does
            said, _ = job.communicate(timeout=90)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()

    assert job.returncode == 0, said
    assert said.splitlines()[-1] == "stopped; the next run goes on from here"
    assert not [line for line in said.splitlines() if "Traceback" in line or "\tat " in line], said


@pytest.mark.slow
def test_spark_pipelines_runs_the_declarative_project(
    tmp_path: Path, run_pipeline: Callable[[Path, str], str]
) -> None:
    project = tmp_path / "shop-pipeline"
    shutil.copytree(EXAMPLES / "shop-pipeline", project)
    with warren.Broker.in_thread() as broker:
        publish(broker.url, odd := ODD | ODD_PACKED)
        said = run_pipeline(project, broker.url)
        results = _drained(broker.url, "shop.results")

    assert "Run is COMPLETED" in said, said[-3000:]
    tables = project / "spark-warehouse"
    assert table(tables, "events") == [*range(COUNT), *odd]
    good = table(tables, "orders") + table(tables, "payments")
    assert sorted(good) == sorted(set(range(COUNT)) - CUT)
    assert set(table(tables, "quarantine")) == CUT | set(odd)
    assert quarantined(tables) == {
        number: (body, reason) for number, (body, _, reason) in odd.items()
    }
    published = sorted(json.loads(body)["order_id"] for body in results)
    assert published == table(tables, "orders", "order_id")
    assert sum(table(tables, "sold", "orders")) == len(table(tables, "orders"))


@pytest.fixture
def run_pipeline(tmp_path: Path) -> Callable[[Path, str], str]:
    def run(project: Path, url: str) -> str:
        spec = project / "spark-pipeline.yml"
        spec.write_text(spec.read_text().replace("/tmp/shop-pipeline", str(tmp_path / "storage")))
        done = subprocess.run(
            ["sh", "-c", command(project.name, "spark-pipelines", url)],
            cwd=project,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "JAVA_HOME": str(java_home()),
                "JDK_JAVA_OPTIONS": quick_java(),
                "SHOP_BROKER": url,
                "SHOP_LEDGER": str(tmp_path / "ledger"),
                "SPARK_HOME": quick_home(tmp_path),
                "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    return run
