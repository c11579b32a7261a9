"""Object stores on loopback, for ledgers: S3 by moto, Azure's by Microsoft's Azurite.

Of Google's there is no emulator to install that knows conditions on writes: its own is a
repository (googleapis/storage-testbench). Start that by hand, name it in STORAGE_EMULATOR_HOST,
have gcsfs installed, and the same tests run on it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

from tests.support import s3_server
from tests.support.eventually import eventually
from tests.support.servers import Run, free_ports, missing

EMULATED_GCS = "STORAGE_EMULATOR_HOST"
NAMES = ["s3", "azure", *(["gcs"] if EMULATED_GCS in os.environ else [])]
#: Names in one answer of S3 to a list; the real one has a thousand.
LISTED_AT_A_TIME = 50
#: The account that Azurite knows, as its documentation has it: no secret.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class ObjectStore:
    """A running store, and the environment in which its driver finds it."""

    scheme: str
    env: dict[str, str]

    def new_place(self) -> str:
        """The URI of a folder in a bucket of its own; the environment must be set."""
        bucket = f"test-{secrets.token_hex(4)}"
        fsspec.filesystem(self.scheme).mkdir(bucket)
        return f"{self.scheme}://{bucket}/shop/ledger"


def object_store(name: str) -> ObjectStore:
    """The run's store of that name, started if it is not yet."""
    if name == "gcs":
        return ObjectStore("gs", {EMULATED_GCS: os.environ[EMULATED_GCS]})
    if name == "azure" and _azurite() is None:
        missing("Azurite", "make servers")
    return ObjectStore(**Run.current().shared(name, _start_s3 if name == "s3" else _start_azure))


def _start_s3(folder: Path) -> dict[str, Any]:
    [port] = free_ports(1)
    command = [sys.executable, str(s3_server.__file__), str(port)]
    env = {**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": str(LISTED_AT_A_TIME)}
    Run.current().spawn(command, env=env, log=folder / "log" / "out.log")
    _await(port)
    env = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "nobody minds",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    return {"scheme": "s3", "env": env}


def _azurite() -> str | None:
    ours = Path(sys.prefix, "azurite", "node_modules", ".bin", "azurite-blob")
    return str(ours) if ours.exists() else shutil.which("azurite-blob")


def _start_azure(folder: Path) -> dict[str, Any]:
    [port] = free_ports(1)
    command = [
        *(str(_azurite()), "--blobPort", str(port), "--inMemoryPersistence"),
        *("--disableTelemetry", "--skipApiVersionCheck", "--silent"),
    ]
    Run.current().spawn(command, log=folder / "log" / "out.log")
    _await(port)
    endpoint = f"http://127.0.0.1:{port}/{_ACCOUNT}"
    words = (
        f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};"
        f"BlobEndpoint={endpoint};"
    )
    return {"scheme": "abfs", "env": {"AZURE_STORAGE_CONNECTION_STRING": words}}


def _await(port: int) -> None:
    def listens() -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0

    eventually(listens, within_s=60)
