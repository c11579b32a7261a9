"""Sender-selected distribution: more routing keys in the headers CC and BCC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.support.wire import Channel
from tests.support.wire_frames import Field


@pytest.fixture
def queues(channel: Channel, name: Callable) -> list[str]:
    return [channel.declare(name(f"queue-{number}")).queue for number in range(4)]


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_a_copy_goes_to_each_further_key(channel: Channel, queues: list[str], header: str) -> None:
    channel.publish(queues[0], b"hello", headers={header: queues[1:3]})
    assert [len(channel.drain(queue)) for queue in queues] == [1, 1, 1, 0]


def test_cc_and_bcc_add_up(channel: Channel, queues: list[str]) -> None:
    channel.publish(queues[0], b"hello", headers={"CC": [queues[1]], "BCC": [queues[2]]})
    assert [len(channel.drain(queue)) for queue in queues] == [1, 1, 1, 0]


def test_cc_is_delivered_and_bcc_is_not(channel: Channel, queues: list[str]) -> None:
    headers = {"before": 1, "CC": [queues[1]], "BCC": [queues[2]], "after": "x"}
    channel.publish(queues[0], b"hello", headers=headers, content_type="text/plain")
    for queue in queues[:3]:
        message = channel.get(queue)
        assert message is not None
        expected = {"before": 1, "CC": [queues[1]], "after": "x"}
        assert message.properties.headers == expected
        assert list(message.properties.headers) == ["before", "CC", "after"]
        assert message.properties.content_type == "text/plain"


def test_headers_with_nothing_but_bcc_become_empty(channel: Channel, queues: list[str]) -> None:
    channel.publish(queues[0], b"hello", headers={"BCC": [queues[1]]})
    message = channel.get(queues[1])
    assert message is not None
    assert message.properties.headers == {}


def test_every_copy_bears_the_first_routing_key(channel: Channel, queues: list[str]) -> None:
    channel.publish(queues[0], b"hello", headers={"CC": [queues[1]], "BCC": [queues[2]]})
    for queue in queues[:3]:
        message = channel.get(queue)
        assert message is not None
        assert message.method.routing_key == queues[0]


def test_a_queue_named_several_times_gets_one_copy(channel: Channel, queues: list[str]) -> None:
    headers = {"CC": [queues[0], queues[1], queues[1]], "BCC": [queues[1], queues[0]]}
    channel.publish(queues[0], b"hello", headers=headers)
    assert [len(channel.drain(queue)) for queue in queues] == [1, 1, 0, 0]


def test_the_first_key_may_lead_nowhere(channel: Channel, queues: list[str]) -> None:
    channel.publish("nowhere", b"hello", mandatory=True, headers={"CC": [queues[1]]})
    assert channel.drain(queues[1]) == [b"hello"]
    assert not channel.inbox


def test_a_mandatory_message_is_returned_when_all_keys_lead_nowhere_and_without_its_bcc(
    channel: Channel,
) -> None:
    headers = {"CC": ["nowhere-1"], "BCC": ["nowhere-2"]}
    channel.publish("nowhere", b"hello", mandatory=True, headers=headers)
    returned = channel.expect(spec.Basic.Return)
    assert returned.method.routing_key == "nowhere"
    assert returned.properties.headers == {"CC": ["nowhere-1"]}


@pytest.mark.parametrize("type", ["direct", "topic"])
def test_other_exchanges_route_by_the_further_keys_too(
    channel: Channel, queues: list[str], name: Callable, type: str
) -> None:
    exchange = name(type)
    channel.declare_exchange(exchange, type)
    channel.bind(queues[0], exchange, "further")
    channel.publish("first", b"hello", exchange=exchange, headers={"CC": ["further"]})
    assert channel.drain(queues[0]) == [b"hello"]


def test_further_keys_are_matched_against_patterns(
    channel: Channel, queues: list[str], name: Callable
) -> None:
    exchange = name("topic")
    channel.declare_exchange(exchange, "topic")
    channel.bind(queues[0], exchange, "a.*")
    channel.bind(queues[1], exchange, "b.#")
    channel.bind(queues[2], exchange, "c")
    channel.publish("a.1", b"hello", exchange=exchange, headers={"BCC": ["b.2.3", "d"]})
    assert [len(channel.drain(queue)) for queue in queues] == [1, 1, 0, 0]


def test_further_keys_hold_on_the_way_through_exchanges(
    channel: Channel, queues: list[str], name: Callable
) -> None:
    outer, inner = name("outer"), name("inner")
    channel.declare_exchange(outer, "fanout")
    channel.declare_exchange(inner, "direct")
    channel.bind_exchange(inner, outer)
    channel.bind(queues[0], inner, "further")
    channel.publish("first", b"hello", exchange=outer, headers={"CC": ["further"]})
    assert channel.drain(queues[0]) == [b"hello"]


def test_array_members_that_are_no_text_are_skipped(channel: Channel, queues: list[str]) -> None:
    headers = {"CC": [1, True, None, {}, [queues[2]], Field("x", queues[3].encode()), queues[1]]}
    channel.publish(queues[0], b"hello", headers=headers)
    assert [len(channel.drain(queue)) for queue in queues] == [1, 1, 0, 0]


@pytest.mark.parametrize("header", ["cc", "bcc", "Cc", "Bcc"])
def test_the_headers_are_written_in_capitals(
    channel: Channel, queues: list[str], header: str
) -> None:
    channel.publish(queues[0], b"hello", headers={header: [queues[1]]})
    message = channel.get(queues[0])
    assert message is not None
    assert message.properties.headers == {header: [queues[1]]}
    assert channel.drain(queues[1]) == []


def test_empty_arrays_change_nothing(channel: Channel, queues: list[str]) -> None:
    channel.publish(queues[0], b"hello", headers={"CC": [], "BCC": []})
    message = channel.get(queues[0])
    assert message is not None
    assert message.properties.headers == {"CC": []}


@pytest.mark.parametrize("header", ["CC", "BCC"])
@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("queue", "longstr"),
        (1, "signedint"),
        (Field("l", 1), "long"),
        (Field("b", 1), "byte"),
        (Field("B", 1), "unsignedbyte"),
        (Field("s", 1), "short"),
        (Field("u", 1), "unsignedshort"),
        (Field("i", 1), "unsignedint"),
        (Field("f", 1.0), "float"),
        (Field("d", 1.0), "double"),
        (Field("T", 1), "timestamp"),
        (Field("x", b"queue"), "binary"),
        (True, "bool"),
        ({}, "table"),
        (None, "void"),
    ],
)
def test_a_value_that_is_no_array_is_refused(
    channel: Channel, queues: list[str], header: str, value: Any, type: str
) -> None:
    channel.publish(queues[0], b"hello", headers={header: value})
    text = (
        f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{header}",{type}}}'
    )
    assert channel.expect_closed().args == ("channel", 406, text, 60, 40)
    assert channel.connection.channel().drain(queues[0]) == []


def test_of_two_wrong_headers_cc_is_named(channel: Channel) -> None:
    channel.publish("key", headers={"BCC": "x", "CC": 1})
    assert '"CC",signedint' in channel.expect_closed().text
