"""The management API's sockets: limits, keep-alive, what is started when."""

from __future__ import annotations

import http.client
import json
import logging
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warren
from warren.errors import ListenError
from warren.server import http as server

AUTHORIZATION = {"authorization": "Basic " + b64encode(b"guest:guest").decode()}


@pytest.fixture
def broker() -> Iterator[warren.Broker]:
    with warren.Broker.in_thread(management_port=0) as broker:
        yield broker


@pytest.fixture
def client(broker: warren.Broker) -> Iterator[http.client.HTTPConnection]:
    client = http.client.HTTPConnection("127.0.0.1", broker.management_port, timeout=30)
    yield client
    client.close()


def ask(
    client: http.client.HTTPConnection, method: str, path: str, body: Any = None
) -> tuple[int, bytes]:
    data = None if body is None else json.dumps(body).encode()
    client.request(method, path, data, AUTHORIZATION)
    answer = client.getresponse()
    return answer.status, answer.read()


def exchange(broker: warren.Broker, data: bytes) -> bytes:
    """Send octets, read to the end."""
    with socket.create_connection(("127.0.0.1", broker.management_port), timeout=30) as peer:
        peer.sendall(data)
        pieces = []
        while piece := peer.recv(65536):
            pieces.append(piece)
        return b"".join(pieces)


def test_an_embedded_broker_has_no_api_unless_it_is_asked_to() -> None:
    with warren.Broker.in_thread() as broker:
        assert broker.management_url == ""


def test_a_taken_port_is_told_with_the_setting_to_choose_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ListenError, match="choose one with management_port"),
            warren.Broker.in_thread(management_port=port),
        ):
            pass


def test_one_connection_serves_many_requests(client: http.client.HTTPConnection) -> None:
    assert [ask(client, "GET", "/api/whoami")[0] for _ in range(3)] == [200, 200, 200]


def test_head_has_the_length_and_no_body(client: http.client.HTTPConnection) -> None:
    client.request("HEAD", "/api/whoami", headers=AUTHORIZATION)
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


def test_headers_that_go_on_and_on_are_refused(broker: warren.Broker) -> None:
    data = b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * (server.MAX_HEAD_BYTES + 1000)
    assert exchange(broker, data).startswith(b"HTTP/1.1 431 ")


def test_what_is_no_http_is_refused(broker: warren.Broker) -> None:
    assert exchange(broker, b"AMQP\x00\x00\x09\x01\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_a_body_that_is_too_large_is_refused_before_it_comes(broker: warren.Broker) -> None:
    head = f"POST /api/definitions HTTP/1.1\r\nhost: x\r\ncontent-length: {1 << 40}\r\n\r\n"
    assert exchange(broker, head.encode()).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_sends_nothing_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "REQUEST_TIMEOUT_S", 0.05)
    with warren.Broker.in_thread(management_port=0) as broker:
        assert exchange(broker, b"GET /api/whoami HTTP/1.1\r\n") == b""


def test_a_failure_inside_is_logged_and_not_shown(
    broker: warren.Broker,
    client: http.client.HTTPConnection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise RuntimeError("the inside of the broker")

    monkeypatch.setattr(broker.core.admin, "users", fail)
    assert ask(client, "GET", "/api/users") == (500, b"")
    assert "the inside of the broker" in caplog.text


def test_passwords_are_not_logged(
    client: http.client.HTTPConnection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = b64encode(b"guest:topsecret").decode()
    client.request("GET", "/api/whoami", headers={"authorization": f"Basic {token}"})
    assert client.getresponse().read()
    ask(client, "PUT", "/api/users/new", {"password": "topsecret", "tags": 1})
    assert "refused" in caplog.text or "denied" in caplog.text
    assert "topsecret" not in caplog.text
    assert token not in caplog.text


def test_metrics_have_rabbitmqs_names(client: http.client.HTTPConnection) -> None:
    ask(client, "PUT", "/api/queues/%2F/orders", {})
    body = {"properties": {}, "routing_key": "orders", "payload": "x", "payload_encoding": "string"}
    ask(client, "POST", "/api/exchanges/%2F/amq.default/publish", body)
    client.request("GET", "/metrics")  # without credentials, as Prometheus asks
    lines = client.getresponse().read().decode().splitlines()
    assert "rabbitmq_queues 1" in lines
    assert "rabbitmq_queue_messages_ready 1" in lines
    assert 'rabbitmq_global_messages_received_total{protocol="amqp091"} 1' in lines
    client.request("GET", "/metrics/per-object")
    lines = client.getresponse().read().decode().splitlines()
    assert 'rabbitmq_queue_messages_ready{vhost="/",queue="orders"} 1' in lines


def test_policies_survive_a_restart(tmp_path: Path) -> None:
    path = "/api/policies/%2F/short"
    body = {"pattern": "^orders", "definition": {"max-length": 1}}
    for expected in (201, 200):
        with warren.Broker.in_thread(management_port=0, data_dir=str(tmp_path)) as broker:
            client = http.client.HTTPConnection("127.0.0.1", broker.management_port, timeout=30)
            if expected == 201:
                assert ask(client, "PUT", path, body)[0] == 201
                assert ask(client, "PUT", "/api/queues/%2F/orders", {"durable": True})[0] == 201
            else:
                assert json.loads(ask(client, "GET", path)[1])["definition"] == {"max-length": 1}
                row = json.loads(ask(client, "GET", "/api/queues/%2F/orders")[1])
                assert row["policy"] == "short"
            client.close()


def test_the_clusters_name_and_identity_survive_a_restart(tmp_path: Path) -> None:
    told = []
    for _ in range(2):
        with warren.Broker.in_thread(management_port=0, data_dir=str(tmp_path)) as broker:
            client = http.client.HTTPConnection("127.0.0.1", broker.management_port, timeout=30)
            if not told:
                assert ask(client, "PUT", "/api/cluster-name", {"name": "burrow"})[0] == 204
            told.append(json.loads(ask(client, "GET", "/api/global-parameters")[1]))
            assert broker.core.server_properties["cluster_name"] == "burrow"
            client.close()
    assert told[0] == told[1]
