"""AMQP over TLS: who is let into the handshake, and logging in by a certificate."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pytest
from pika.credentials import ExternalCredentials
from pika.exceptions import AMQPError, ProbableAuthenticationError

from tests.contract.tls.conftest import Listener, Listening
from tests.support.certificates import Authority, Certificate
from tests.support.eventually import eventually
from warren.client.management import Management

EXTERNAL = ExternalCredentials()
#: Where the broker turns a client away in the handshake, TLS 1.3 lets the client hear of it later:
#: by an alert, or by a closed socket.
TURNED_AWAY = (AMQPError, OSError)
TIMEOUT_S = 20


@contextmanager
def entered(
    listener: Listener, context: ssl.SSLContext, credentials: Any = None
) -> Iterator[pika.BlockingConnection]:
    parameters = pika.ConnectionParameters(
        "127.0.0.1",
        listener.port,
        ssl_options=pika.SSLOptions(context, "127.0.0.1"),
        credentials=credentials or pika.PlainCredentials("guest", "guest"),
        socket_timeout=TIMEOUT_S,
        stack_timeout=TIMEOUT_S,
    )
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection
    finally:
        connection.close()


# -- the handshake ---------------------------------------------------------------------------------
def test_a_client_that_trusts_the_ca_comes_in(listening: Listening, ours: Authority) -> None:
    with listening() as listener, entered(listener, ours.client()) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"x" * 300_000)
        assert channel.basic_get(queue, auto_ack=True)[2] == b"x" * 300_000


def test_a_client_that_does_not_trust_the_ca_stays_out(
    listening: Listening, theirs: Authority
) -> None:
    with listening() as listener, pytest.raises(ssl.SSLCertVerificationError):
        entered(listener, theirs.client()).__enter__()


def test_plain_amqp_on_the_tls_port_is_refused(listening: Listening) -> None:
    with listening() as listener:
        parameters = pika.ConnectionParameters(
            "127.0.0.1", listener.port, socket_timeout=TIMEOUT_S, stack_timeout=TIMEOUT_S
        )
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(parameters)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_new_versions_of_tls_are_taken(
    listening: Listening, ours: Authority, version: ssl.TLSVersion
) -> None:
    context = ours.client()
    context.minimum_version = context.maximum_version = version
    with listening() as listener, entered(listener, context) as connection:
        assert connection.is_open


# -- client certificates ---------------------------------------------------------------------------
def test_a_client_without_a_certificate_stays_out_where_one_is_required(
    listening: Listening, ours: Authority
) -> None:
    with listening(verify="required") as listener, pytest.raises(TURNED_AWAY):
        entered(listener, ours.client()).__enter__()


def test_a_client_without_a_certificate_comes_in_where_one_is_optional(
    listening: Listening, ours: Authority
) -> None:
    with (
        listening(verify="optional") as listener,
        entered(listener, ours.client()) as connection,
    ):
        assert connection.is_open


@pytest.mark.parametrize("verify", ["optional", "required"])
def test_a_client_with_a_certificate_of_another_ca_stays_out(
    listening: Listening, ours: Authority, theirs: Authority, verify: str
) -> None:
    stranger = theirs.issue("stranger", "/CN=ann")
    with listening(verify=verify) as listener, pytest.raises(TURNED_AWAY):
        entered(listener, ours.client(stranger)).__enter__()


def test_a_client_with_a_certificate_may_log_in_by_password(
    listening: Listening, ours: Authority, ann: Certificate
) -> None:
    with (
        listening(verify="required") as listener,
        entered(listener, ours.client(ann)) as connection,
    ):
        assert connection.is_open


# -- logging in by certificate ---------------------------------------------------------------------
def test_a_client_logs_in_by_its_common_name(
    listening: Listening, ours: Authority, ann: Certificate
) -> None:
    with (
        listening(verify="required", login_from="common_name") as listener,
        listener.user("ann"),
        entered(listener, ours.client(ann), EXTERNAL) as connection,
    ):
        channel = connection.channel()
        channel.basic_publish("", "nowhere", b"", pika.BasicProperties(user_id="ann"))
        channel.basic_qos(prefetch_count=1)  # answered: the name above was not refused


def test_a_client_logs_in_by_its_distinguished_name(
    listening: Listening, ours: Authority, ann: Certificate
) -> None:
    with (
        listening(verify="optional") as listener,
        listener.user("CN=ann,O=Shop\\, Ltd,C=GB"),
        entered(listener, ours.client(ann), EXTERNAL) as connection,
    ):
        assert connection.is_open


def refused(listener: Listener, context: ssl.SSLContext) -> bool:
    with pytest.raises(ProbableAuthenticationError) as caught:
        entered(listener, context, EXTERNAL).__enter__()
    return "Login was refused using authentication mechanism EXTERNAL" in str(caught.value)


def test_a_certificate_that_names_nobody_known_is_refused(
    listening: Listening, ours: Authority, ann: Certificate
) -> None:
    with listening(verify="optional") as listener:
        assert refused(listener, ours.client(ann))


@pytest.mark.parametrize("verify", ["none", "optional"])
def test_external_without_a_certificate_is_refused(
    listening: Listening, ours: Authority, verify: str
) -> None:
    with listening(verify=verify) as listener:
        assert refused(listener, ours.client())


def test_a_certificate_that_is_not_asked_for_does_not_count(
    listening: Listening, ours: Authority, ann: Certificate
) -> None:
    with listening(login_from="common_name") as listener, listener.user("ann"):
        assert refused(listener, ours.client(ann))


def test_external_is_offered_over_tls_alone(listening: Listening) -> None:
    with listening(verify="required") as listener:
        parameters = pika.URLParameters(listener.broker.url)
        parameters.credentials = EXTERNAL
        with pytest.raises(pika.exceptions.AuthenticationError):
            pika.BlockingConnection(parameters)


# -- what the management API tells -----------------------------------------------------------------
def told(listener: Listener) -> dict[str, Any]:
    with Management(listener.broker.management) as api:
        # RabbitMQ tells of a connection a little after its client has entered.
        rows = eventually(
            lambda: [row for row in api.get("connections") if row.get("port") == listener.port]
        )
    return {key: rows[0][key] for key in sorted(rows[0]) if key.startswith(("ssl", "peer_cert"))}


def test_a_connections_tls_is_told(listening: Listening, ours: Authority, ann: Certificate) -> None:
    context = ours.client(ann)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with listening(verify="required") as listener, entered(listener, context):
        found = told(listener)
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


def test_without_a_client_certificate_none_is_told(listening: Listening, ours: Authority) -> None:
    with listening() as listener, entered(listener, ours.client()):
        found = told(listener)
    assert (found["ssl"], found["ssl_protocol"], found["ssl_key_exchange"]) == (
        True,
        "tlsv1.3",
        "any",
    )
    assert found["peer_cert_subject"] is None
