"""An etcd of a test's own: killed, stopped, started again at the same address."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import eventually
from tests.support.servers import free_ports, missing


class EtcdProcess:
    """The etcd of one data folder, through all of its lives."""

    def __init__(self, folder: Path, *options: str, tls: bool = False) -> None:
        if shutil.which("etcd") is None:
            missing("etcd", "apt-get install etcd-server")
        self.folder, self.options = folder, options
        self.port, self._peer_port, self._metrics_port = free_ports(3)
        self.scheme = "https" if tls else "http"
        self.url = f"etcd{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.log = folder / "etcd.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        client = f"{self.scheme}://127.0.0.1:{self.port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        command = [
            *("etcd", "--name", "one", "--data-dir", str(self.folder / "data")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--listen-metrics-urls", f"http://127.0.0.1:{self._metrics_port}"),
            *("--initial-cluster", f"one={peer}", *self.options),
        ]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        eventually(self._healthy, within_s=30)

    def _healthy(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"etcd ended: {self.log.read_text(errors='replace')[-2000:]}")
        try:
            url = f"http://127.0.0.1:{self._metrics_port}/health"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return b"true" in answer.read()
        except (OSError, urllib.error.URLError):
            return False

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP and SIGCONT, say."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """kill -9, if it runs."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.wait(timeout=20)


@contextmanager
def etcd_process(folder: Path, *options: str, tls: bool = False) -> Iterator[EtcdProcess]:
    """A running etcd; it is killed in the end, if it still runs."""
    server = EtcdProcess(folder, *options, tls=tls)
    try:
        server.start()
        yield server
    finally:
        server.kill()
