"""Queues that are declared without a name."""

from __future__ import annotations

import re

import pytest
from pika import spec

from tests.contract.queues.steps import DECLARE, drain, words
from tests.support.wire import Channel

SERVER_NAME = re.compile(r"amq\.gen-[A-Za-z0-9_-]{22}")


def test_the_broker_makes_a_name(channel: Channel) -> None:
    queue = channel.declare("", exclusive=True).queue
    assert SERVER_NAME.fullmatch(queue)
    channel.publish(queue, b"a")
    assert drain(channel, queue) == "a"


def test_every_declare_makes_another_queue(channel: Channel) -> None:
    names = {channel.declare("", exclusive=True).queue for _ in range(20)}
    assert len(names) == 20


def test_a_name_of_line_ends_only_is_no_name(channel: Channel) -> None:
    assert SERVER_NAME.fullmatch(channel.declare("\r\n", exclusive=True).queue)


def test_it_may_be_of_any_make(channel: Channel) -> None:
    queue = channel.declare("", durable=True, arguments={"x-max-length": 1}).queue
    assert SERVER_NAME.fullmatch(queue)
    channel.call(spec.Queue.Delete(queue=queue))


def test_it_can_be_declared_passively_by_its_name(channel: Channel) -> None:
    queue = channel.declare("", exclusive=True).queue
    assert channel.declare(queue, passive=True).queue == queue


def test_declaring_it_again_by_its_name_is_refused_even_to_its_owner(channel: Channel) -> None:
    queue = channel.declare("", exclusive=True).queue
    text = f"ACCESS_REFUSED - queue name '{queue}' contains reserved prefix 'amq.*'"
    refusal = channel.refused(spec.Queue.Declare(queue=queue, exclusive=True))
    assert words(refusal) == ("channel", 403, text, DECLARE)


def test_a_refusal_names_the_name_that_was_made(channel: Channel) -> None:
    refusal = channel.refused(spec.Queue.Declare(queue="", arguments={"x-max-length": -1}))
    made = SERVER_NAME.search(refusal.text)
    assert made is not None
    text = (
        f"PRECONDITION_FAILED - invalid arg 'x-max-length' for queue '{made[0]}' in vhost '/':"
        " {value_negative,-1}"
    )
    assert words(refusal) == ("channel", 406, text, DECLARE)


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_other_queue_types_must_be_named(channel: Channel, kind: str) -> None:
    refusal = channel.refused(
        spec.Queue.Declare(queue="", durable=True, arguments={"x-queue-type": kind})
    )
    text = f"PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_{kind}_queue"
    assert words(refusal) == ("channel", 406, text, DECLARE)
