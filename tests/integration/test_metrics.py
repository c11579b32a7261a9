"""What Prometheus sees after some work."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from typing import Any

import pika
import pytest

import warren


@pytest.fixture
def broker() -> Iterator[warren.Broker]:
    with warren.Broker.in_thread(management_port=0) as broker:
        yield broker


@pytest.fixture
def channel(broker: warren.Broker) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    yield connection.channel()
    connection.close()


def scrape(broker: warren.Broker, path: str = "/metrics") -> dict[str, float]:
    with urllib.request.urlopen(broker.management_url + path, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_sums_objects_and_families_tell_the_same(broker: warren.Broker, channel: Any) -> None:
    for name, count in (("orders", 3), ("invoices", 2)):
        channel.queue_declare(name)
        for _ in range(count):
            channel.basic_publish("", name, b"12345")
    channel.basic_get("orders")
    assert scrape(broker)["rabbitmq_queue_messages_ready"] == 4
    found = scrape(broker, "/metrics/per-object")
    assert found['rabbitmq_queue_messages_ready{vhost="/",queue="orders"}'] == 2
    assert found['rabbitmq_queue_messages_bytes{vhost="/",queue="invoices"}'] == 10
    found = scrape(broker, "/metrics/detailed?family=queue_coarse_metrics")
    assert found['rabbitmq_detailed_queue_messages_unacked{vhost="/",queue="orders"}'] == 1
    assert found['rabbitmq_detailed_queue_messages{vhost="/",queue="invoices"}'] == 2
    assert not any("queue_consumers" in name for name in found)


def test_families_are_of_the_virtual_hosts_that_are_asked_for(
    broker: warren.Broker, channel: Any
) -> None:
    channel.queue_declare("here")
    broker.add_vhost("other")
    asked = "/metrics/detailed?family=queue_coarse_metrics&family=vhost_status"
    assert any('vhost="/"' in name for name in scrape(broker, asked))
    found = scrape(broker, asked + "&vhost=other")
    assert found['rabbitmq_cluster_vhost_status{vhost="other"}'] == 1
    assert not any('vhost="/"' in name for name in found)


def test_exchanges_and_their_bindings_are_counted(broker: warren.Broker, channel: Any) -> None:
    channel.exchange_declare("events", "topic")
    channel.queue_declare("all")
    for key in ("a", "b.#"):
        channel.queue_bind("all", "events", key)
    found = scrape(broker, "/metrics/detailed?family=exchange_bindings&family=exchange_names")
    labels = '{vhost="/",exchange="events",type="topic"}'
    assert found[f"rabbitmq_cluster_exchange_bindings{labels}"] == 2
    assert found[f"rabbitmq_cluster_exchange_name{labels}"] == 1


def test_dead_letters_are_counted_by_reason(broker: warren.Broker, channel: Any) -> None:
    channel.queue_declare("to", arguments={"x-dead-letter-exchange": "amq.fanout"})
    channel.queue_declare("none", arguments={"x-max-length": 1})
    for name in ("to", "none", "none"):
        channel.basic_publish("", name, b"")
    channel.basic_reject(channel.basic_get("to")[0].delivery_tag, requeue=False)
    channel.queue_declare("to", passive=True)  # the reject has been read
    found = scrape(broker)

    def count(reason: str, strategy: str) -> float:
        labels = f'queue_type="rabbit_classic_queue",dead_letter_strategy="{strategy}"'
        return found[f"rabbitmq_global_messages_dead_lettered_{reason}_total{{{labels}}}"]

    assert (count("rejected", "at_most_once"), count("rejected", "disabled")) == (1, 0)
    assert (count("maxlen", "at_most_once"), count("maxlen", "disabled")) == (0, 1)


def test_counters_do_not_shrink_when_a_virtual_host_goes(broker: warren.Broker) -> None:
    name = 'rabbitmq_global_messages_received_total{protocol="amqp091"}'
    for number in range(1, 4):
        broker.add_vhost("brief")
        connection = pika.BlockingConnection(pika.URLParameters(broker.url + "brief"))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("orders")
        channel.basic_publish("", "orders", b"")
        assert scrape(broker)[name] == number
        connection.close()
        broker.delete_vhost("brief")
        assert scrape(broker)[name] == number
