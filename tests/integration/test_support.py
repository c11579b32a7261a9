"""The ground that the other tests stand on: brokers, servers, and nothing left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pika import spec

from tests.support import guard
from tests.support.brokers import RabbitBroker, TestBroker
from tests.support.etcd import Etcd
from tests.support.eventually import eventually
from tests.support.servers import missing
from tests.support.wire import Closed, Connection

Connect = Callable[..., Connection]
Name = Callable[[str], str]


# -- what a broker test may do -------------------------------------------------------------------
def test_a_management_close_reaches_the_client(broker: TestBroker, connect: Connect) -> None:
    connection = connect()
    broker.close_connections("because")

    closed = connection.expect_closed()
    assert (closed.code, closed.text) == (320, "CONNECTION_FORCED - because")


def test_a_vhost_is_there_until_it_is_deleted(
    broker: TestBroker, connect: Connect, name: Name
) -> None:
    vhost = name("vhost")
    broker.add_vhost(vhost)
    connect(vhost=vhost).close()

    broker.delete_vhost(vhost)
    with pytest.raises(Closed, match=f"vhost {vhost} not found"):
        connect(vhost=vhost)


def test_the_memory_alarm_goes_on_and_off(broker: TestBroker, connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    broker.memory_alarm(True)
    channel.publish("nowhere")
    assert connection.expect(spec.Connection.Blocked).reason == "low on memory"

    broker.memory_alarm(False)
    connection.expect(spec.Connection.Unblocked)


# -- clusters ------------------------------------------------------------------------------------
@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_cluster_has_three_nodes_and_a_quorum_queue_on_each(
    rabbitmq_cluster: list[RabbitBroker],
) -> None:
    first, second, third = rabbitmq_cluster
    running = [row["name"] for row in first.api("GET", "nodes") if row["running"]]
    assert len(running) == 3

    publisher = Connection.open(first.url)
    channel = publisher.channel()
    channel.declare("replicated", durable=True, arguments={"x-queue-type": "quorum"})
    channel.confirm()
    channel.publish("replicated", b"on every node")
    channel.wait_confirms(1)
    publisher.close()

    members = third.api("GET", "queues/%2F/replicated")["members"]
    assert sorted(members) == sorted(running)
    reader = Connection.open(second.url)
    got = reader.channel().get("replicated")
    assert got is not None
    assert got.body == b"on every node"
    reader.close()


# -- etcd ----------------------------------------------------------------------------------------
def test_etcd_keeps_what_it_is_given(etcd: Etcd) -> None:
    assert etcd.get("warren/test") is None
    etcd.put("warren/test", b"kept")
    assert etcd.get("warren/test") == b"kept"


# -- a server that is not installed -------------------------------------------------------------
@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_a_missing_server_fails_in_ci_and_is_skipped_at_home(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="etcd is not installed"):
        missing("etcd", "apt-get install etcd-server")


# -- nothing is left -----------------------------------------------------------------------------
WAITS = """
import os, time
def test_waits(etcd):
    print(os.environ["WARREN_TEST_RUN"], flush=True)
    time.sleep(50)
"""
FAILS = "def test_fails(etcd): assert False"
PASSES = "def test_passes(etcd): pass"


@pytest.fixture
def pytest_run(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts another test run with our fixtures, of one file with this text."""
    runs: list[subprocess.Popen[str]] = []

    def start(text: str) -> subprocess.Popen[str]:
        (tmp_path / "test_it.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "tests.conftest"]
        runs.append(
            subprocess.Popen(
                [*command, f"--rootdir={tmp_path}", "-c", "/dev/null", str(tmp_path)],
                cwd=Path(__file__).parents[2],
                env={**os.environ, "TMPDIR": str(tmp_path)},
                stdout=subprocess.PIPE,
                text=True,
                # A shell starts background jobs with SIGINT ignored, and their children inherit it.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        )
        return runs[-1]

    yield start
    for run in runs:
        run.kill()
        run.communicate()


@pytest.mark.parametrize(
    "how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name
)
def test_servers_end_with_their_run_however_it_ends(
    etcd: Etcd, pytest_run: Callable[[str], subprocess.Popen[str]], how: signal.Signals
) -> None:
    run = pytest_run(WAITS)
    assert run.stdout is not None
    folder = Path(run.stdout.readline().strip())
    assert len(guard.processes(**{guard.SERVER: str(folder)})) == 2  # etcd and its guard

    run.send_signal(how)
    eventually(lambda: not guard.processes(**{guard.SERVER: str(folder)}))
    eventually(lambda: not folder.exists())


LEAVES = """
import subprocess, sys, tempfile
def test_leaves():
    tempfile.mkdtemp()
    subprocess.run([sys.executable, "-c", "import tempfile; tempfile.mkdtemp()"], check=True)
"""


def test_temporary_files_go_with_their_run(
    pytest_run: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    run = pytest_run(LEAVES)

    assert run.wait(30) == 0
    kept = {"__pycache__", ".pytest_cache", "test_it.py"}
    assert {path.name for path in tmp_path.iterdir()} <= kept


def test_logs_are_kept_of_a_run_that_failed(
    etcd: Etcd, pytest_run: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    logs = tmp_path / ".test-logs"
    assert pytest_run(PASSES).wait(50) == 0
    assert not logs.exists()

    assert pytest_run(FAILS).wait(50) == 1
    assert "serving insecure client requests" in (logs / "etcd" / "out.log").read_text()


MEASURES = """
from bench.brokers import launchers
from bench.spark_source import Load

with launchers(["warren"]) as (launcher,):
    broker = launcher.start()
    load = Load(broker.url, 2)
    load.fill(2_000, 200)
    assert load.drain_raw(2_000) > 0
    assert [load.channel.ready_messages(queue)[0] for queue in load.queues] == [0, 0]
    broker.stop()
"""


def test_a_measurement_starts_its_brokers_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    done = subprocess.run(
        [sys.executable, "-c", MEASURES],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    eventually(lambda: not [*tmp_path.iterdir()])
