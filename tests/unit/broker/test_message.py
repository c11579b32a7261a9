from __future__ import annotations

import pika.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import spec

from tests.unit.broker.messages import ADDRESS, message
from warren.amqp.properties import encode_property
from warren.amqp.tables import Table, encode_value
from warren.broker.message import PLAIN, Address


def frames(content: bytes) -> list[pika.frame.Frame]:
    found = []
    while content:
        used, value = pika.frame.decode_frame(content)
        found.append(value)
        content = content[used:]
    return found


def test_a_message_gives_its_properties_headers_and_body() -> None:
    given = message(b"body", type="order", headers=Table({"n": 1}))

    assert given.property("type") == "order"
    assert given.property("app_id") is None
    assert given.headers == {"n": 1}
    assert given.body == b"body"


def test_a_message_without_headers_has_an_empty_table_of_them() -> None:
    assert message().headers == {}


def test_an_address_ends_a_deliver_frame() -> None:
    method = spec.Basic.Deliver("c", 1, False, "ex", "key")

    assert pika.frame.Method(1, method).marshal().endswith(Address("ex", "key").suffix)


def test_content_goes_on_as_it_came_to_the_same_channel() -> None:
    given = message(b"body", channel=5)

    assert given.content_for(5, 131072) is given.content


@given(st.integers(1, 65535), st.sampled_from([0, 4096, 5000, 131072]), st.integers(0, 20_000))
def test_content_fits_whatever_channel_and_frame_max_the_consumer_has(
    channel: int, frame_max: int, size: int
) -> None:
    body = bytes(size)
    content = message(body, type="order").content_for(channel, frame_max)

    head, *bodies = frames(content)
    assert head.body_size == size
    assert head.properties.type == "order"
    assert b"".join(frame.fragment for frame in bodies) == body
    assert {frame.channel_number for frame in (head, *bodies)} == {channel}
    assert frame_max == 0 or all(len(frame.fragment) <= frame_max - 8 for frame in bodies)


@pytest.mark.parametrize("size", [0, 5, 131064, 131065, 300_000])
def test_a_rewritten_message_has_the_same_body(size: int) -> None:
    given = message(b"x" * size, type="order", app_id="shop")
    parts = {**given.parts, "type": encode_property("type", "other")}

    copy = given.rewritten(parts, Address("", "q"), PLAIN)
    assert (copy.body, copy.body_size) == (given.body, size)
    assert (copy.property("type"), copy.property("app_id")) == ("other", "shop")
    assert (copy.address.exchange, copy.address.routing_key) == ("", "q")
    assert (given.property("type"), given.address) == ("order", ADDRESS)


@pytest.mark.parametrize("size", [5, 2000, 300_000])
def test_a_copy_of_a_copy_has_the_same_body_on_any_channel(size: int) -> None:
    given = message(b"x" * size, type="order", channel=3, headers=Table({"n": 1}))
    headers = {**given.raw_headers, "m": encode_value(2)}

    copy = given.with_headers(headers, without="type").with_headers({"m": headers["m"]})
    assert (copy.headers, copy.property("type"), copy.body) == ({"m": 2}, None, given.body)
    for channel, frame_max in ((3, 131072), (7, 131072), (7, 4096)):
        head, *bodies = frames(copy.content_for(channel, frame_max))
        assert head.properties.headers == {"m": 2}
        assert b"".join(frame.fragment for frame in bodies) == given.body
        assert {frame.channel_number for frame in (head, *bodies)} == {channel}
        assert all(len(frame.fragment) <= frame_max - 8 for frame in bodies)


def test_a_large_body_is_shared_by_copies() -> None:
    given = message(bytes(100_000))
    copy = given.with_headers({}).with_traits(PLAIN).with_headers({})

    assert len(copy.content) < 100
    assert copy.origin is given
    assert copy.body == given.body
