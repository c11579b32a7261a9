"""A private etcd server on loopback."""

from __future__ import annotations

import base64
import json
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually
from tests.support.servers import Run, free_ports, missing


@dataclass(frozen=True)
class Etcd:
    """A running etcd: its URL and, for tests, the simplest calls of its JSON gateway."""

    url: str

    def call(self, path: str, **body: Any) -> dict[str, Any]:
        """POST to the gateway (``kv/put``); bytes become base64 as it wants them."""
        encoded = {
            key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
            for key, value in body.items()
        }
        request = urllib.request.Request(
            f"{self.url}/v3/{path}", data=json.dumps(encoded).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    def put(self, key: str, value: bytes) -> None:
        self.call("kv/put", key=key.encode(), value=value)

    def get(self, key: str) -> bytes | None:
        found = self.call("kv/range", key=key.encode()).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")) if found else None

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(json.load(answer)["health"] == "true")
        except (OSError, urllib.error.URLError):
            return False


def etcd() -> Etcd:
    """The run's etcd, started if it is not yet."""
    if shutil.which("etcd") is None:
        missing("etcd", "apt-get install etcd-server")
    return Etcd(**Run.current().shared("etcd", _start))


def _start(folder: Path) -> dict[str, Any]:
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    Run.current().spawn(
        [
            *("etcd", "--name", "warren", "--data-dir", str(folder / "data")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"warren={peer}"),
        ],
        log=folder / "log" / "out.log",
    )
    server = Etcd(client)
    eventually(server.healthy, within_s=30)
    return {"url": client}
