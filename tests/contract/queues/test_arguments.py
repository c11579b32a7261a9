"""Queue arguments at declaration: what is accepted, what is refused and with which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.contract.queues.steps import DECLARE, QUORUM, STREAM, drain, fill, words
from tests.support.wire import Channel
from tests.support.wire_frames import Field

TEN_YEARS_MS = 315_360_000_000


def invalid(argument: str, queue: str, why: str) -> Any:
    text = f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{queue}' in vhost '/': {why}"
    return ("channel", 406, text, DECLARE)


@pytest.mark.parametrize(
    ("argument", "value", "why"),
    [
        ("x-expires", 0, "{value_zero,0}"),
        ("x-expires", -1, "{value_negative,-1}"),
        ("x-expires", TEN_YEARS_MS + 1, "{value_too_large,315360000001}"),
        ("x-message-ttl", -1, "{value_negative,-1}"),
        ("x-message-ttl", TEN_YEARS_MS + 1, "{value_too_large,315360000001}"),
        ("x-max-length", -1, "{value_negative,-1}"),
        ("x-max-length-bytes", -1, "{value_negative,-1}"),
        ("x-max-priority", -1, "{value_negative,-1}"),
        ("x-max-priority", 256, "{max_value_exceeded,256}"),
        ("x-overflow", "drop-tail", "invalid_overflow"),
        ("x-queue-mode", "fast", "\"unsupported queue mode 'fast'\""),
        ("x-queue-type", "odd", "\"unsupported queue type 'odd'\""),
        ("x-queue-version", 3, "\"unsupported queue version '3'\""),
        ("x-queue-version", -1, "{value_negative,-1}"),
        ("x-dead-letter-routing-key", "key", "routing_key_but_no_dlx_defined"),
    ],
)
def test_a_value_out_of_bounds_is_refused(
    channel: Channel, name: Callable[[str], str], argument: str, value: Any, why: str
) -> None:
    queue = name("queue")
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments={argument: value}))
    assert words(refusal) == invalid(argument, queue, why)


@pytest.mark.parametrize(
    "argument",
    [
        "x-expires",
        "x-message-ttl",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-priority",
        "x-queue-version",
    ],
)
def test_a_number_must_not_be_a_string(
    channel: Channel, name: Callable[[str], str], argument: str
) -> None:
    queue = name("queue")
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments={argument: "10"}))
    assert words(refusal) == invalid(argument, queue, '"expected integer, got longstr"')


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Field("d", 100.0), "double"),
        (Field("f", 100.0), "float"),
        (True, "bool"),
        (None, "void"),
        (b"100", "binary"),
        (Field("T", 100), "timestamp"),
        ([100], "array"),
        ({}, "table"),
    ],
)
def test_a_number_must_be_an_integer(
    channel: Channel, name: Callable[[str], str], value: Any, kind: str
) -> None:
    queue = name("queue")
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments={"x-max-length": value}))
    assert words(refusal) == invalid("x-max-length", queue, f'"expected integer, got {kind}"')


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("x-overflow", 1, "signedint"),
        ("x-queue-mode", 1, "signedint"),
        ("x-queue-type", 1, "signedint"),
        ("x-queue-type", b"classic", "binary"),
        ("x-dead-letter-routing-key", 1, "signedint"),
        ("x-single-active-consumer", 1, "signedint"),
        ("x-single-active-consumer", "true", "longstr"),
    ],
)
def test_strings_and_booleans_must_be_just_that(
    channel: Channel, name: Callable[[str], str], argument: str, value: Any, kind: str
) -> None:
    queue = name("queue")
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments={argument: value}))
    assert words(refusal) == invalid(argument, queue, f"{{unacceptable_type,{kind}}}")


@pytest.mark.parametrize(("value", "kind"), [(1, "signedint"), (True, "bool"), (b"x", "binary")])
def test_a_dead_letter_exchange_must_be_a_string(
    channel: Channel, name: Callable[[str], str], value: Any, kind: str
) -> None:
    queue = name("queue")
    refusal = channel.refused(
        spec.Queue.Declare(queue=queue, arguments={"x-dead-letter-exchange": value})
    )
    text = (
        f"PRECONDITION_FAILED - invalid type '{kind}' for arg 'x-dead-letter-exchange' in"
        f" queue '{queue}' in vhost '/'"
    )
    assert words(refusal) == ("channel", 406, text, DECLARE)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-expires": TEN_YEARS_MS},
        {"x-message-ttl": TEN_YEARS_MS},
        {"x-max-length": 0},
        {"x-max-length-bytes": 0},
        {"x-max-priority": 0},
        {"x-max-priority": 255},
        {"x-overflow": "drop-head"},
        {"x-overflow": "reject-publish"},
        {"x-overflow": "reject-publish-dlx"},
        {"x-queue-mode": "lazy"},
        {"x-queue-mode": "default"},
        {"x-queue-version": 1},
        {"x-queue-version": 2},
        {"x-dead-letter-exchange": ""},
        {"x-dead-letter-exchange": "no such exchange"},
        {"x-single-active-consumer": False},
        {"x-queue-type": "classic"},
        {"x-queue-master-locator": "min-masters"},
        {"x-ha-policy": "all"},
        {"x-ha-policy": "nodes", "x-ha-nodes": ["rabbit@one", "rabbit@two"]},
        {"x-anything": {"is": ["fine", None, True]}},
    ],
)
def test_accepted(channel: Channel, queue_with: Callable[..., str], arguments: Any) -> None:
    queue = queue_with(arguments)
    assert channel.declare(queue, arguments=arguments).queue == queue


@pytest.mark.parametrize("kind", "bBsuIilL")
def test_an_integer_of_any_width_does(
    channel: Channel, queue_with: Callable[..., str], kind: str
) -> None:
    queue = queue_with({"x-max-length": Field(kind, 2)})
    fill(channel, queue, "abc")
    assert drain(channel, queue) == "bc"


CLASSIC_ONLY = ["x-max-priority", "x-queue-mode", "x-queue-version", "x-queue-master-locator"]
QUORUM_ONLY = [
    "x-delivery-limit",
    "x-dead-letter-strategy",
    "x-quorum-initial-group-size",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
]
STREAM_ONLY = ["x-max-age", "x-stream-max-segment-size-bytes", "x-initial-cluster-size"]
NOT_STREAM = [
    "x-expires",
    "x-message-ttl",
    "x-max-length",
    "x-overflow",
    "x-dead-letter-routing-key",
    "x-single-active-consumer",
]


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        *[("classic", a) for a in [*QUORUM_ONLY, *STREAM_ONLY, "x-queue-leader-locator"]],
        *[("quorum", a) for a in [*CLASSIC_ONLY, *STREAM_ONLY]],
        *[("stream", a) for a in [*CLASSIC_ONLY, *QUORUM_ONLY, *NOT_STREAM]],
    ],
)
def test_an_argument_of_another_queue_type_is_refused_whatever_its_value(
    channel: Channel, name: Callable[[str], str], kind: str, argument: str
) -> None:
    queue = name("queue")
    arguments = {"x-queue-type": kind, argument: "any"}
    refusal = channel.refused(spec.Queue.Declare(queue=queue, durable=True, arguments=arguments))
    text = (
        f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{queue}' in vhost '/'"
        f" of queue type rabbit_{kind}_queue"
    )
    assert words(refusal) == ("channel", 406, text, DECLARE)


@pytest.mark.parametrize(
    ("kind", "argument", "value", "why"),
    [
        (QUORUM, "x-message-ttl", -5, "{value_negative,-5}"),
        (QUORUM, "x-dead-letter-strategy", "hope", "invalid_dlx_strategy"),
        (QUORUM, "x-dead-letter-strategy", 5, "{unacceptable_type,signedint}"),
        (QUORUM, "x-quorum-initial-group-size", 0, "{value_zero,0}"),
        (QUORUM, "x-queue-leader-locator", "here", "invalid_queue_locator_arg"),
        (QUORUM, "x-queue-leader-locator", 5, "{unacceptable_type,signedint}"),
        (STREAM, "x-max-length-bytes", -5, "{value_negative,-5}"),
        (STREAM, "x-max-age", "1x", "invalid_max_age"),
        (STREAM, "x-max-age", "0s", "invalid_max_age"),
        (STREAM, "x-max-age", 5, "{unacceptable_type,signedint}"),
        (STREAM, "x-initial-cluster-size", 0, "{value_zero,0}"),
    ],
)
def test_a_value_out_of_bounds_is_refused_on_other_queue_types(
    channel: Channel,
    name: Callable[[str], str],
    kind: dict[str, str],
    argument: str,
    value: Any,
    why: str,
) -> None:
    queue = name("queue")
    arguments = {**kind, argument: value}
    refusal = channel.refused(spec.Queue.Declare(queue=queue, durable=True, arguments=arguments))
    assert words(refusal) == invalid(argument, queue, why)


def test_of_several_bad_values_the_first_in_order_is_told(
    channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("queue")
    arguments = {"x-max-age": "1D", "x-max-length": -1, "x-message-ttl": -2, "x-expires": 0}
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments=arguments))
    assert words(refusal) == invalid("x-expires", queue, "{value_zero,0}")


def test_the_queue_type_is_judged_before_all_else(
    channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("queue")
    arguments = {"x-expires": 0, "x-queue-type": "odd"}
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments=arguments))
    assert words(refusal) == invalid("x-queue-type", queue, "\"unsupported queue type 'odd'\"")


def test_a_refused_queue_is_not_there(channel: Channel, name: Callable[[str], str]) -> None:
    queue = name("queue")
    channel.refused(spec.Queue.Declare(queue=queue, arguments={"x-expires": 0}))
    again = channel.connection.channel()
    assert again.refused(spec.Queue.Declare(queue=queue, passive=True)).code == 404
