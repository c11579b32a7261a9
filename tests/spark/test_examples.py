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
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
#: By the rules of publish_events.py: events that belong in no table, and what is told of them.
MISFITS = {
    number: "unknown type" if number % 50 else "not JSON, or of other types"
    for number in range(0, COUNT, 25)
}
TABLES = {
    "orders": ["order_id", "country", "cents"],
    "payments": ["order_id", "country", "cents", "method"],
    "shipments": ["order_id", "country", "carrier"],
}
BATCH = re.compile(r"batch (\d+): (\d+) rows in \d+\.\d s \(([\d,]+) rows/s\), backlog (\d+)")
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
    1009: (ORDER, {"type": "payment"}, "no field 'method'"),
    1010: (ORDER, {"type": "shipment"}, "no field 'carrier'"),
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


def quarantined(folder: Path) -> dict[int, str]:
    """Reason by message id; of those that ``publish_events.py`` has not sent, the body is right."""
    rows = pq.read_table(folder / "quarantine").to_pylist()
    for row in rows:
        if (number := int(row["message_id"])) >= COUNT:
            assert row["body"] == (ODD | ODD_PACKED)[number][0]
    return {int(row["message_id"]): row["reason"] for row in rows}


def misfits() -> dict[int, str]:
    """What must be in the quarantine, and why."""
    return MISFITS | {number: reason for number, (*_, reason) in (ODD | ODD_PACKED).items()}


def typed(folder: Path) -> list[int]:
    """The message ids of all tables, each of which has its own fields, in every row."""
    found = []
    for name, fields in TABLES.items():
        rows = pq.read_table(folder / name, partitioning=None)
        assert rows.column_names == ["message_id", *fields]
        assert not any(column.null_count for column in rows.columns)
        found += rows.column("message_id").to_pylist()
    return sorted(map(int, found))


def summed_up(folder: Path) -> dict[str, dict[str, int]]:
    """What the summary of these tables must be, by country."""
    due: dict[str, dict[str, int]] = {}
    for name in TABLES:
        for row in pq.read_table(folder / name).to_pylist():
            country = due.setdefault(row["country"], dict.fromkeys([*TABLES, "sold_cents"], 0))
            country[name] += 1
            country["sold_cents"] += row["cents"] if name == "orders" else 0
    return due


def summary(folder: Path) -> dict[str, dict[str, int]]:
    rows = pq.read_table(folder / "summary").to_pylist()
    assert len(rows) == 4  # a country each
    return {row.pop("country"): row for row in rows}


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
        monkeypatch.setattr(shop, "ROWS_A_BATCH", 500)
        given = command("shop-pyspark", "shop.py", broker.url).replace("./shop-data", str(tmp_path))
        monkeypatch.setattr(sys, "argv", shlex.split(given)[1:])
        shop.main()
        results = [json.loads(body) for body in _drained(broker.url, "shop.results")]

    assert typed(tmp_path) == sorted(set(range(COUNT)) - set(MISFITS))
    assert quarantined(tmp_path) == misfits()
    assert summary(tmp_path) == summed_up(tmp_path)
    sold: Counter[str] = Counter()
    for result in results:
        sold[result["country"]] += result["cents"]
    assert sold == {country: row["sold_cents"] for country, row in summary(tmp_path).items()}
    counts = {name: len(table(tmp_path, name)) for name in (*TABLES, "quarantine")}
    said = capsys.readouterr().out.splitlines()
    total = sum(counts.values())
    batches = [found.groups() for line in said if (found := BATCH.fullmatch(line))]
    assert [(number, rows, backlog) for number, rows, _, backlog in batches] == [
        ("0", "500", str(total - 500)),
        ("1", str(total - 500), "0"),
    ]
    assert min(rate for *_, rate, _ in batches) != "0"
    assert "country|orders|payments|shipments|sold_cents" in "".join(said).replace(" ", "")
    assert said[-1] == (
        f"{total} events: {', '.join(f'{rows} in {name}' for name, rows in counts.items())}"
    )


def _drained(url: str, queue: str) -> list[bytes]:
    connection = Connection.open(url)
    try:
        return connection.channel().drain(queue)
    finally:
        connection.close()


@pytest.mark.slow
def test_the_pyspark_project_when_copied_killed_started_again_and_stopped_with_ctrl_c(
    tmp_path: Path,
) -> None:
    project = tmp_path / "mine"
    shutil.copytree(EXAMPLES / "shop-pyspark", project)
    data = project / "shop-data"
    with warren.Broker.in_thread() as broker:
        publisher = [sys.executable, "publish_events.py", broker.url, "50"]
        subprocess.run(publisher, check=True, cwd=project, timeout=60, stdout=subprocess.DEVNULL)
        with _shop(project, broker.url) as job:
            first = data / "orders"
            eventually(
                lambda: _is_done(first) or job.poll() is not None, within_s=180, every_s=0.01
            )
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        assert not (data / "checkpoint" / "commits" / "0").exists(), "it was too late to kill it"
        with _shop(project, broker.url) as job:
            last = data / "quarantine"
            eventually(lambda: _is_done(last) or job.poll() is not None, within_s=180)
            os.killpg(job.pid, signal.SIGINT)  # as a terminal does
            said, _ = job.communicate(timeout=90)
        results = [json.loads(body) for body in _drained(broker.url, "shop.results")]

    assert job.returncode == 0, said
    assert said.splitlines()[-1] == "stopped; the next run goes on from here"
    assert re.search(r"(?m)^batch 0: 50 rows in .* rows/s\), backlog not asked for$", said), said
    assert not [line for line in said.splitlines() if "Traceback" in line or "\tat " in line], said
    misfits = {number for number in MISFITS if number < 50}
    assert typed(data) == sorted(set(range(50)) - misfits)
    assert set(quarantined(data)) == misfits
    assert summary(data) == summed_up(data)
    sold = {row["country"]: row["cents"] for row in results}
    assert sold == {country: row["sold_cents"] for country, row in summary(data).items()}


def _is_done(table: Path) -> bool:
    """The first batch's part of it."""
    return any(table.glob("batch_id=*-0/_SUCCESS"))


@contextmanager
def _shop(project: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    """The program, in a group of its own of which nothing is left."""
    job = subprocess.Popen(
        [sys.executable, "shop.py", url, "./shop-data"],
        cwd=project,
        env={
            **os.environ,
            "JDK_JAVA_OPTIONS": QUICK_JAVA,
            "SPARK_LOCAL_DIRS": str(project.parent / "local"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        assert job.stdout is not None
        job.stdout.close()


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
    assert table(tables, "events") == [*range(COUNT), *sorted(odd)]
    assert typed(tables) == sorted(set(range(COUNT)) - set(MISFITS))
    assert quarantined(tables) == misfits()
    assert summary(tables) == summed_up(tables)
    published = sorted(json.loads(body)["order_id"] for body in results)
    assert published == table(tables, "orders", "order_id")


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
