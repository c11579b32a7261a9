"""Declaring a queue that exists: what must be the same, and the words when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.contract.queues.steps import DECLARE, QUORUM, STREAM, fill, locked, words
from tests.support.wire import Channel, Connection
from tests.support.wire_frames import Field

Queue = Callable[..., str]


def inequivalent(queue: str, argument: str, received: str, current: str) -> Any:
    text = (
        f"PRECONDITION_FAILED - inequivalent arg '{argument}' for queue '{queue}' in vhost '/':"
        f" received {received} but current is {current}"
    )
    return ("channel", 406, text, DECLARE)


@pytest.mark.parametrize("option", ["durable", "auto_delete"])
@pytest.mark.parametrize("current", [False, True])
def test_an_option_must_be_the_same(
    channel: Channel, queue_with: Queue, option: str, current: bool
) -> None:
    queue = queue_with(**{option: current})
    refusal = channel.refused(spec.Queue.Declare(queue=queue, **{option: not current}))
    received, now = f"'{not current}'".lower(), f"'{current}'".lower()
    assert words(refusal) == inequivalent(queue, option, received, now)


@pytest.mark.parametrize("current", [False, True])
def test_exclusive_must_be_the_same(channel: Channel, queue_with: Queue, current: bool) -> None:
    queue = queue_with(exclusive=current)
    refusal = channel.refused(spec.Queue.Declare(queue=queue, exclusive=not current))
    assert words(refusal) == ("channel", 405, locked(queue), DECLARE)


@pytest.mark.parametrize("current", [False, True])
def test_durable_means_nothing_for_an_exclusive_queue(
    channel: Channel, queue_with: Queue, current: bool
) -> None:
    queue = queue_with(exclusive=True, durable=current)
    assert channel.declare(queue, exclusive=True, durable=not current).queue == queue


def test_of_several_differences_the_first_in_order_is_told(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-message-ttl": 9000, "x-expires": 9000}, auto_delete=True)
    redeclare = spec.Queue.Declare(queue=queue, durable=True, arguments={"x-max-length": 1})
    assert words(channel.refused(redeclare)) == inequivalent(queue, "durable", "'true'", "'false'")

    redeclare.durable = False
    again = channel.connection.channel()
    wanted = inequivalent(queue, "auto_delete", "'false'", "'true'")
    assert words(again.refused(redeclare)) == wanted

    redeclare.auto_delete = True
    again = channel.connection.channel()
    wanted = inequivalent(queue, "x-expires", "none", "the value '9000' of type 'signedint'")
    assert words(again.refused(redeclare)) == wanted


@pytest.mark.parametrize(
    ("argument", "current", "other"),
    [
        ("x-max-length", 1, 2),
        ("x-max-length-bytes", 1, 2),
        ("x-expires", 60000, 70000),
        ("x-expires", 60000, 0),  # what a new queue would be refused for is only compared
        ("x-message-ttl", 0, 1),
        ("x-max-priority", 5, 6),
        ("x-queue-version", 1, 2),
        ("x-dead-letter-exchange", "one", "two"),
        ("x-overflow", "drop-head", "reject-publish"),
        ("x-queue-mode", "default", "lazy"),
        ("x-single-active-consumer", True, False),
        ("x-queue-master-locator", "client-local", "min-masters"),
    ],
)
def test_an_argument_must_have_the_same_value(
    channel: Channel, queue_with: Queue, argument: str, current: Any, other: Any
) -> None:
    queue = queue_with({argument: current})
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments={argument: other}))
    received, now = (str(v).lower() if isinstance(v, bool) else v for v in (other, current))
    assert words(refusal) == inequivalent(queue, argument, f"'{received}'", f"'{now}'")


@pytest.mark.parametrize(
    ("argument", "value", "shown"),
    [
        ("x-max-length", 1, "the value '1' of type 'signedint'"),
        ("x-max-length", Field("b", 1), "the value '1' of type 'byte'"),
        ("x-max-length", Field("B", 1), "the value '1' of type 'unsignedbyte'"),
        ("x-max-length", Field("s", 1), "the value '1' of type 'short'"),
        ("x-max-length", Field("u", 1), "the value '1' of type 'unsignedshort'"),
        ("x-max-length", Field("i", 1), "the value '1' of type 'unsignedint'"),
        ("x-max-length", Field("l", 1), "the value '1' of type 'long'"),
        ("x-max-length", Field("L", 1), "the value '1' of type 'long'"),
        ("x-dead-letter-exchange", "dead", "the value 'dead' of type 'longstr'"),
        ("x-single-active-consumer", True, "the value 'true' of type 'bool'"),
        ("x-single-active-consumer", False, "the value 'false' of type 'bool'"),
        ("x-overflow", "drop-head", "the value 'drop-head' of type 'longstr'"),
    ],
)
def test_an_argument_can_be_neither_added_nor_left_out(
    channel: Channel, queue_with: Queue, argument: str, value: Any, shown: str
) -> None:
    queue = queue_with({argument: value})
    refusal = channel.refused(spec.Queue.Declare(queue=queue))
    assert words(refusal) == inequivalent(queue, argument, "none", shown)

    channel = channel.connection.channel()
    plain = channel.declare(queue + "-plain", exclusive=True).queue
    refusal = channel.refused(
        spec.Queue.Declare(queue=plain, exclusive=True, arguments={argument: value})
    )
    assert words(refusal) == inequivalent(plain, argument, shown, "none")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Field("d", 1.5), "the value '1.5' of type 'double'"),
        (Field("f", 1.5), "the value '1.5' of type 'float'"),
        (Field("T", 15), "the value '15' of type 'timestamp'"),
        (b"abc", "the value 'abc' of type 'binary'"),
        (None, "the value 'undefined' of type 'void'"),
        ([1, "a"], "the value '[{signedint,1},{longstr,<<\"a\">>}]' of type 'array'"),
        ({"a": 1}, "the value '[{<<\"a\">>,signedint,1}]' of type 'table'"),
    ],
)
def test_a_value_of_any_type_is_shown_in_the_refusal(
    channel: Channel, queue: str, value: Any, shown: str
) -> None:
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments={"x-expires": value}))
    assert words(refusal) == inequivalent(queue, "x-expires", shown, "none")


@pytest.mark.parametrize("current", "bBsuIilL")
def test_integers_of_any_width_are_equal(channel: Channel, queue_with: Queue, current: str) -> None:
    queue = queue_with({"x-max-length": Field(current, 7)})
    for other in "bBsuIilL":
        assert channel.declare(queue, arguments={"x-max-length": Field(other, 7)}).queue == queue


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        (Field("d", 1.0), "'1.0'"),
        (Field("f", 1.0), "'1.0'"),
        (Field("d", 1.5), "'1.5'"),
        ("1", "'1'"),
        (True, "'true'"),
        (None, "none"),
    ],
)
def test_an_integer_is_not_equal_to_another_type(
    channel: Channel, queue_with: Queue, other: Any, shown: str
) -> None:
    queue = queue_with({"x-max-length": 1})
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments={"x-max-length": other}))
    assert words(refusal) == inequivalent(queue, "x-max-length", shown, "'1'")


def test_a_binary_is_equal_to_a_string_of_the_same_bytes(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-dead-letter-exchange": "dead"})
    assert channel.declare(queue, arguments={"x-dead-letter-exchange": b"dead"}).queue == queue


@pytest.mark.parametrize("current", [None, {"x-queue-type": "classic"}])
@pytest.mark.parametrize("other", [None, {"x-queue-type": "classic"}])
def test_no_queue_type_is_the_classic_one(
    channel: Channel, queue_with: Queue, current: Any, other: Any
) -> None:
    queue = queue_with(current)
    assert channel.declare(queue, arguments=other).queue == queue


@pytest.mark.parametrize(
    ("current", "other", "received", "now"),
    [
        (QUORUM, None, "none", "the value 'quorum' of type 'longstr'"),
        (None, QUORUM, "the value 'quorum' of type 'longstr'", "none"),
        (QUORUM, {"x-queue-type": "classic"}, "'classic'", "'quorum'"),
        ({"x-queue-type": "classic"}, QUORUM, "'quorum'", "'classic'"),
        (STREAM, QUORUM, "'quorum'", "'stream'"),
        (None, {"x-queue-type": "odd"}, "the value 'odd' of type 'longstr'", "none"),
    ],
)
def test_the_queue_type_must_be_the_same(
    channel: Channel, queue_with: Queue, current: Any, other: Any, received: str, now: str
) -> None:
    queue = queue_with(current, durable=True)
    refusal = channel.refused(spec.Queue.Declare(queue=queue, durable=True, arguments=other))
    assert words(refusal) == inequivalent(queue, "x-queue-type", received, now)


@pytest.mark.parametrize(
    "argument", ["x-anything", "x-ha-policy", "x-delivery-limit", "x-max-age", "alternate-exchange"]
)
def test_an_argument_the_queue_type_does_not_know_is_not_compared(
    channel: Channel, queue: str, argument: str
) -> None:
    assert channel.declare(queue, arguments={argument: "any"}).queue == queue


@pytest.mark.parametrize(
    ("kind", "argument", "current", "other"),
    [
        (QUORUM, "x-delivery-limit", 3, 4),
        (QUORUM, "x-dead-letter-strategy", "at-most-once", "at-least-once"),
        (STREAM, "x-max-age", "1D", "2D"),
    ],
)
def test_arguments_of_other_queue_types_are_compared_on_those(
    channel: Channel,
    queue_with: Queue,
    kind: dict[str, str],
    argument: str,
    current: Any,
    other: Any,
) -> None:
    queue = queue_with({**kind, argument: current}, durable=True)
    redeclare = spec.Queue.Declare(queue=queue, durable=True, arguments={**kind, argument: other})
    wanted = inequivalent(queue, argument, f"'{other}'", f"'{current}'")
    assert words(channel.refused(redeclare)) == wanted


def test_a_refused_declare_changes_nothing(
    channel: Channel, queue_with: Queue, connect: Callable[..., Connection]
) -> None:
    queue = queue_with({"x-max-length": 3})
    channel.refused(spec.Queue.Declare(queue=queue, arguments={"x-max-length": 1}))
    again = connect().channel()
    fill(again, queue, "abcd")
    assert again.declare(queue, arguments={"x-max-length": 3}).message_count == 3
