"""AMQP over TLS: certificates of the broker and of its clients, and logging in by them."""

from __future__ import annotations

import asyncio
import re
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
from warren.client.management import Management
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
        socket_timeout=5,
    )
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection
    finally:
        connection.close()


EXTERNAL = pika.credentials.ExternalCredentials()


def test_a_client_that_trusts_the_ca_comes_in(start: Start, ours: Authority) -> None:
    with start() as broker, entered(broker, ours.client()) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"x" * 300_000)
        assert channel.basic_get(queue)[2] == b"x" * 300_000


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


def test_a_client_that_does_not_trust_the_ca_stays_out(start: Start, theirs: Authority) -> None:
    with start() as broker, pytest.raises(ssl.SSLCertVerificationError):
        entered(broker, theirs.client()).__enter__()


def test_plain_amqp_on_the_tls_port_is_refused(start: Start) -> None:
    with start() as broker:
        parameters = pika.ConnectionParameters("127.0.0.1", broker.tls_port, socket_timeout=5)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(parameters)


def test_old_versions_of_tls_are_refused(start: Start, ours: Authority) -> None:
    context = ours.client()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with start() as broker, pytest.raises(ssl.SSLError):
        entered(broker, context).__enter__()


# -- client certificates ---------------------------------------------------------------------------
def test_a_client_without_a_certificate_stays_out_where_one_is_required(
    start: Start, ours: Authority
) -> None:
    with (
        start(tls_ca=ours.ca, tls_verify="required") as broker,
        pytest.raises(pika.exceptions.AMQPError),
    ):
        entered(broker, ours.client()).__enter__()


def test_a_client_with_a_certificate_of_another_ca_stays_out(
    start: Start, ours: Authority, theirs: Authority
) -> None:
    stranger = theirs.issue("stranger", "/CN=ann")
    with (
        start(tls_ca=ours.ca, tls_verify="optional") as broker,
        pytest.raises(pika.exceptions.AMQPError),
    ):
        entered(broker, ours.client(stranger)).__enter__()


def test_a_client_with_a_certificate_may_log_in_by_password(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    with (
        start(tls_ca=ours.ca, tls_verify="required") as broker,
        entered(broker, ours.client(ann)) as connection,
    ):
        assert connection.is_open


def test_a_client_logs_in_by_its_common_name(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    settings = {"tls_verify": "required", "tls_login_from": "common_name"}
    with start(tls_ca=ours.ca, **settings) as broker:
        broker.administer(lambda admin: admin.put_user("ann"))
        broker.set_permissions("ann")
        with entered(broker, ours.client(ann), EXTERNAL) as connection:
            connection.channel().basic_publish(
                "", "nowhere", b"", pika.BasicProperties(user_id="ann")
            )
            connection.channel()


def test_a_client_logs_in_by_its_distinguished_name(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    with start(tls_ca=ours.ca, tls_verify="optional") as broker:
        broker.administer(lambda admin: admin.put_user("CN=ann,O=Shop\\, Ltd,C=GB"))
        broker.set_permissions("CN=ann,O=Shop\\, Ltd,C=GB")
        with entered(broker, ours.client(ann), EXTERNAL) as connection:
            assert connection.is_open


def refused(broker: Broker, context: ssl.SSLContext) -> bool:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError) as caught:
        entered(broker, context, EXTERNAL).__enter__()
    return "Login was refused using authentication mechanism EXTERNAL" in str(caught.value)


def test_a_certificate_that_names_nobody_known_is_refused(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    with start(tls_ca=ours.ca, tls_verify="optional") as broker:
        assert refused(broker, ours.client(ann))


def test_external_without_a_certificate_is_refused(start: Start, ours: Authority) -> None:
    with start(tls_ca=ours.ca, tls_verify="optional") as broker:
        assert refused(broker, ours.client())


def test_external_is_not_offered_where_certificates_are_not_verified(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    with start() as broker, pytest.raises(pika.exceptions.AuthenticationError):
        entered(broker, ours.client(ann), EXTERNAL).__enter__()


# -- what the management API tells -----------------------------------------------------------------
def told(broker: Broker) -> dict[str, Any]:
    with Management(broker.management_url) as api:
        (row,) = api.get("connections")
    return {key: row[key] for key in sorted(row) if key.startswith(("ssl", "peer_cert"))}


def test_a_connections_tls_is_told_in_rabbitmqs_words(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    context = ours.client(ann)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with (
        start(tls_ca=ours.ca, tls_verify="required", management_port=0) as broker,
        entered(broker, context),
    ):
        found = told(broker)
    validity = found.pop("peer_cert_validity")
    assert found == {
        "peer_cert_issuer": "CN=test CA",
        "peer_cert_subject": "CN=ann,O=Shop\\, Ltd,C=GB",
        "ssl": True,
        "ssl_cipher": "aes_256_gcm",
        "ssl_hash": "aead",
        "ssl_key_exchange": "ecdhe_ecdsa",
        "ssl_protocol": "tlsv1.2",
    }
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(f"{moment} - {moment}", validity)


def test_without_a_client_certificate_none_is_told(start: Start, ours: Authority) -> None:
    with start(management_port=0) as broker, entered(broker, ours.client()):
        found = told(broker)
    assert (found["ssl"], found["ssl_protocol"], found["ssl_key_exchange"]) == (
        True,
        "tlsv1.3",
        "any",
    )
    assert found["peer_cert_subject"] is None


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
