"""What a broker with a data folder still has after a restart and after kill -9."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from pika import spec

import warren
from tests.integration.durability.steps import (
    PERSISTENT,
    Restart,
    bodies,
    database,
    drain,
    exists,
    flags,
    get,
    open_channel,
    publish,
)
from tests.support.eventually import eventually
from tests.support.process import BrokerProcess
from tests.support.wire import Closed, Connection


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
