"""The blocking connection that tasks read over: how it is made, refused, lost and ended."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pika import amqp_object, frame, spec

from tests.support.brokers import TestBroker
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.strangers import answering
from tests.support.wire import Channel
from warren import Broker
from warren.amqp import methods as m
from warren.client.blocking import BlockingChannel, BlockingConnection
from warren.client.blocking_questions import count_ready, queue_kind
from warren.client.endpoint import Endpoint
from warren.client.unread import unread
from warren.clock import seconds_since
from warren.errors import (
    ConfigError,
    ConnectionForced,
    ConnectionLost,
    HostUnreachable,
    LoginRefused,
    NotAmqp,
    NotFound,
    NotSingleActive,
    TlsFailed,
    VhostRefused,
)
from warren.spark.options import SourceOptions
from warren.spark.queues import Catalog
from warren.spark.task_connection import TaskConnection


def told(method: amqp_object.Method) -> bytes:
    """What a broker sends to say this."""
    return frame.Method(0, method).marshal()


def endpoint(broker: TestBroker, **changes: object) -> Endpoint:
    return Endpoint.from_uri(broker.url).but(**changes)


def test_a_connection_is_open_until_it_is_closed(broker: TestBroker) -> None:
    with BlockingConnection.open([endpoint(broker)]) as link:
        assert link.is_open
        assert "guest:guest" not in repr(link) + repr(link.endpoint)

    assert not link.is_open


def test_the_system_looks_after_one_on_which_nothing_passes(broker: TestBroker) -> None:
    """Between two triggers nobody sends heartbeats, and what stands between drops idle ones."""
    with BlockingConnection.open([endpoint(broker, heartbeat_s=0)]) as link:
        told = [
            link._socket.getsockopt(level, option)
            for level, option in (
                (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
                (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
            )
        ]

    assert told == [1, 20, 10, 3]  # gone is known within a minute


def test_the_first_broker_that_answers_is_taken(broker: TestBroker) -> None:
    dead = Endpoint.from_uri("amqp://127.0.0.1:1/").but(connect_timeout_s=2.0)

    with BlockingConnection.open([dead, endpoint(broker)]) as link:
        assert link.endpoint.address == (broker.host, broker.port)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"password": "sesame"}, LoginRefused),
        ({"vhost": "nowhere"}, VhostRefused),
        ({"port": 1}, HostUnreachable),
    ],
)
def test_a_connection_that_can_not_be_made_says_why(
    broker: TestBroker, changes: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error) as failed:
        BlockingConnection.open([endpoint(broker, **changes)])
    assert "sesame" not in str(failed.value)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", NotAmqp),
        (b"220 mail.example.com ESMTP\r\n", NotAmqp),
        (b"", HostUnreachable),
    ],
)
def test_a_server_of_something_else_is_told_from_a_broker(
    answer: bytes, error: type[Exception]
) -> None:
    with answering(answer) as port, pytest.raises(error):
        BlockingConnection.open([Endpoint("127.0.0.1", port)])


@pytest.mark.parametrize(
    ("tells", "behind", "error"),
    [
        (True, b"", HostUnreachable),
        (True, told(spec.Connection.Close(320, "CONNECTION_FORCED - bye", 0, 0)), HostUnreachable),
        (True, told(spec.Connection.Close(403, "ACCESS_REFUSED - no", 0, 0)), LoginRefused),
        (False, b"", LoginRefused),
    ],
)
def test_a_broker_that_goes_down_is_told_from_one_that_refuses_the_login(
    tells: bool, behind: bytes, error: type[Exception]
) -> None:
    known = {"capabilities": {"authentication_failure_close": tells}}
    start = told(spec.Connection.Start(0, 9, known, "PLAIN", "en_US"))

    with answering(start + behind) as port, pytest.raises(error):
        BlockingConnection.open([Endpoint("127.0.0.1", port)])


def test_a_server_that_keeps_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = Endpoint("127.0.0.1", server.getsockname()[1], connect_timeout_s=0.3)
        with pytest.raises(HostUnreachable, match="does not answer"):
            BlockingConnection.open([silent])


def test_a_refusal_closes_the_channel_and_no_more(broker: TestBroker) -> None:
    with BlockingConnection.open([endpoint(broker)]) as link:
        channel: BlockingChannel = link.channel()
        with pytest.raises(NotFound):
            channel.ready_messages("nowhere")
        with pytest.raises(NotFound):
            channel.ready_messages("nowhere")

        assert link.channel().is_open


def test_a_connection_that_is_cut_is_noticed(broker: TestBroker) -> None:
    with Proxy(broker.host, broker.port) as proxy:
        link = BlockingConnection.open([Endpoint.from_uri(proxy.url)])
        channel = link.channel()
        proxy.cut()

        with pytest.raises(ConnectionLost):
            channel.ready_messages("any")
        assert not link.is_open
        link.close()


def test_a_broker_that_was_restarted_while_a_task_slept_is_no_cut_connection() -> None:
    """It reads what was said before that, and finds a broker there at once."""
    with Broker.in_thread() as broker:
        port = broker.port
        endpoints = [Endpoint.from_uri(broker.url)]
        connection = TaskConnection(lambda: BlockingConnection.open(endpoints))
        link = connection.link
        link.channel().send(m.QueueDeclare(queue="kept"))
        link.flush()
        eventually(lambda: unread(link._socket))
    with Broker.in_thread(port=port):
        eventually(lambda: seconds_since(link.alive_at) > 0.5)
        with pytest.raises((ConnectionLost, ConnectionForced)) as lost:
            while link.pump(0.1):
                pass
        assert connection.lost(lost.value)

        assert connection.link.is_open
        assert (connection.made_again, connection.restarted) == (True, True)
        connection.close()


def test_a_peer_that_says_nothing_any_more_is_given_up(broker: TestBroker) -> None:
    with Proxy(broker.host, broker.port) as proxy:
        link = BlockingConnection.open([Endpoint.from_uri(proxy.url).but(heartbeat_s=1)])
        channel = link.channel()
        proxy.freeze()

        with pytest.raises(ConnectionLost, match="heartbeat"):
            channel.ready_messages("any")
        link.close()


def test_an_administrator_can_close_it(broker: TestBroker) -> None:
    link = BlockingConnection.open([endpoint(broker)])
    channel = link.channel()
    broker.close_connections("for the test")

    with pytest.raises(ConnectionForced, match="for the test"):
        channel.ready_messages("any")
    link.close()


def test_counting_finds_those_that_are_not_there(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    queues = [name("a"), name("b"), name("c")]
    channel.declare(queues[0])
    channel.declare(queues[2])
    channel.publish(queues[2], b"x")
    channel.sync()

    with BlockingConnection.open([endpoint(broker)]) as link:
        assert count_ready(link, queues) == {queues[0]: 0, queues[1]: None, queues[2]: 1}
        assert count_ready(link, []) == {}


@pytest.mark.parametrize(
    ("arguments", "kind", "single_active"),
    [
        ({}, "classic", False),
        ({"x-max-priority": 3, "x-single-active-consumer": True}, "classic", True),
        ({"x-queue-type": "quorum", "x-single-active-consumer": True}, "quorum", True),
        ({"x-queue-type": "stream"}, "stream", False),
    ],
)
def test_the_kind_of_a_queue_can_be_asked(
    broker: TestBroker,
    channel: Channel,
    name: Callable[..., str],
    arguments: dict[str, Any],
    kind: str,
    single_active: bool,
) -> None:
    queue = name("kind")
    channel.declare(queue, durable=True, arguments=arguments)

    with BlockingConnection.open([endpoint(broker)]) as link:
        found = queue_kind(link, queue)
        assert found is not None
        assert (found.type, found.single_active) == (kind, single_active)
        with pytest.raises(NotFound):
            queue_kind(link, "nowhere")


@pytest.mark.parametrize("uri", ["http//x", "ampq://x", "amqp://x:port/"])
def test_a_uri_that_can_not_be_used_is_a_mistake_in_the_option(uri: str) -> None:
    with pytest.raises(ConfigError) as failed:
        Endpoint.from_uri(uri)
    assert failed.value.option == "uri"


def test_a_tls_connection_checks_who_it_speaks_to(tmp_path: Path) -> None:
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs", "another CA")
    shown = ours.issue("broker", "/CN=localhost")
    with Broker.in_thread(
        tls_port=0, tls_certificate=shown.certificate, tls_key=shown.key
    ) as broker:
        given = {"uri": f"amqps://localhost:{broker.tls_port}", "queues": "a"}
        good = SourceOptions.parse({**given, "tlsCaFile": str(ours.ca)})
        bad = SourceOptions.parse({**given, "tlsCaFile": str(theirs.ca)})
        careless = SourceOptions.parse({**given, "tlsVerify": "false"})

        for options in (good, careless):
            with BlockingConnection.open(options.endpoints) as link:
                assert link.is_open
                alive_at = link.alive_at
                assert not link.pump(0.05)  # what TLS itself says after its handshake is read now
                link.channel()
                assert link.alive_at > alive_at
        with pytest.raises(TlsFailed, match="tlsCaFile"):
            BlockingConnection.open(bad.endpoints)
        plain = SourceOptions.parse({**given, "uri": f"amqps://localhost:{broker.port}"})
        with pytest.raises(TlsFailed, match="use amqp:// if the port has no TLS"):
            BlockingConnection.open(plain.endpoints)
    with pytest.raises(ConfigError, match="none: No such file"):
        missing = {**given, "tlsCaFile": str(tmp_path / "none")}
        BlockingConnection.open(SourceOptions.parse(missing).endpoints)


def test_a_pattern_without_a_management_api_says_what_to_do(broker: TestBroker) -> None:
    given = {"uri": broker.url, "queues": "orders.*", "managementUri": "http://127.0.0.1:1"}
    catalog = Catalog(SourceOptions.parse(given))

    with (
        BlockingConnection.open([endpoint(broker)]) as link,
        pytest.raises(ConfigError, match="managementUrl"),
    ):
        catalog.queues(link)


def test_a_pattern_finds_new_queues_and_their_kinds(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stem = name("kinds")
    first, second = name(f"{stem}.a"), name(f"{stem}.b")
    given = {"uri": broker.url, "queues": f"{stem}.*", "managementUri": broker.management}
    catalog = Catalog(SourceOptions.parse(given))
    with BlockingConnection.open([endpoint(broker)]) as link:
        channel.declare(first)
        assert set(catalog.queues(link)) == {first}
        channel.declare(second, durable=True, arguments={"x-queue-type": "quorum"})
        eventually(lambda: second in catalog.queues(link))
        found = catalog.queues(link)

    assert (found[first].kind, found[second].kind) == ("classic", "quorum")
    with pytest.raises(NotSingleActive, match=second):
        _ = found[second].mode
