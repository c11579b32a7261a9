"""queue.bind and queue.unbind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import amqp_object, spec

from tests.contract.queues.steps import BIND, UNBIND, drain, fill, no_queue, words
from tests.support.wire import Channel


def unbind(channel: Channel, queue: str, exchange: str, key: str, arguments: object = None) -> None:
    channel.call(
        spec.Queue.Unbind(queue=queue, exchange=exchange, routing_key=key, arguments=arguments)
    )


def test_a_bound_queue_gets_messages_and_an_unbound_one_does_not(
    channel: Channel, queue: str
) -> None:
    channel.bind(queue, "amq.direct", queue)
    channel.publish(queue, b"a", exchange="amq.direct")
    assert drain(channel, queue) == "a"
    unbind(channel, queue, "amq.direct", queue)
    channel.publish(queue, b"b", exchange="amq.direct")
    assert drain(channel, queue) == ""


def test_binding_twice_is_binding_once(channel: Channel, queue: str) -> None:
    channel.bind(queue, "amq.direct", queue)
    channel.bind(queue, "amq.direct", queue)
    channel.publish(queue, b"a", exchange="amq.direct")
    assert drain(channel, queue) == "a"
    unbind(channel, queue, "amq.direct", queue)
    channel.publish(queue, b"b", exchange="amq.direct")
    assert drain(channel, queue) == ""


def test_bindings_that_differ_in_arguments_are_two_and_a_message_comes_once(
    channel: Channel, queue: str
) -> None:
    channel.bind(queue, "amq.direct", queue, {"number": 1})
    channel.bind(queue, "amq.direct", queue, {"number": 2})
    channel.publish(queue, b"a", exchange="amq.direct")
    assert drain(channel, queue) == "a"
    unbind(channel, queue, "amq.direct", queue, {"number": 1})
    channel.publish(queue, b"b", exchange="amq.direct")
    assert drain(channel, queue) == "b"
    unbind(channel, queue, "amq.direct", queue, {"number": 2})
    channel.publish(queue, b"c", exchange="amq.direct")
    assert drain(channel, queue) == ""


def test_an_unbind_with_other_arguments_leaves_the_binding(channel: Channel, queue: str) -> None:
    channel.bind(queue, "amq.direct", queue, {"number": 1})
    unbind(channel, queue, "amq.direct", queue)
    channel.publish(queue, b"a", exchange="amq.direct")
    assert drain(channel, queue) == "a"


def test_every_queue_is_bound_to_the_default_exchange_by_its_name(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "a")
    assert drain(channel, queue) == "a"


@pytest.mark.parametrize(
    ("method", "ids"),
    [(spec.Queue.Bind, BIND), (spec.Queue.Unbind, UNBIND)],
    ids=["bind", "unbind"],
)
def test_the_default_exchange_takes_no_bindings(
    channel: Channel, queue: str, method: type[amqp_object.Method], ids: tuple[int, int]
) -> None:
    text = "ACCESS_REFUSED - operation not permitted on the default exchange"
    refusal = channel.refused(method(queue=queue, exchange="", routing_key=queue))
    assert words(refusal) == ("channel", 403, text, ids)


def test_binding_no_queue_is_refused(channel: Channel) -> None:
    refusal = channel.refused(spec.Queue.Bind(queue="none", exchange="amq.direct"))
    assert words(refusal) == ("channel", 404, no_queue("none"), BIND)


def test_binding_to_no_exchange_is_refused(channel: Channel, queue: str) -> None:
    refusal = channel.refused(spec.Queue.Bind(queue=queue, exchange="none"))
    text = "NOT_FOUND - no exchange 'none' in vhost '/'"
    assert words(refusal) == ("channel", 404, text, BIND)


def test_with_neither_queue_nor_exchange_there_the_exchange_is_named(channel: Channel) -> None:
    refusal = channel.refused(spec.Queue.Bind(queue="no-queue", exchange="no-exchange"))
    assert refusal.text == "NOT_FOUND - no exchange 'no-exchange' in vhost '/'"


@pytest.mark.parametrize("missing", ["binding", "queue", "exchange"])
def test_unbinding_what_is_not_bound_is_fine(channel: Channel, queue: str, missing: str) -> None:
    unbind(
        channel,
        "none" if missing == "queue" else queue,
        "none" if missing == "exchange" else "amq.direct",
        "no such key",
    )
    channel.sync()


def test_no_wait_means_no_answer(channel: Channel, queue: str) -> None:
    options = {"queue": queue, "exchange": "amq.direct", "routing_key": queue}
    channel.send(spec.Queue.Bind(**options, nowait=True))
    channel.publish(queue, b"a", exchange="amq.direct")
    assert drain(channel, queue) == "a"
    assert not channel.inbox


def test_a_queue_may_be_bound_many_times_over(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange, "topic")
    for key in ("a.*", "a.b", "#", "*.b"):
        channel.bind(queue, exchange, key)
    channel.publish("a.b", b"a", exchange=exchange)
    assert drain(channel, queue) == "a"
