"""The management API over TLS: certificates of the broker and of its clients, and the CLI's."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.certificates import Authority, Certificate
from warren import Broker
from warren.cli.main import main
from warren.client.management import Management
from warren.errors import ApiUntrusted, ConfigError, ListenError, ManagementError, NotManagement

Start = Callable[..., Any]


@pytest.fixture(scope="module")
def ann(ours: Authority) -> Certificate:
    return ours.issue("ann", "/CN=ann")


@pytest.fixture
def start(shown: Certificate) -> Start:
    """A broker whose management API listens for TLS."""

    def running(**settings: Any) -> Any:
        files = {"tls_certificate": shown.certificate, "tls_key": shown.key}
        return Broker.in_thread(**{"management_tls_port": 0, **files, **settings})

    return running


def whoami(broker: Broker, ca: str, **options: Any) -> Any:
    with Management(broker.management_tls_url, ca_file=ca, **options) as api:
        return api.get("whoami")["name"]


def test_a_client_that_trusts_the_ca_is_answered(start: Start, ours: Authority) -> None:
    with start() as broker:
        assert broker.management_tls_url == f"https://127.0.0.1:{broker.management_tls_port}"
        assert whoami(broker, ours.ca) == "guest"


def test_it_goes_without_the_plain_port(start: Start, ours: Authority) -> None:
    with start() as broker:
        assert (broker.management_url, broker.management_port) == ("", -1)
        with Management(broker.management_tls_url, ca_file=ours.ca) as api:
            protocols = [each["protocol"] for each in api.get("overview")["listeners"]]
        assert protocols == ["amqp", "https"]


def test_it_goes_beside_the_plain_port(start: Start, ours: Authority) -> None:
    with start(management_port=0) as broker, Management(broker.management_url) as api:
        assert whoami(broker, ours.ca) == api.get("whoami")["name"] == "guest"
        assert api.get("health", "checks", "protocol-listener", "https")["status"] == "ok"


def test_a_long_answer_comes_whole(start: Start, ours: Authority) -> None:
    with start() as broker, Management(broker.management_tls_url, ca_file=ours.ca) as api:
        names = {f"queue-{number:04}" for number in range(500)}
        api.post(
            "definitions",
            "/",
            body={
                "queues": [
                    {"name": name, "durable": False, "auto_delete": False, "arguments": {}}
                    for name in names
                ]
            },
        )
        assert {row["name"] for row in api.get("queues")} == names


def test_metrics_are_there_too(start: Start, ours: Authority) -> None:
    with start() as broker:
        client = http.client.HTTPSConnection(
            "127.0.0.1", broker.management_tls_port, timeout=30, context=ours.client()
        )
        client.request("GET", "/metrics")
        assert b"rabbitmq_queues 0\n" in client.getresponse().read()
        client.close()


def test_a_client_that_does_not_trust_the_ca_stays_out(start: Start, theirs: Authority) -> None:
    with start() as broker, pytest.raises(ApiUntrusted, match="--ca-file"):
        whoami(broker, theirs.ca)


def test_plain_http_on_the_tls_port_gets_no_answer(start: Start) -> None:
    with start() as broker:
        plain = Management(f"http://127.0.0.1:{broker.management_tls_port}")
        with pytest.raises(ManagementError), plain:
            plain.get("whoami")


def test_https_on_the_plain_port_is_told(start: Start, ours: Authority) -> None:
    with (
        start(management_port=0) as broker,
        Management(f"https://127.0.0.1:{broker.management_port}", ca_file=ours.ca) as api,
        pytest.raises(NotManagement, match="does not speak TLS"),
    ):
        api.get("whoami")


# -- client certificates ---------------------------------------------------------------------------
def test_a_client_certificate_may_be_required(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    with start(tls_ca=ours.ca, management_tls_verify="required") as broker:
        assert whoami(broker, ours.ca, certificate=ann.certificate, key=ann.key) == "guest"
        with pytest.raises(ManagementError):
            whoami(broker, ours.ca)


def test_a_client_certificate_may_be_optional(
    start: Start, ours: Authority, theirs: Authority, ann: Certificate
) -> None:
    stranger = theirs.issue("stranger", "/CN=ann")
    with start(tls_ca=ours.ca, management_tls_verify="optional") as broker:
        assert whoami(broker, ours.ca) == "guest"
        assert whoami(broker, ours.ca, certificate=ann.certificate, key=ann.key) == "guest"
        with pytest.raises(ManagementError):
            whoami(broker, ours.ca, certificate=stranger.certificate, key=stranger.key)


def test_a_certificate_does_not_replace_the_password(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    with (
        start(tls_ca=ours.ca, management_tls_verify="required") as broker,
        pytest.raises(ManagementError, match="wrong name or password"),
    ):
        whoami(broker, ours.ca, certificate=ann.certificate, key=ann.key, password="no")


def test_amqp_and_http_ask_for_certificates_apart(
    start: Start, ours: Authority, ann: Certificate
) -> None:
    with start(tls_ca=ours.ca, tls_port=0, tls_verify="required") as broker:
        assert whoami(broker, ours.ca) == "guest"


# -- settings --------------------------------------------------------------------------------------
def test_a_port_without_a_certificate_is_refused() -> None:
    with (
        pytest.raises(ConfigError, match="needs a certificate") as told,
        Broker.in_thread(management_tls_port=0),
    ):
        pass
    assert told.value.option == "management_tls_port"


def test_certificates_are_verified_by_a_ca(start: Start) -> None:
    with pytest.raises(ConfigError) as told, start(management_tls_verify="required"):
        pass
    assert told.value.option == "management_tls_verify"


def test_a_taken_port_is_told_with_its_setting(start: Start) -> None:
    with (
        start() as broker,
        pytest.raises(ListenError, match="choose one with management_tls_port"),
        start(management_tls_port=broker.management_tls_port),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"ca_file": "/nowhere.pem"}, "--ca-file"),
        ({"certificate": "/nowhere.pem"}, "--client-certificate"),
        ({"key": "/nowhere.key"}, "--client-key"),
    ],
)
def test_a_clients_file_that_can_not_be_used_is_named(options: dict[str, str], option: str) -> None:
    with pytest.raises(ConfigError) as told:
        Management("https://127.0.0.1", **options)  # type: ignore[arg-type]
    assert told.value.option == option


# -- what lasts ------------------------------------------------------------------------------------
def test_certificates_that_end_soon_fail_the_health_check(
    start: Start, ours: Authority, shown: Certificate
) -> None:
    with start(tls_ca=ours.ca) as broker:
        client = http.client.HTTPSConnection(
            "127.0.0.1", broker.management_tls_port, timeout=30, context=ours.client()
        )

        def check(within: str) -> tuple[int, Any]:
            login = {"authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
            path = f"/api/health/checks/certificate-expiration/{within}"
            client.request("GET", path, headers=login)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())

        assert check("1/days") == (200, {"status": "ok"})  # they are good for two
        status, told = check("1/weeks")
        client.close()
    assert (status, told["reason"]) == (503, "Certificates expiring")
    (expired,) = told["expired"]
    assert (expired["protocol"], expired["certfile"]) == ("https", shown.certificate)
    decoded: Any = ssl._ssl._test_decode_cert(shown.certificate)  # type: ignore[attr-defined]
    day = ssl.cert_time_to_seconds(decoded["notAfter"])
    end = datetime.fromtimestamp(day, UTC)
    assert expired["certfile_expires_on"] == [f"{end:%Y-%m-%d} {end.hour}:{end:%M:%S}"]
    assert len(expired["cacertfile_expires_on"]) == 1


# -- the command line ------------------------------------------------------------------------------
def test_the_command_line_speaks_https(
    start: Start, ours: Authority, ann: Certificate, capsys: pytest.CaptureFixture[str]
) -> None:
    with start(tls_ca=ours.ca, management_tls_verify="required") as broker:
        trust = ["--url", broker.management_tls_url, "--ca-file", ours.ca]
        shown = ["--client-certificate", ann.certificate, "--client-key", ann.key]
        assert main(["user", "list", "--json", *trust, *shown]) == 0
        assert [user["name"] for user in json.loads(capsys.readouterr().out)] == ["guest"]
        assert main(["user", "list", *trust]) == 1
        assert capsys.readouterr().err.count("\n") == 1
