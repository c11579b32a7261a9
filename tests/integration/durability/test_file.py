"""What lies in the data folder, when, and what is refused to be opened."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pika import spec

from tests.integration.durability.steps import (
    PERSISTENT,
    Restart,
    bodies,
    database,
    drain,
    exists,
    get,
    open_channel,
    publish,
    rows,
)
from tests.support.eventually import eventually
from tests.support.process import BrokerProcess, broker_process, run_refused


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
