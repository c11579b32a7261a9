"""Private RabbitMQ nodes: one, or a cluster of three, on loopback and with an epmd of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.support import guard
from tests.support.eventually import eventually
from tests.support.servers import Run, ServerEnded, free_ports, missing
from tests.support.wire import Connection
from tests.support.wire_frames import Gone

PLUGINS = (
    "rabbitmq_management",
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_stream",
    "rabbitmq_auth_mechanism_ssl",
)
# Not the one in PATH: Debian's wrapper there insists on the user rabbitmq.
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")

# Defaults stay as they are wherever a client could see them.
CONFIG = """\
listeners.tcp.default = 127.0.0.1:{port}
management.tcp.ip = 127.0.0.1
management.tcp.port = {management_port}
stream.listeners.tcp.1 = 127.0.0.1:{stream_port}
# A full disk must not turn into mysteriously blocked publishers.
disk_free_limit.absolute = 1MB
# How soon the HTTP API knows what happened: 5 s by default.
collect_statistics_interval = 1000
management.sample_retention_policies.global.minute = 1
management.sample_retention_policies.basic.minute = 1
management.sample_retention_policies.detailed.minute = 1
"""


@dataclass(frozen=True)
class Node:
    """A RabbitMQ node; any process of the run may hold one."""

    name: str
    folder: str
    cookie: str
    cluster: list[str]
    epmd_port: int
    port: int
    management_port: int
    stream_port: int
    dist_port: int

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @property
    def management(self) -> str:
        return f"http://127.0.0.1:{self.management_port}"

    def start(self) -> None:
        """Start the node; ``wait_ready`` says when it can be used."""
        folder = Path(self.folder)
        (folder / "log").mkdir(parents=True, exist_ok=True)
        (folder / "enabled_plugins").write_text(f"[{','.join(PLUGINS)}].\n")
        (folder / "rabbitmq-env.conf").touch()
        config = CONFIG.format(**asdict(self))
        if len(self.cluster) > 1:
            config += "cluster_formation.peer_discovery_backend = classic_config\n"
            for number, name in enumerate(self.cluster, start=1):
                config += f"cluster_formation.classic_config.nodes.{number} = {name}\n"
        (folder / "rabbitmq.conf").write_text(config)
        cookie = folder / ".erlang.cookie"
        if not cookie.exists():
            cookie.write_text(self.cookie)
            cookie.chmod(0o400)
        Run.current().spawn([str(SERVER)], env=self._environment(), log=folder / "log" / "out.log")

    def _environment(self) -> dict[str, str]:
        # Nothing of an installed service's settings, neither from files nor from variables.
        ours = {key: value for key, value in os.environ.items() if not key.startswith("RABBITMQ_")}
        return ours | {
            "HOME": self.folder,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.epmd_port),
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_CONF_ENV_FILE": f"{self.folder}/rabbitmq-env.conf",
            "RABBITMQ_CONFIG_FILE": f"{self.folder}/rabbitmq.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{self.folder}/advanced.config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.folder}/enabled_plugins",
            "RABBITMQ_MNESIA_BASE": f"{self.folder}/mnesia",
            "RABBITMQ_SCHEMA_DIR": f"{self.folder}/schema",
            "RABBITMQ_LOG_BASE": f"{self.folder}/log",
            "RABBITMQ_PID_FILE": f"{self.folder}/pid",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false"
            ),
        }

    def wait_ready(self, within_s: float = 50.0) -> None:
        """Return when the node serves AMQP and HTTP."""
        eventually(self._ready, within_s, every_s=0.05)

    def _ready(self) -> bool:
        if not self._runs():
            raise ServerEnded(f"{self.name}: {self._last_words()}")
        try:
            Connection.open(self.url).close()
            with urllib.request.urlopen(self.management, timeout=5):
                return True
        except (OSError, Gone, urllib.error.URLError):
            return False

    def _runs(self) -> bool:
        for _ in range(5):  # one that is just becoming another, by exec, shows no environment
            if guard.processes(**self._marks()):
                return True
            time.sleep(0.1)
        return False

    def _marks(self) -> dict[str, str]:
        return {guard.SERVER: str(Run.current().folder), "RABBITMQ_NODENAME": self.name}

    def _last_words(self) -> str:
        return (Path(self.folder) / "log" / "out.log").read_text(errors="replace")[-2000:]

    def keep_declared(self) -> None:
        """Have what was declared outlive a power cut.

        RabbitMQ answers that a durable queue is declared while that is in its memory only, for up
        to two seconds: after a kill in that time the queue is gone, with messages it confirmed.
        """
        assert self.evaluate("mnesia:sync_log()") == "ok"

    def kill(self) -> None:
        """End the node as a power cut would; ``start`` brings it back with what it had stored."""
        guard.end_processes(**self._marks())

    def evaluate(self, expression: str) -> str:
        """Evaluate an Erlang expression on the node: rabbitmqctl eval, without its second."""
        done = subprocess.run(
            ["erl_call", "-n", self.name, "-c", self.cookie, "-e"],
            input=f"{expression.rstrip('.')}.\n",
            env={**os.environ, "HOME": self.folder, "ERL_EPMD_PORT": str(self.epmd_port)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        answer = done.stdout.strip()
        assert done.returncode == 0, f"{expression}: {answer}{done.stderr}"
        assert answer.startswith("{ok, "), f"{expression}: {answer}"
        return answer.removeprefix("{ok, ").removesuffix("}")


def node() -> Node:
    """This process's RabbitMQ node, started if it is not yet.

    Each of xdist's workers has one: a test may block all publishers, or count connections.
    """
    return _my("warren")


def restartable() -> Node:
    """A node of its own for tests that end it and start it again."""
    # Another name: a node is killed by its name, and the other one must live on.
    return _my("restartable")


def _my(word: str) -> Node:
    word += os.environ.get("PYTEST_XDIST_WORKER", "")
    return Node(**_shared(f"rabbitmq-{word}", [word])["nodes"][0])


def cluster() -> list[Node]:
    """The run's cluster of three RabbitMQ nodes, started if it is not yet."""
    told = _shared("rabbitmq-cluster", ["warren1", "warren2", "warren3"])
    return [Node(**fields) for fields in told["nodes"]]


def _shared(name: str, nodes: list[str]) -> dict[str, Any]:
    if not SERVER.exists() or shutil.which("erl_call") is None:
        missing("RabbitMQ", "apt-get install rabbitmq-server")
    return Run.current().shared(name, lambda folder: _start(folder, nodes))


def _start(folder: Path, words: list[str]) -> dict[str, Any]:
    epmd_port, *ports = free_ports(1 + 4 * len(words))
    names = [f"{word}@localhost" for word in words]
    cookie = secrets.token_hex(10).upper()
    nodes = [
        Node(name, str(folder / word), cookie, names, epmd_port, *ports[4 * at : 4 * at + 4])
        for at, (name, word) in enumerate(zip(names, words, strict=True))
    ]
    # By hand and in the foreground: left to Erlang, epmd becomes a daemon that outlives it.
    Run.current().spawn(
        ["epmd", "-address", "127.0.0.1", "-port", str(epmd_port)], log=folder / "log" / "epmd.log"
    )
    for each in nodes:
        each.start()
    for each in nodes:
        each.wait_ready()
    return {"nodes": [asdict(each) for each in nodes]}
