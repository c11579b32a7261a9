"""AMQP over TLS: what is our broker's own; the rest is in ``contract/tls``."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.support.certificates import Authority, Certificate
from tests.support.eventually import eventually
from warren import Broker
from warren.errors import ConfigError, ListenError
from warren.server.tls import tls_facts

Start = Callable[..., Any]


@pytest.fixture(scope="module")
def ann(ours: Authority) -> Certificate:
    return ours.issue("ann", "/C=GB/O=Shop, Ltd/CN=ann")


@pytest.fixture
def start(shown: Certificate) -> Start:
    """A broker that listens for TLS."""

    def running(**settings: Any) -> Any:
        return Broker.in_thread(
            tls_port=0, tls_certificate=shown.certificate, tls_key=shown.key, **settings
        )

    return running


@contextmanager
def entered(
    broker: Broker, context: ssl.SSLContext, credentials: Any = None
) -> Iterator[pika.BlockingConnection]:
    parameters = pika.ConnectionParameters(
        "127.0.0.1",
        broker.tls_port,
        ssl_options=pika.SSLOptions(context, "127.0.0.1"),
        credentials=credentials or pika.PlainCredentials("guest", "guest"),
        socket_timeout=30,
    )
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection
    finally:
        connection.close()


def test_the_url_says_amqps(start: Start) -> None:
    with start() as broker:
        assert broker.tls_url == f"amqps://guest:guest@127.0.0.1:{broker.tls_port}/"
        assert broker.tls_port not in (0, broker.port)


def test_without_a_port_for_it_there_is_no_tls() -> None:
    with Broker.in_thread() as broker:
        assert (broker.tls_port, broker.tls_url) == (-1, "")


def test_plain_connections_are_served_beside(start: Start) -> None:
    with start() as broker:
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()


def test_old_versions_of_tls_are_refused(start: Start, ours: Authority) -> None:
    context = ours.client()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with start() as broker, pytest.raises(ssl.SSLError):
        entered(broker, context).__enter__()


# -- what the management API tells -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("cipher", "version", "words"),
    [
        ("TLS_AES_256_GCM_SHA384", "TLSv1.3", ("any", "aes_256_gcm", "aead")),
        ("TLS_CHACHA20_POLY1305_SHA256", "TLSv1.3", ("any", "chacha20_poly1305", "aead")),
        ("ECDHE-RSA-AES128-GCM-SHA256", "TLSv1.2", ("ecdhe_rsa", "aes_128_gcm", "aead")),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.2", ("ecdhe_ecdsa", "chacha20_poly1305", "aead")),
        ("AES128-GCM-SHA256", "TLSv1.2", ("rsa", "aes_128_gcm", "aead")),
    ],
)
def test_a_cipher_is_named_in_erlangs_words(
    cipher: str, version: str, words: tuple[str, str, str]
) -> None:
    facts = tls_facts((cipher, version, 256), None)
    assert (facts["ssl_key_exchange"], facts["ssl_cipher"], facts["ssl_hash"]) == words
    assert facts["ssl_protocol"] == version.lower()


# -- settings --------------------------------------------------------------------------------------
@pytest.fixture
def files(tmp_path: Path, shown: Certificate, ann: Certificate) -> dict[str, str]:
    (tmp_path / "garbage.pem").write_text("garbage")
    return {
        "good": shown.certificate,
        "key": shown.key,
        "other": ann.key,
        "garbage": str(tmp_path / "garbage.pem"),
        "folder": str(tmp_path),
        "absent": str(tmp_path / "absent.pem"),
        "": "",
    }


@pytest.mark.parametrize(
    ("settings", "option", "problem"),
    [
        ({}, "tls_port", "needs a certificate"),
        ({"tls_key": "key"}, "tls_key", "of no use without tls_certificate"),
        ({"tls_certificate": "absent"}, "tls_certificate", "there is no file"),
        ({"tls_certificate": "folder"}, "tls_certificate", "can't read"),
        ({"tls_certificate": "garbage"}, "tls_certificate", "has no PEM certificate"),
        ({"tls_certificate": "good"}, "tls_certificate", "has no PEM private key"),
        ({"tls_certificate": "good", "tls_key": "absent"}, "tls_key", "there is no file"),
        ({"tls_certificate": "good", "tls_key": "garbage"}, "tls_key", "has no PEM private key"),
        ({"tls_certificate": "good", "tls_key": "other"}, "tls_key", "is not the key of"),
        (
            {"tls_certificate": "good", "tls_key": "key", "tls_ca": "garbage"},
            "tls_ca",
            "has no certificate",
        ),
        (
            {"tls_certificate": "good", "tls_key": "key", "tls_ca": "absent"},
            "tls_ca",
            "there is no file",
        ),
    ],
)
def test_a_file_that_can_not_be_used_is_named(
    files: dict[str, str], settings: dict[str, str], option: str, problem: str
) -> None:
    given = {name: files[word] for name, word in settings.items()}
    with (
        pytest.raises(ConfigError, match=problem) as caught,
        Broker.in_thread(tls_port=0, **given),
    ):
        pass
    assert caught.value.option == option


def test_clients_are_verified_by_a_ca(start: Start) -> None:
    with pytest.raises(ConfigError, match="without tls_ca"), start(tls_verify="required"):
        pass


def test_a_taken_port_is_told_and_the_other_port_is_free_again(
    start: Start, shown: Certificate
) -> None:
    async def second(taken: int) -> int:
        broker = Broker(
            port=0, tls_port=taken, tls_certificate=shown.certificate, tls_key=shown.key
        )
        with pytest.raises(ListenError, match="the port is taken"):
            await broker.__aenter__()
        return broker.port

    with start() as broker:
        port = asyncio.run(second(broker.tls_port))
        with Broker.in_thread(port=port):
            pass


def test_the_command_line_listens_for_tls(ours: Authority, shown: Certificate) -> None:
    command = [sys.executable, "-m", "warren", "broker", "--port", "0", "--tls-port", "0"]
    files = ["--tls-certificate", shown.certificate, "--tls-key", shown.key]
    with subprocess.Popen([*command, *files], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            port = int(line.split("TLS on 127.0.0.1:")[1].split()[0])
            context = ours.client()
            eventually(lambda: ssl.get_server_certificate(("127.0.0.1", port)))
            parameters = pika.ConnectionParameters(
                "127.0.0.1", port, ssl_options=pika.SSLOptions(context, "127.0.0.1")
            )
            pika.BlockingConnection(parameters).close()
        finally:
            process.terminate()
