"""The two brokers under test, each in processes of its own that end with the run."""

from __future__ import annotations

import os
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.load.process import ROOT
from bench.model import Launcher, StartFailed
from tests.support import guard
from tests.support.rabbitmq import SERVER, Node
from tests.support.servers import Run, free_ports
from tests.support.wire import Connection

START_S = 60.0
GIVEN = "BENCH_RABBITMQ"  # the URL of a RabbitMQ to use instead of starting one


@dataclass(frozen=True)
class RunningBroker:
    url: str
    pid: int | None = None
    started_s: float | None = None
    version: str = ""
    log: Path | None = None
    _stop: Callable[[], None] | None = field(default=None, repr=False)

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()

    def last_words(self) -> str:
        return "" if self.log is None else self.log.read_text(errors="replace").strip()[-600:]


@contextmanager
def launchers(names: Sequence[str]) -> Iterator[list[Launcher]]:
    """Launchers for brokers by name; when this ends, so has whatever they started."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # 1,000 connections need as many files
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
    run = Run.begin()
    # For the case that this process is killed; an orderly end is below.
    run.spawn([sys.executable, "-IS", guard.__file__, str(run.folder), str(run.owner)])
    try:
        yield [_launcher(name, run) for name in names]
    finally:
        run.end()


def _launcher(name: str, run: Run) -> Launcher:
    if name == "warren":
        return Warren(run)
    given = os.environ.get(GIVEN)
    return GivenRabbit(given) if given else Rabbit(run)


class Warren:
    """``python -m warren broker``, as a user starts it."""

    name = "warren"

    def __init__(self, run: Run) -> None:
        self._folder = run.folder
        path = (str(ROOT / "src"), os.environ.get("PYTHONPATH"))
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            # An installed package is compiled; the sources here may not be, and stay clean.
            "PYTHONPYCACHEPREFIX": str(run.folder / "pycache"),
            guard.SERVER: str(run.folder),
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.start().stop()  # compiles

    def start(self, *, data: bool = False) -> RunningBroker:
        (port,) = free_ports(1)
        log = self._folder / f"warren-{port}.log"
        store = ["--data", str(self._folder / f"data-{port}")] if data else []
        began = time.perf_counter()
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "warren", "broker", "--port", str(port)),
                    *("--management-port", "0"),  # its default may be taken by the other broker
                    *store,
                ],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
            )
        try:
            await_listening(port, lambda: process.poll() is None)
        except StartFailed:
            end_process(process)
            raise StartFailed(f"warren: {log.read_text(errors='replace')[-500:]}") from None
        took = time.perf_counter() - began
        url = f"amqp://guest:guest@127.0.0.1:{port}/"
        return RunningBroker(url, process.pid, took, "", log, lambda: end_process(process))


class PlainNode(Node):
    """A RabbitMQ as it comes: no plugins, statistics at the default pace."""

    def start(self) -> None:
        folder = Path(self.folder)
        (folder / "log").mkdir(parents=True)
        (folder / "enabled_plugins").write_text("[].\n")
        (folder / "rabbitmq-env.conf").touch()
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{self.port}\ndisk_free_limit.absolute = 1MB\n"
        )
        cookie = folder / ".erlang.cookie"
        cookie.write_text(self.cookie)
        cookie.chmod(0o400)
        Run.current().spawn([str(SERVER)], env=self._environment(), log=folder / "log" / "out.log")

    def processes(self) -> set[int]:
        folder = str(Run.current().folder)
        return guard.processes(**{guard.SERVER: folder, "RABBITMQ_NODENAME": self.name})

    def beam(self) -> int:
        """The pid of the Erlang machine, which is where RabbitMQ's memory is."""
        for pid in self.processes():
            if Path(f"/proc/{pid}/comm").read_text().strip() == "beam.smp":
                return pid
        raise StartFailed(f"{self.name} has no beam.smp")


class Rabbit:
    """A private RabbitMQ node on free ports, new for every start."""

    name = "rabbitmq"

    def __init__(self, run: Run) -> None:
        if not SERVER.exists():
            raise StartFailed("RabbitMQ is not installed (apt-get install rabbitmq-server)")
        self._run = run
        (self._epmd_port,) = free_ports(1)
        run.spawn(["epmd", "-address", "127.0.0.1", "-port", str(self._epmd_port)])
        await_listening(self._epmd_port, lambda: True)

    def start(self, *, data: bool = False) -> RunningBroker:
        word = f"bench{secrets.token_hex(3)}"
        name, folder = f"{word}@localhost", self._run.folder / word
        node = PlainNode(
            name,
            str(folder),
            secrets.token_hex(10).upper(),
            [name],
            self._epmd_port,
            *free_ports(4),
        )

        def stop() -> None:
            node.kill()
            shutil.rmtree(folder, ignore_errors=True)

        began = time.perf_counter()
        node.start()
        try:
            await_listening(node.port, lambda: bool(node.processes()))
        except StartFailed:
            stop()
            raise
        took = time.perf_counter() - began
        return RunningBroker(node.url, node.beam(), took, broker_version(node.url), None, stop)


class GivenRabbit:
    """A RabbitMQ that runs already, and goes on running."""

    name = "rabbitmq"

    def __init__(self, url: str) -> None:
        self._url = url

    def start(self, *, data: bool = False) -> RunningBroker:
        return RunningBroker(self._url, version=broker_version(self._url))


def broker_version(url: str) -> str:
    connection = Connection.open(url)
    version = connection.start.server_properties["version"]
    connection.close()
    return version.decode() if isinstance(version, bytes) else str(version)


def await_listening(port: int, alive: Callable[[], bool]) -> None:
    """Return as soon as the port accepts a connection."""
    deadline = time.monotonic() + START_S
    looked = time.monotonic()
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.002)
        else:
            return
        if time.monotonic() > looked + 0.5:
            looked = time.monotonic()
            if not alive():
                break
    raise StartFailed(f"nothing listens on port {port}")


def end_process(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
