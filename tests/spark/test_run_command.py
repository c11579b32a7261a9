"""``warren run`` as a process: killed, stopped with Ctrl-C, given files it can't use."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import warren
from tests.spark.test_examples import COUNT, EXAMPLES, MISFITS, TABLES, command
from tests.support.eventually import eventually
from tests.support.spark_cluster import QUICK_JAVA
from tests.support.wire import Connection
from warren.cli.main import main
from warren.errors import PipelineError
from warren.pipeline.count import BatchCount
from warren.pipeline.run import Run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PROJECT = EXAMPLES / "shop-file"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command line; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(line: str, folder: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["sh", "-c", f"exec env {line}"],
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "JDK_JAVA_OPTIONS": QUICK_JAVA,
                "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    shutil.copytree(PROJECT, folder)
    return folder


def rows(project: Path, table: str) -> list[dict[str, Any]]:
    folder = project / "shop-data" / table
    return list(ds.dataset(folder, partitioning="hive").to_table().to_pylist())


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    said, complained = process.communicate(timeout=180)
    return process.returncode, said, complained


def test_the_exit_code_tells_the_broker_from_the_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the page has it; what comes after Spark has started is in the tests below."""

    def code(file: str, url: str) -> int:
        return main(["run", "--check", str(project / file), "--url", url])

    with warren.Broker.in_thread() as broker:
        stranger = broker.url.replace("guest:guest", "guest:wrong")
        assert code("pipeline.yaml", "amqp://guest:guest@127.0.0.1:9/") == 1
        assert code("pipeline.yaml", stranger) == 1
        assert code("pipeline.yaml", broker.url) == 2  # it has none of the queues
        assert code("none.yaml", broker.url) == 2
        assert code("pipeline.yaml", "nonsense") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_sum_that_does_not_add_up_is_an_exit_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Run, "check", lambda *_: None)
    monkeypatch.setattr(Run, "run", lambda run, once: run.total)
    monkeypatch.setattr(BatchCount, "adds_up", False)

    assert main(["run", "--once", str(project / "pipeline.yaml")]) == 1
    assert "IT DOES NOT ADD UP" in capsys.readouterr().out


@pytest.mark.parametrize(("conf", "value"), [("{}", "false"), ("{KEY: true}", "true")])
def test_columns_are_made_without_noting_where_unless_the_file_says_so(
    conf: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "spark.python.sql.dataFrameDebugging.enabled"
    file = tmp_path / "pipeline.yaml"
    told = f"queues: orders\nspark: {{conf: {conf.replace('KEY', key)}}}\n"
    file.write_text(f"{told}tables: {{t: {{schema: id INT}}}}\n")
    asked: dict[str, str] = {}

    def session(_: str, **settings: str) -> None:
        asked.update(settings)
        raise OSError("enough seen")

    monkeypatch.setattr("warren.pipeline.run.session", session)
    with warren.Broker.in_thread() as broker:
        with closing(Connection.open(broker.url)) as connection:
            connection.channel().declare("orders")
        with pytest.raises(PipelineError, match="enough seen"):
            Run.from_file(str(file), url=broker.url).check()

    assert asked[key] == value


@pytest.mark.slow
def test_a_run_that_is_killed_is_ended_by_the_next(start: Start, project: Path) -> None:
    with warren.Broker.in_thread() as broker:
        run = command("shop-file", "warren run", broker.url)
        code, _, complained = finished(
            start(f"python publish_events.py {broker.url} {COUNT}", project)
        )
        assert code == 0, complained
        text = (project / "pipeline.yaml").read_text()
        (project / "pipeline.yaml").write_text(text.replace("20000", "400"))

        killed = start(run, project)
        table = project / "shop-data" / "orders"
        eventually(lambda: table.exists() or killed.poll() is not None, within_s=180)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        code, said, complained = finished(start(f"{run} --json", project))

    assert code == 0, complained
    told = [json.loads(line) for line in said.splitlines()]
    assert {line["event"] for line in told[:-1]} == {"batch"}
    assert told[-1]["event"] == "ended"
    assert told[-1]["adds_up"]
    found = [row["order_id"] for name in TABLES for row in rows(project, name)]
    assert sorted(found) == sorted(set(range(COUNT)) - set(MISFITS))
    quarantine = project / "shop-data" / "quarantine"
    kept = [
        json.loads(line)
        for file in quarantine.glob("batch=*/part-*.json")
        for line in file.read_text().splitlines()
    ]
    assert sorted(int(row["message_id"]) for row in kept) == sorted(MISFITS)


@pytest.mark.slow
def test_ctrl_c_ends_a_run_with_a_sum(start: Start, project: Path) -> None:
    with warren.Broker.in_thread() as broker:
        finished(start(f"python publish_events.py {broker.url} 50", project))
        run = start(f"warren run pipeline.yaml --url {broker.url}", project)
        done = project / "shop-data" / "statistics"
        eventually(lambda: list(done.glob("*/_SUCCESS")) or run.poll() is not None, within_s=180)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        code, said, complained = finished(run)

    lines = said.splitlines()
    assert code == 0, complained
    assert lines[0] == "pipeline 'shop': starting Spark"
    assert re.match(r"batch 0: 50 messages in [\d.]+ s \([\d,]+/s\), backlog 0: ", lines[2])
    assert lines[-1].startswith("50 drained = 48 written + 2 quarantined: it adds up, in 1 batch")
    assert "Ctrl-C: it ends when the batch that runs is done" in complained
    assert "Traceback" not in complained
    assert "\tat " not in complained


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("warren run", "FILE is missing"),
        ("warren run no.yaml", "no.yaml: can't be read: No such file or directory"),
        (
            "warren run bad.yaml",
            "bad.yaml:2: the file: unknown key 'tabels'; did you mean 'tables'?",
        ),
        ("warren run pipeline.yaml --one", "there is no option --one; did you mean --once?"),
        ("warren run pipeline.yaml --master lokal", "'lokal' is no master of Spark's; there are"),
        (
            "warren run pipeline.yaml --url amqp://guest:secret@127.0.0.1:9/",
            "no broker answers at guest@127.0.0.1:9",
        ),
        (
            "SPARK_REMOTE=sc://far warren run pipeline.yaml",
            "SPARK_REMOTE in the environment asks for Spark Connect, and a pipeline runs in a",
        ),
        ("warren run pipeline.yaml --url=", "--url (argument): is empty; such as amqp://"),
        (
            "warren run pipeline.yaml --url http://guest:secret@localhost/",
            "--url (argument): 'http:...' does not begin with amqp:// or amqps://",
        ),
        (
            "warren run pipeline.yaml --url amqp://guest:secret@localhost/?heartbeat=often",
            "--url (argument): heartbeat: 'often' is not a whole number",
        ),
    ],
)
def test_a_mistake_is_told_in_a_line(start: Start, project: Path, line: str, said: str) -> None:
    (project / "bad.yaml").write_text("queues: a\ntabels: {}\n")

    code, _, complained = finished(start(line, project))

    assert code in (1, 2)
    assert complained.startswith("warren: ")
    assert said in complained
    assert len(complained.splitlines()) == 1
    assert "secret" not in complained


def test_a_queue_that_is_not_there_is_told_before_spark_starts(start: Start, project: Path) -> None:
    with warren.Broker.in_thread() as broker:
        code, said, complained = finished(
            start(f"warren run pipeline.yaml --check --url {broker.url}", project)
        )

    assert code == 2
    assert complained == (
        "warren: pipeline.yaml:4: queues: there is no queue 'shop.de' in vhost '/': declare it, or "
        "correct its name\n"
    )
    assert "starting" not in said


def test_a_mistake_in_a_query_is_told_without_stacks(start: Start, project: Path) -> None:
    text = (project / "pipeline.yaml").read_text()
    assert "FROM orders" in text
    (project / "pipeline.yaml").write_text(text.replace("FROM orders", "FROM odres"))

    with warren.Broker.in_thread() as broker:
        finished(start(f"python publish_events.py {broker.url} 0", project))
        code, _, complained = finished(
            start(f"warren run pipeline.yaml --check --url {broker.url}", project)
        )

    assert code == 2
    javas = ("NOTE: Picked up", "WARNING: Using")
    ours = [line for line in complained.splitlines() if not line.startswith(javas)]
    assert len(ours) == 1, complained
    assert ours[0].startswith("warren: pipeline.yaml:")
    assert "The table or view `odres` cannot be found" in ours[0]
    assert " ;" not in ours[0]
