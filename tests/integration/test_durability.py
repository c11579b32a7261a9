"""What a broker with a data folder still has after a restart and after kill -9.

The broker is a real process. What RabbitMQ promises, too, is held to the same words on a private
RabbitMQ node that is restarted (one test: it takes a while).
"""

from __future__ import annotations

import os
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pika import spec

import warren
from tests.support import rabbitmq
from tests.support.eventually import eventually
from tests.support.process import BrokerProcess, broker_process, run_refused
from tests.support.wire import Channel, Closed, Connection, Message

PERSISTENT = 2
Restart = Callable[[], None]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path / "data") as broker:
        yield broker


@pytest.fixture(params=["stopped", "killed"])
def restart(request: pytest.FixtureRequest, broker: BrokerProcess) -> Restart:
    """Ends the broker, in one way or the other, and starts it again."""

    def restart() -> None:
        broker.stop() if request.param == "stopped" else broker.kill()
        broker.start()

    return restart


@pytest.fixture
def kill(broker: BrokerProcess) -> Restart:
    def kill() -> None:
        broker.kill()
        broker.start()

    return kill


def open_channel(broker: BrokerProcess) -> Channel:
    return broker.connect().channel()


def publish(channel: Channel, queue: str, *bodies: bytes, **properties: Any) -> None:
    """Persistent messages, confirmed; with ``exchange`` they go there."""
    exchange = properties.pop("exchange", "")
    properties.setdefault("delivery_mode", PERSISTENT)
    confirming = channel.connection.channel()
    confirming.confirm()
    for body in bodies:
        confirming.publish(queue, body, exchange=exchange, **properties)
    assert set(confirming.wait_confirms(len(bodies)).values()) == {"ack"}
    confirming.close()


def get(channel: Channel, queue: str, *, no_ack: bool = True) -> Message | None:
    answer = channel.call(spec.Basic.Get(queue=queue, no_ack=no_ack))
    return answer if isinstance(answer, Message) else None


def drain(channel: Channel, queue: str) -> list[Message]:
    found = []
    while message := get(channel, queue):
        found.append(message)
    return found


def bodies(channel: Channel, queue: str) -> list[bytes]:
    return [message.body for message in drain(channel, queue)]


def flags(channel: Channel, queue: str) -> list[tuple[bytes, bool]]:
    return [(message.body, message.method.redelivered) for message in drain(channel, queue)]


def exists(broker: Any, kind: str, name: str) -> bool:
    channel = broker.connect().channel()
    try:
        if kind == "queue":
            channel.declare(name, passive=True)
        else:
            channel.declare_exchange(name, passive=True)
    except Closed as refusal:
        assert refusal.code == 404
        return False
    return True


@contextmanager
def database(broker: BrokerProcess) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{broker.file}?mode=ro", uri=True)) as connection:
        yield connection


def rows(broker: BrokerProcess, table: str) -> int:
    with database(broker) as connection:
        count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return count


# -- on RabbitMQ, too ----------------------------------------------------------------------------
class RabbitNode:
    """A RabbitMQ node of its own that can be restarted."""

    def __init__(self) -> None:
        self._node = rabbitmq.restartable()
        self._connections: list[Connection] = []

    def connect(self) -> Connection:
        self._connections.append(Connection.open(self._node.url))
        return self._connections[-1]

    def restart(self) -> None:
        self.close()
        self._node.evaluate("rabbit:stop()")
        self._node.evaluate("rabbit:start()")
        self._node.wait_ready()

    def close(self) -> None:
        for connection in self._connections:
            connection.wire.close()
        self._connections.clear()


class WarrenNode:
    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self.connect = broker.connect

    def restart(self) -> None:
        self._broker.stop()
        self._broker.start()

    def close(self) -> None:
        """The process is ended by its fixture."""


@pytest.fixture(params=["warren", pytest.param("rabbitmq", marks=pytest.mark.slow)])
def node(request: pytest.FixtureRequest) -> Iterator[Any]:
    with closing(
        RabbitNode()
        if request.param == "rabbitmq"
        else WarrenNode(request.getfixturevalue("broker"))
    ) as node:
        yield node


def read_stream(node: Any) -> list[Message]:
    channel = node.connect().channel()
    channel.qos(10)
    try:
        channel.consume("stream", arguments={"x-stream-offset": "first"})
    except Closed as refusal:  # RabbitMQ's streams take a moment longer than its other queues
        assert "is down or inaccessible" in refusal.text
        return []
    return [channel.delivery() for _ in range(2)]


@pytest.mark.timeout(120)
def test_the_same_survives_a_restart_as_on_rabbitmq(node: Any) -> None:
    channel = node.connect().channel()
    channel.declare("durable", durable=True)
    channel.declare("passing", durable=False)
    channel.declare("priority", durable=True, arguments={"x-max-priority": 5})
    channel.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    channel.declare("stream", durable=True, arguments={"x-queue-type": "stream"})
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.declare("dying", durable=True, arguments=to_dead)
    channel.declare("dead", durable=True)
    for exchange, durable in (("ex-durable", True), ("ex-passing", False)):
        channel.declare_exchange(exchange, "direct", durable=durable)
        channel.bind("durable", exchange, "key")
    publish(channel, "durable", b"1", b"2", b"3", b"4")
    publish(channel, "durable", b"transient", delivery_mode=1)
    publish(channel, "key", b"5", exchange="ex-durable")
    publish(channel, "durable", b"gone", expiration="10")
    publish(channel, "quorum", b"kept although transient", delivery_mode=1)
    publish(channel, "stream", b"s1", b"s2", delivery_mode=1)
    for priority in (1, 4, 0, 4):
        publish(channel, "priority", b"%d" % priority, priority=priority)
    publish(channel, "dying", b"rejected")
    channel.reject(get(channel, "dying", no_ack=False).tag, requeue=False)  # type: ignore[union-attr]
    held = node.connect().channel()
    assert [get(held, "durable", no_ack=False).body for _ in range(2)] == [b"1", b"2"]  # type: ignore[union-attr]
    channel.sync()

    node.restart()

    channel = node.connect().channel()
    assert not exists(node, "queue", "passing")
    assert exists(node, "exchange", "ex-durable")
    assert not exists(node, "exchange", "ex-passing")
    publish(channel, "key", b"6", exchange="ex-durable")
    assert flags(channel, "durable") == [
        (b"1", True),
        (b"2", True),
        (b"3", False),
        (b"4", False),
        (b"5", False),
        (b"6", False),
    ]
    assert flags(channel, "priority") == [(b"%d" % each, False) for each in (4, 4, 1, 0)]
    assert bodies(channel, "quorum") == [b"kept although transient"]
    (dead,) = drain(channel, "dead")
    (death,) = dead.properties.headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == ("dying", "rejected", 1)
    read = eventually(lambda: read_stream(node), within_s=30)
    assert [(each.body, each.properties.headers["x-stream-offset"]) for each in read] == [
        (b"s1", 0),
        (b"s2", 1),
    ]


# -- what survives -------------------------------------------------------------------------------
def test_messages_survive_in_order(broker: BrokerProcess, restart: Restart) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", *(b"%d" % number for number in range(1200)))
    restart()
    channel = open_channel(broker)
    assert channel.count("q") == 1200
    assert bodies(channel, "q") == [b"%d" % number for number in range(1200)]


def test_a_message_survives_with_all_that_it_is(broker: BrokerProcess, restart: Restart) -> None:
    channel = open_channel(broker)
    channel.declare_exchange("ex", "topic", durable=True)
    channel.declare("q", durable=True)
    channel.bind("q", "ex", "a.#")
    headers = {"text": "ä", "number": -5, "list": [1, "b"], "table": {"x": True}, "none": None}
    body = os.urandom(300_000)
    properties = {"headers": headers, "message_id": "m", "timestamp": 7, "content_type": "t"}
    publish(channel, "a.b", body, exchange="ex", **properties)
    restart()
    message = get(open_channel(broker), "q")
    assert message is not None
    assert (message.method.exchange, message.method.routing_key) == ("ex", "a.b")
    found = {key: getattr(message.properties, key) for key in properties}
    assert (message.body, found) == (body, properties)


def test_bindings_survive_with_their_arguments(broker: BrokerProcess, restart: Restart) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    channel.declare_exchange("first", "headers", durable=True)
    channel.declare_exchange("second", "fanout", durable=True)
    channel.call(
        spec.Exchange.Bind(
            source="first", destination="second", arguments={"x-match": "any", "a": 1, "b": 2}
        )
    )
    channel.bind("q", "second")
    channel.bind("q", "second", "to be unbound")
    channel.unbind("q", "second", "to be unbound")
    restart()
    channel = open_channel(broker)
    publish(channel, "", b"yes", exchange="first", headers={"b": 2})
    publish(channel, "", b"no", exchange="first", headers={"b": 3})
    assert bodies(channel, "q") == [b"yes"]
    with database(broker) as connection:
        kept = connection.execute("SELECT key FROM definitions WHERE kind='binding'").fetchall()
    assert len(kept) == 2


def test_what_was_deleted_stays_deleted(broker: BrokerProcess, restart: Restart) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    channel.declare_exchange("ex", durable=True)
    channel.bind("q", "ex", "k")
    publish(channel, "q", b"1")
    channel.call(spec.Queue.Delete(queue="q"))
    channel.call(spec.Exchange.Delete(exchange="ex"))
    restart()
    assert not exists(broker, "queue", "q")
    assert not exists(broker, "exchange", "ex")
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    assert channel.count("q") == 0


def test_a_queue_declared_anew_has_nothing_of_the_old_one(
    broker: BrokerProcess, restart: Restart
) -> None:
    channel = open_channel(broker)
    for body in (b"old", b"new"):
        channel.declare("q", durable=True)
        publish(channel, "q", body)
        if body == b"old":
            channel.call(spec.Queue.Delete(queue="q"))
    restart()
    assert flags(open_channel(broker), "q") == [(b"new", False)]


def test_a_deleted_virtual_host_takes_everything_along(tmp_path: Path) -> None:
    with warren.Broker.in_thread(data_dir=str(tmp_path)) as running:
        running.add_vhost("other")
        connection = Connection.open(running.url, vhost="other")
        channel = connection.channel()
        channel.declare_exchange("ex", durable=True)
        channel.declare_exchange("behind", durable=True)
        channel.call(spec.Exchange.Bind(source="ex", destination="behind"))
        channel.declare("q", durable=True)
        channel.bind("q", "behind")
        publish(channel, "q", b"1")
        running.delete_vhost("other")
        connection.wire.close()
    with closing(sqlite3.connect(tmp_path / "warren.db")) as db:
        named = "SELECT * FROM definitions WHERE key LIKE '%other%'"
        assert db.execute(named).fetchall() == []
        assert db.execute("SELECT * FROM entries").fetchall() == []
    with warren.Broker.in_thread(data_dir=str(tmp_path)) as running:
        running.add_vhost("other")
        connection = Connection.open(running.url, vhost="other")
        with pytest.raises(Closed, match="no exchange 'ex'"):
            connection.channel().declare_exchange("ex", passive=True)
        connection.close()


def test_an_exclusive_queue_does_not_survive(broker: BrokerProcess, kill: Restart) -> None:
    open_channel(broker).declare("q", durable=True, exclusive=True)
    kill()
    assert not exists(broker, "queue", "q")


def test_priorities_survive(broker: BrokerProcess, restart: Restart) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True, arguments={"x-max-priority": 9})
    for number, priority in enumerate([1, 9, 1, 3, 9]):
        publish(channel, "q", b"%d" % number, priority=priority)
    restart()
    assert bodies(open_channel(broker), "q") == [b"1", b"4", b"3", b"0", b"2"]


def test_limits_hold_after_a_restart(broker: BrokerProcess, restart: Restart) -> None:
    channel = open_channel(broker)
    channel.declare("long", durable=True, arguments={"x-max-length": 3})
    channel.declare("large", durable=True, arguments={"x-max-length-bytes": 30})
    for queue in ("long", "large"):
        publish(channel, queue, b"a" * 10, b"b" * 10, b"c" * 10)
    restart()
    channel = open_channel(broker)
    for queue in ("long", "large"):
        publish(channel, queue, b"d" * 10)
        assert [body[:1] for body in bodies(channel, queue)] == [b"b", b"c", b"d"]


# -- redelivered ---------------------------------------------------------------------------------
def test_what_a_client_held_comes_back_in_order_and_flagged(
    broker: BrokerProcess, restart: Restart
) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", *(b"%d" % number for number in range(6)))
    channel.qos(4)
    channel.consume("q")
    tags = [channel.delivery().tag for _ in range(4)]
    channel.ack(tags[1])
    assert channel.delivery().body == b"4"
    channel.nack(tags[2], requeue=True)
    assert channel.delivery().method.redelivered
    channel.sync()
    restart()
    seen = [(body, True) for body in (b"0", b"2", b"3", b"4")]
    assert flags(open_channel(broker), "q") == [*seen, (b"5", False)]


def test_a_backlog_that_was_seen_comes_back_flagged(broker: BrokerProcess, kill: Restart) -> None:
    """However fast the kill: what the client has seen, the store knows of."""
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", *(b"%d" % number for number in range(3000)))
    channel.qos(500)
    channel.consume("q")
    seen = [channel.delivery() for _ in range(500)]
    for message in seen[:400]:
        channel.ack(message.tag)
    seen += [channel.delivery() for _ in range(400)]
    kill()
    found = dict(flags(open_channel(broker), "q"))
    again = [message.body for message in seen if message.body in found]
    assert len(again) >= 500
    assert [body for body in again if not found[body]] == []
    assert not found[b"2999"]


def test_the_delivery_count_of_a_quorum_queue_survives(
    broker: BrokerProcess, restart: Restart
) -> None:
    channel = open_channel(broker)
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 4}
    channel.declare("q", durable=True, arguments=arguments)
    publish(channel, "q", b"1")
    for _ in range(3):
        message = get(channel, "q", no_ack=False)
        assert message is not None
        channel.nack(message.tag, requeue=True)
    channel.sync()
    restart()
    channel = open_channel(broker)
    message = get(channel, "q", no_ack=False)
    assert message is not None
    assert message.properties.headers["x-delivery-count"] == 3
    channel.nack(message.tag, requeue=True)
    message = get(channel, "q", no_ack=False)
    assert message is not None
    channel.nack(message.tag, requeue=True)
    assert get(channel, "q") is None


# -- time ----------------------------------------------------------------------------------------
def test_time_goes_on_while_the_broker_is_down(broker: BrokerProcess) -> None:
    channel = open_channel(broker)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.declare("dead", durable=True)
    channel.declare("own", durable=True, arguments=to_dead)
    channel.declare("queue's", durable=True, arguments={"x-message-ttl": 400, **to_dead})
    publish(channel, "own", b"short", expiration="300")
    publish(channel, "own", b"long", expiration="3600000")
    publish(channel, "queue's", b"short too")
    gone = time.monotonic() + 0.5
    broker.kill()
    eventually(lambda: time.monotonic() > gone)
    broker.start()
    channel = open_channel(broker)
    assert [channel.count("own"), channel.count("queue's")] == [1, 0]
    assert bodies(channel, "own") == [b"long"]
    dead = sorted(drain(channel, "dead"), key=lambda message: message.body)
    reasons = [message.properties.headers["x-death"][0]["reason"] for message in dead]
    assert [message.body for message in dead] == [b"short", b"short too"]
    assert reasons == ["expired", "expired"]


def test_what_expires_after_the_restart_needs_no_client(broker: BrokerProcess) -> None:
    channel = open_channel(broker)
    channel.declare("dead", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.declare("q", durable=True, arguments=arguments)
    publish(channel, "q", b"1", expiration="600")
    broker.kill()
    broker.start()
    with database(broker) as connection:
        count = "SELECT count(*) FROM entries WHERE expires_at = 0"
        eventually(lambda: connection.execute(count).fetchone() == (1,), every_s=0.05)


# -- the file ------------------------------------------------------------------------------------
def test_a_message_in_ten_queues_is_stored_once(broker: BrokerProcess, kill: Restart) -> None:
    channel = open_channel(broker)
    channel.declare_exchange("ex", "fanout", durable=True)
    queues = [f"q{number}" for number in range(10)]
    for queue in queues:
        channel.declare(queue, durable=True)
        channel.bind(queue, "ex")
    body = os.urandom(100_000)
    publish(channel, "", body, exchange="ex")
    eventually(lambda: rows(broker, "shared") == 1)
    with database(broker) as connection:
        assert connection.execute("SELECT entries, length(content) > 100000 FROM shared").fetchall()
        sizes = connection.execute("SELECT length(content) FROM entries").fetchall()
    assert sizes == [(None,)] * 10
    kill()
    channel = open_channel(broker)
    for queue in queues[:9]:
        assert bodies(channel, queue) == [body]
    channel.sync()
    eventually(lambda: (rows(broker, "shared"), rows(broker, "entries")) == (1, 1))
    kill()
    channel = open_channel(broker)
    assert bodies(channel, queues[9]) == [body]
    channel.sync()
    eventually(lambda: (rows(broker, "shared"), rows(broker, "entries")) == (0, 0))


def test_purge_delete_and_ack_leave_nothing(broker: BrokerProcess) -> None:
    channel = open_channel(broker)
    channel.declare_exchange("ex", "fanout", durable=True)
    for queue in ("purged", "deleted", "acked", "rejected"):
        channel.declare(queue, durable=True)
        channel.bind(queue, "ex")
        publish(channel, queue, *[b"x"] * 50)
    publish(channel, "", *[b"y"] * 50, exchange="ex")
    eventually(lambda: rows(broker, "entries") == 400)
    held = [get(channel, queue, no_ack=False) for queue in ("purged", "deleted")]
    channel.call(spec.Queue.Purge(queue="purged"))
    channel.call(spec.Queue.Delete(queue="deleted"))
    channel.ack(held[0].tag)  # type: ignore[union-attr]
    channel.ack(held[1].tag)  # type: ignore[union-attr]
    for _ in range(100):
        channel.ack(get(channel, "acked", no_ack=False).tag)  # type: ignore[union-attr]
        channel.reject(get(channel, "rejected", no_ack=False).tag, requeue=False)  # type: ignore[union-attr]
    channel.sync()
    eventually(lambda: (rows(broker, "entries"), rows(broker, "shared")) == (0, 0))


def test_a_message_held_from_a_deleted_queue_does_not_take_others_along(
    broker: BrokerProcess, kill: Restart
) -> None:
    channel = open_channel(broker)
    channel.declare_exchange("ex", "fanout", durable=True)
    for queue in ("deleted", "kept"):
        channel.declare(queue, durable=True)
        channel.bind(queue, "ex")
    publish(channel, "", b"shared", exchange="ex")
    held = get(channel, "deleted", no_ack=False)
    channel.call(spec.Queue.Delete(queue="deleted"))
    channel.ack(held.tag)  # type: ignore[union-attr]
    channel.sync()
    kill()
    assert bodies(open_channel(broker), "kept") == [b"shared"]


def test_a_copy_made_by_sqlite_while_the_broker_runs_can_be_started_from(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", b"before")
    (tmp_path / "copy").mkdir()
    with database(broker) as live, closing(sqlite3.connect(tmp_path / "copy/warren.db")) as copy:
        live.backup(copy)
    publish(channel, "q", b"after")
    with broker_process(tmp_path / "copy") as restored:
        assert bodies(open_channel(restored), "q") == [b"before"]


# -- only after the sync -------------------------------------------------------------------------
@pytest.mark.parametrize("round_", range(5))
def test_what_was_said_is_true_right_after_it_was_said(
    broker: BrokerProcess, kill: Restart, round_: int
) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    channel.declare("old", durable=True)
    publish(channel, "old", b"to be acknowledged")
    channel.call(spec.Tx.Select())
    held = get(channel, "old", no_ack=False)
    for number in range(200):
        channel.publish("q", b"%d" % number, delivery_mode=PERSISTENT)
    channel.ack(held.tag)  # type: ignore[union-attr]
    channel.call(spec.Tx.Commit())
    channel.declare(f"declared-{round_}", durable=True)
    kill()
    channel = open_channel(broker)
    assert exists(broker, "queue", f"declared-{round_}")
    assert len(bodies(channel, "q")) == 200
    assert bodies(channel, "old") == []


def test_an_ack_is_safe_when_the_next_answer_comes(broker: BrokerProcess, kill: Restart) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", *(b"%d" % number for number in range(500)))
    channel.consume("q")
    for _ in range(450):
        channel.ack(channel.delivery().tag)
    channel.close()
    kill()
    assert len(drain(open_channel(broker), "q")) == 50


def test_a_confirm_comes_although_the_message_was_acknowledged_before_it_was_written(
    broker: BrokerProcess,
) -> None:
    """Nothing is left to write then: the confirm must not wait for a batch that never comes."""
    channel, consumer = open_channel(broker), open_channel(broker)
    channel.declare("q", durable=True)
    consumer.consume("q")
    channel.confirm()
    for _ in range(300):
        channel.publish("q", b"x", delivery_mode=PERSISTENT)
        consumer.ack(consumer.delivery().tag)
    channel.wait_confirms(300)


# -- errors --------------------------------------------------------------------------------------
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with broker_process(folder) as broker:
        channel = open_channel(broker)
        channel.declare("q", durable=True)
        publish(channel, "q", *[bytes(500)] * 500)
        broker.stop()
    size = broker.file.stat().st_size
    with open(broker.file, "r+b") as handle:
        handle.seek(size // 4)
        handle.write(b"damage" * (size // 8))
    before = broker.file.read_bytes()
    assert run_refused(folder).startswith(f"{broker.file} is damaged or not a warren store (")
    assert broker.file.read_bytes() == before


def test_a_second_broker_on_the_same_folder_is_refused(broker: BrokerProcess) -> None:
    assert run_refused(broker.folder) == (
        f"the data folder {broker.folder} is in use by process {broker.pid}; stop it, or give "
        "this broker a folder of its own"
    )
    assert exists(broker, "exchange", "amq.direct")


def test_a_folder_that_can_not_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"not a folder")
    assert run_refused(tmp_path / "file") == (
        f"the data folder {tmp_path}/file can't be used: File exists"
    )


def test_a_definition_that_makes_no_sense_is_refused(broker: BrokerProcess) -> None:
    open_channel(broker).declare("q", durable=True)
    broker.stop()
    with closing(sqlite3.connect(broker.file)) as connection:
        connection.execute("UPDATE definitions SET value='{}' WHERE kind='queue'")
        connection.commit()
    assert "a definition can't be read: KeyError 'arguments'" in run_refused(broker.folder)


# -- a full disk ---------------------------------------------------------------------------------
def limit_files(broker: BrokerProcess, size: int) -> None:
    hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_a_disk_that_takes_nothing_blocks_publishers_and_loses_nothing(
    broker: BrokerProcess, kill: Restart
) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", b"before")
    limit_files(broker, 100_000)
    channel.confirm()
    channel.publish("q", bytes(200_000), delivery_mode=PERSISTENT)
    eventually(lambda: "nothing can be written" in broker.log.read_text())
    channel.publish("q", b"blocked", delivery_mode=PERSISTENT)
    blocked = channel.connection.expect(spec.Connection.Blocked)
    assert blocked.reason == "low on disk"
    assert channel.quiet()  # nothing is confirmed

    limit_files(broker, -1)
    channel.connection.expect(spec.Connection.Unblocked)
    assert channel.wait_confirms(2) == {1: "ack", 2: "ack"}
    kill()
    assert [len(body) for body in bodies(open_channel(broker), "q")] == [6, 200_000, 7]


def test_what_was_not_confirmed_on_a_full_disk_may_be_lost_the_rest_is_not(
    broker: BrokerProcess, kill: Restart
) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", *(b"%d" % number for number in range(100)))
    limit_files(broker, 100_000)
    channel.publish("q", bytes(200_000), delivery_mode=PERSISTENT)
    eventually(lambda: "nothing can be written" in broker.log.read_text())
    kill()
    assert bodies(open_channel(broker), "q")[:100] == [b"%d" % number for number in range(100)]


def test_a_broker_whose_disk_is_full_can_be_stopped(broker: BrokerProcess) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    limit_files(broker, 100_000)
    channel.publish("q", bytes(200_000), delivery_mode=PERSISTENT)
    eventually(lambda: "nothing can be written" in broker.log.read_text())
    broker.stop()


def test_publishers_are_blocked_below_the_limit_of_free_space(tmp_path: Path) -> None:
    with broker_process(tmp_path / "data", "--disk-free-limit-bytes", str(1 << 60)) as broker:
        channel = open_channel(broker)
        channel.publish("nowhere", b"x")
        assert channel.connection.expect(spec.Connection.Blocked).reason == "low on disk"


def test_a_dead_letter_is_in_one_queue_or_the_other_whenever_the_broker_is_killed(
    broker: BrokerProcess, kill: Restart
) -> None:
    channel = open_channel(broker)
    channel.declare("letters", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
    channel.declare("work", durable=True, arguments=arguments)
    channel.confirm()
    for _ in range(3000):
        channel.publish("work", b"refused", delivery_mode=PERSISTENT)
    channel.wait_confirms(3000)
    channel.consume("work")
    channel.nack(channel.deliveries(3000)[-1].tag, multiple=True, requeue=False)
    eventually(lambda: open_channel(broker).count("letters") > 0)
    kill()
    channel = open_channel(broker)
    assert channel.count("work") + channel.count("letters") == 3000
