"""Consistent hash exchanges: a key has one queue, and queues get keys by their weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.support.wire import Channel

KEYS = [f"key-{number}" for number in range(400)]


@pytest.fixture
def exchange(channel: Channel, name: Callable) -> str:
    exchange = name("hash")
    channel.declare_exchange(exchange, "x-consistent-hash")
    return exchange


@pytest.fixture
def queues(channel: Channel, name: Callable) -> list[str]:
    return [channel.declare(name(f"queue-{number}"), exclusive=True).queue for number in range(3)]


def _spread(
    channel: Channel, exchange: str, queues: list[str], keys: list[str] = KEYS
) -> dict[str, str]:
    """Publish each key once; say which queue each went to."""
    for key in keys:
        channel.publish(key, key.encode(), exchange=exchange)
    return _where(channel, queues, len(keys))


def _where(channel: Channel, queues: list[str], count: int) -> dict[str, str]:
    for queue in queues:
        channel.consume(queue, queue, no_ack=True)
    found = {
        message.body.decode(): message.method.consumer_tag for message in channel.deliveries(count)
    }
    for queue in queues:
        channel.cancel(queue)
    assert not channel.inbox, "a message went to more than one queue"
    assert len(found) == count
    return found


def _share(spread: dict[str, str], queue: str) -> float:
    return list(spread.values()).count(queue) / len(spread)


def test_each_message_goes_to_exactly_one_queue(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "1")
    spread = _spread(channel, exchange, queues)
    assert set(spread) == set(KEYS)
    assert set(spread.values()) == set(queues)


def test_a_key_keeps_its_queue_while_bindings_stay(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "2")
    first = _spread(channel, exchange, queues)
    assert _spread(channel, exchange, queues) == first


def test_the_messages_of_a_key_stay_in_order(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "1")
    bodies = [str(number).encode() for number in range(20)]
    for body in bodies:
        channel.publish("one key", body, exchange=exchange)
    assert sorted(channel.drain(queue) for queue in queues) == [[], [], bodies]


def test_equal_weights_get_equal_shares(channel: Channel, exchange: str, queues: list[str]) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "10")
    spread = _spread(channel, exchange, queues)
    for queue in queues:
        assert 0.2 < _share(spread, queue) < 0.47


def test_shares_follow_the_weights(channel: Channel, exchange: str, queues: list[str]) -> None:
    for queue, weight in zip(queues, ("1", "3", "6"), strict=True):
        channel.bind(queue, exchange, weight)
    spread = _spread(channel, exchange, queues)
    assert 0.03 < _share(spread, queues[0]) < 0.2
    assert 0.18 < _share(spread, queues[1]) < 0.42
    assert 0.48 < _share(spread, queues[2]) < 0.72


def test_a_new_queue_takes_keys_from_the_others_and_moves_no_other_key(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues[:2]:
        channel.bind(queue, exchange, "1")
    before = _spread(channel, exchange, queues)
    channel.bind(queues[2], exchange, "1")
    after = _spread(channel, exchange, queues)
    moved = {key for key in KEYS if before[key] != after[key]}
    assert {after[key] for key in moved} == {queues[2]}
    assert 0.2 < len(moved) / len(KEYS) < 0.47


def test_when_the_newest_queue_leaves_only_its_keys_move(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "1")
    before = _spread(channel, exchange, queues)
    channel.unbind(queues[2], exchange, "1")
    after = _spread(channel, exchange, queues)
    assert {before[key] for key in KEYS if before[key] != after[key]} == {queues[2]}
    assert set(after.values()) == set(queues[:2])


def test_when_any_queue_leaves_the_rest_take_all_keys(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "2")
    channel.unbind(queues[0], exchange, "2")
    spread = _spread(channel, exchange, queues)
    assert set(spread.values()) == set(queues[1:])
    for queue in queues[1:]:
        assert 0.35 < _share(spread, queue) < 0.65


def test_a_deleted_queue_gives_its_keys_away(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "1")
    channel.call(spec.Queue.Delete(queue=queues[1]))
    rest = [queues[0], queues[2]]
    assert set(_spread(channel, exchange, rest).values()) == set(rest)


def test_with_one_queue_every_key_is_its_own(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    channel.bind(queues[0], exchange, "5")
    assert set(_spread(channel, exchange, queues, KEYS[:20]).values()) == {queues[0]}


def test_without_a_queue_nothing_is_routed(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    channel.publish("key", exchange=exchange, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312

    channel.bind(queues[0], exchange, "1")
    channel.unbind(queues[0], exchange, "1")
    channel.publish("key", exchange=exchange, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312


def test_a_second_weight_for_a_queue_does_not_count(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    channel.bind(queues[0], exchange, "1")
    channel.bind(queues[1], exchange, "1")
    before = _spread(channel, exchange, queues)
    channel.bind(queues[0], exchange, "20")
    assert _spread(channel, exchange, queues) == before


def test_unbinding_either_weight_of_a_queue_takes_it_off_the_ring(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    channel.bind(queues[0], exchange, "1")
    channel.bind(queues[1], exchange, "1")
    channel.bind(queues[0], exchange, "2")
    channel.unbind(queues[0], exchange, "2")
    assert set(_spread(channel, exchange, queues, KEYS[:50]).values()) == {queues[1]}


def test_an_exchange_may_be_on_the_ring(
    channel: Channel, exchange: str, queues: list[str], name: Callable
) -> None:
    fanout = name("fanout")
    channel.declare_exchange(fanout, "fanout")
    channel.bind(queues[0], fanout)
    channel.bind(queues[1], exchange, "1")
    channel.bind_exchange(fanout, exchange, "1")
    spread = _spread(channel, exchange, queues, KEYS[:100])
    assert set(spread.values()) == {queues[0], queues[1]}


def test_only_the_first_routing_key_is_hashed(
    channel: Channel, exchange: str, queues: list[str]
) -> None:
    for queue in queues:
        channel.bind(queue, exchange, "1")
    plain = _spread(channel, exchange, queues, KEYS[:50])
    for key in KEYS[:50]:
        channel.publish(
            key, key.encode(), exchange=exchange, headers={"CC": ["other", "and another"]}
        )
    assert _where(channel, queues, 50) == plain


def _hash_by(channel: Channel, name: Callable, queues: list[str], **arguments: str) -> str:
    exchange = name("hash")
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.declare_exchange(exchange, "x-consistent-hash", arguments=given)
    for queue in queues:
        channel.bind(queue, exchange, "1")
    return exchange


def test_hash_header_takes_the_key_from_a_header(
    channel: Channel, name: Callable, queues: list[str]
) -> None:
    exchange = _hash_by(channel, name, queues, hash_header="customer")
    for number in range(60):
        # The routing key differs each time; only the header may decide.
        channel.publish(
            str(number), str(number).encode(), exchange=exchange, headers={"customer": number % 20}
        )
    spread = _where(channel, queues, 60)
    for number in range(60):
        assert spread[str(number)] == spread[str(number % 20)]
    assert set(spread.values()) == set(queues)


@pytest.mark.parametrize("headers", [None, {}, {"other": "x"}])
def test_messages_without_the_header_share_a_queue(
    channel: Channel, name: Callable, queues: list[str], headers: dict | None
) -> None:
    exchange = _hash_by(channel, name, queues, hash_header="customer")
    for number in range(20):
        channel.publish(str(number), str(number).encode(), exchange=exchange, headers=headers)
    assert len(set(_where(channel, queues, 20).values())) == 1


@pytest.mark.parametrize(
    ("hash_property", "value"),
    [
        ("message_id", lambda number: f"m-{number}"),
        ("correlation_id", lambda number: f"c-{number}"),
        ("timestamp", lambda number: 1700000000 + number),
    ],
)
def test_hash_property_takes_the_key_from_a_property(
    channel: Channel,
    name: Callable,
    queues: list[str],
    hash_property: str,
    value: Callable[[int], Any],
) -> None:
    exchange = _hash_by(channel, name, queues, hash_property=hash_property)
    for number in range(60):
        channel.publish(
            str(number),
            str(number).encode(),
            exchange=exchange,
            **{hash_property: value(number % 20)},
        )
    spread = _where(channel, queues, 60)
    for number in range(60):
        assert spread[str(number)] == spread[str(number % 20)]
    assert set(spread.values()) == set(queues)


@pytest.mark.parametrize("hash_property", ["message_id", "correlation_id", "timestamp"])
def test_messages_without_the_property_share_a_queue(
    channel: Channel, name: Callable, queues: list[str], hash_property: str
) -> None:
    exchange = _hash_by(channel, name, queues, hash_property=hash_property)
    for number in range(20):
        channel.publish(str(number), str(number).encode(), exchange=exchange, app_id=str(number))
    assert len(set(_where(channel, queues, 20).values())) == 1


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("heavy", 'be an integer: <<"heavy">>'),
        ("", "be an integer: <<>>"),
        ("1.5", 'be an integer: <<"1.5">>'),
        (" 1", 'be an integer: <<" 1">>'),
        ("1 ", 'be an integer: <<"1 ">>'),
        ('"', 'be an integer: <<"\\"">>'),
        ("0", "be greater than 0"),
        ("-3", "be greater than 0"),
    ],
)
def test_a_binding_key_that_is_no_weight_is_refused(
    channel: Channel, exchange: str, queues: list[str], key: str, words: str
) -> None:
    refusal = channel.refused(spec.Queue.Bind(queue=queues[0], exchange=exchange, routing_key=key))
    text = f"PRECONDITION_FAILED - The binding key must {words}"
    assert refusal.args == ("channel", 406, text, 50, 20)


def test_a_wrong_weight_for_an_exchange_is_refused_too(channel: Channel, exchange: str) -> None:
    refusal = channel.refused(
        spec.Exchange.Bind(destination="amq.fanout", source=exchange, routing_key="x")
    )
    text = 'PRECONDITION_FAILED - The binding key must be an integer: <<"x">>'
    assert refusal.args == ("channel", 406, text, 40, 30)


@pytest.mark.parametrize("key", ["+2", "007"])
def test_a_weight_may_have_a_sign_or_leading_zeros(
    channel: Channel, exchange: str, queues: list[str], key: str
) -> None:
    channel.bind(queues[0], exchange, key)
    channel.publish("key", b"hello", exchange=exchange)
    assert channel.drain(queues[0]) == [b"hello"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"hash-header": "h", "hash-property": "message_id"},
            "hash-header and hash-property are mutually exclusive",
        ),
        (
            {"hash-header": "h", "hash-property": "no such"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-property": "app_id"}, "Unsupported property: app_id"),
        ({"hash-property": ""}, "Unsupported property: "),
    ],
)
def test_wrong_arguments_are_refused_and_leave_no_exchange(
    channel: Channel, name: Callable, arguments: dict, words: str
) -> None:
    exchange = name("hash")
    refusal = channel.refused(
        spec.Exchange.Declare(exchange=exchange, type="x-consistent-hash", arguments=arguments)
    )
    assert refusal.args == ("channel", 406, f"PRECONDITION_FAILED - {words}", 40, 10)
    again = channel.connection.channel()
    assert again.refused(spec.Exchange.Declare(exchange=exchange, passive=True)).code == 404


def test_a_redeclaration_does_not_compare_hash_arguments(channel: Channel, name: Callable) -> None:
    exchange = name("hash")
    first = {"hash-header": "a"}
    channel.declare_exchange(exchange, "x-consistent-hash", arguments=first)
    channel.declare_exchange(exchange, "x-consistent-hash", arguments={"hash-header": "b"})
    channel.declare_exchange(exchange, "x-consistent-hash")
