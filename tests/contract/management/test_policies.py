"""Policies: what they may set, and that they take effect at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.management.http import Api, at
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection

SetPolicy = Callable[..., None]


@pytest.fixture
def channel(broker: TestBroker, vhost: str) -> Iterator[Channel]:
    """A channel in the module's own virtual host."""
    connection = Connection.open(broker.url, vhost=vhost)
    yield connection.channel()
    connection.close()


@pytest.fixture
def queue(channel: Channel, name: Callable[[str], str]) -> str:
    return str(channel.declare(name("queue")).queue)


@pytest.fixture
def policy(api: Api, vhost: str) -> Iterator[SetPolicy]:
    """Sets a policy for one name; gone after the test."""
    made = []

    def put(target: str, definition: dict[str, Any], name: str = "p", **more: Any) -> None:
        made.append(name)
        body = {"pattern": f"^{target}$", "definition": definition, **more}
        assert api.put(at("policies", vhost, name), body)[0] in (201, 204)

    yield put
    for name in set(made):
        api.delete(at("policies", vhost, name))


def body(**changes: Any) -> dict[str, Any]:
    return {"pattern": "^a", "definition": {"max-length": 1}, **changes}


def test_a_policy_is_made_changed_shown_and_deleted(api: Api, vhost: str) -> None:
    path = at("policies", vhost, "mine")
    assert api.put(path, body(priority=3, **{"apply-to": "queues"})) == (201, None)
    assert api.put(path, body()) == (204, None)
    expected = {
        "vhost": vhost,
        "name": "mine",
        "pattern": "^a",
        "apply-to": "all",
        "definition": {"max-length": 1},
        "priority": 0,
    }
    assert api.get(path) == expected
    assert api.get(at("policies", vhost)) == [expected]
    assert api.delete(path) == (204, None)
    assert api.delete(path)[0] == 404


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"definition": {}}, "no policy provided"),
        (
            {"definition": {"single-active-consumer": True}},
            '[{&lt;&lt;"single-active-consumer"&gt;&gt;,true}] are not recognised policy settings',
        ),
        ({"definition": {"message-ttl": -1}}, "-1 is not a valid message TTL"),
        ({"definition": {"message-ttl": "x"}}, '&lt;&lt;"x"&gt;&gt; is not a valid message TTL'),
        ({"definition": {"max-length": -1}}, "-1 is not a valid maximum length"),
        ({"definition": {"max-length-bytes": -1}}, "-1 is not a valid maximum length in bytes"),
        ({"definition": {"overflow": 1}}, "1 is not a valid overflow value"),
        ({"definition": {"expires": 0}}, "0 is not a valid queue expiry"),
        ({"definition": {"dead-letter-exchange": 1}}, "1 is not a valid dead letter exchange name"),
        ({"definition": {"alternate-exchange": 1}}, "1 is not a valid alternate exchange name"),
        ({"definition": {"delivery-limit": -1}}, "-1 is not a valid delivery limit"),
        (
            {"pattern": "*"},
            'pattern should be regular expression but is invalid: {"nothing to repeat",0}',
        ),
        ({"pattern": 1}, "pattern should be a binary but was 1"),
        (
            {"apply-to": "none"},
            "apply-to 'none' unrecognised; should be 'queues', 'exchanges' or 'all'",
        ),
        (
            {"priority": "high"},
            'priority should be a number, actually was &lt;&lt;"high"&gt;&gt;',
        ),
    ],
)
def test_a_policy_that_can_not_be_is_refused(
    api: Api, vhost: str, changes: dict[str, Any], reason: str
) -> None:
    assert api.put(at("policies", vhost, "bad"), body(**changes)) == (
        400,
        {"error": "bad_request", "reason": f"Validation failed\n\n{reason}\n"},
    )


@pytest.mark.parametrize(
    ("left", "missing"), [("pattern", "definition"), ("definition", "pattern")]
)
def test_a_policy_needs_a_pattern_and_a_definition(
    api: Api, vhost: str, left: str, missing: str
) -> None:
    assert api.put(at("policies", vhost, "bad"), {left: body()[left]}) == (
        400,
        {"error": "bad_request", "reason": f"[{{key_missing,{missing}}}]"},
    )


def test_a_new_length_limit_drops_what_is_over_it(
    channel: Channel, queue: str, policy: SetPolicy
) -> None:
    for number in range(5):
        channel.publish(queue, b"%d" % number)
    channel.sync()
    policy(queue, {"max-length": 2})
    eventually(lambda: channel.count(queue) == 2)
    assert channel.drain(queue) == [b"3", b"4"]


def test_a_limit_is_gone_with_its_policy(
    api: Api, vhost: str, channel: Channel, queue: str, policy: SetPolicy
) -> None:
    policy(queue, {"max-length": 0}, "short-lived")
    channel.publish(queue, b"lost")
    eventually(lambda: channel.count(queue) == 0)
    api.delete(at("policies", vhost, "short-lived"))

    def kept() -> bool:
        channel.publish(queue, b"kept")
        return channel.count(queue) > 0

    eventually(kept)


def test_of_an_argument_and_a_policy_the_smaller_limit_counts(
    channel: Channel, name: Callable[[str], str], policy: SetPolicy
) -> None:
    small = channel.declare(name("small"), arguments={"x-max-length": 1}).queue
    large = channel.declare(name("large"), arguments={"x-max-length": 9}).queue
    policy("(small|large)-.*", {"max-length": 3})
    for queue, expected in ((small, 1), (large, 3)):

        def settled(queue: str = queue, expected: int = expected) -> bool:
            for _ in range(5):
                channel.publish(queue, b"x")
            return channel.count(queue) == expected

        eventually(settled)


def test_messages_published_under_a_ttl_policy_expire(
    channel: Channel, queue: str, policy: SetPolicy
) -> None:
    channel.publish(queue, b"stays")
    channel.sync()
    policy(queue, {"message-ttl": 1})
    eventually(lambda: _expires(channel, queue))
    assert channel.drain(queue) == [b"stays"]


def _expires(channel: Channel, queue: str) -> bool:
    """Publish one more and say whether only the first is left.

    What was published before the policy arrived never expires: it is taken away, or it would
    stand in the queue for ever.
    """
    channel.publish(queue, b"goes")
    first = channel.get(queue, no_ack=False)
    assert first is not None
    others = channel.drain(queue)
    channel.nack(0, multiple=True)
    channel.sync()
    return not others


def test_a_queue_that_nobody_uses_goes_when_a_policy_says_so(
    channel: Channel, queue: str, policy: SetPolicy, api: Api, vhost: str
) -> None:
    policy(queue, {"expires": 50})
    eventually(lambda: api.ask("GET", at("queues", vhost, queue)).status == 404)


def test_dead_letters_go_where_a_policy_says(
    channel: Channel, queue: str, name: Callable[[str], str], policy: SetPolicy
) -> None:
    dead = channel.declare(name("dead")).queue
    policy(queue, {"dead-letter-exchange": "", "dead-letter-routing-key": dead})

    def arrived() -> bool:
        channel.publish(queue, b"bad")
        message = channel.get(queue, no_ack=False)
        if message is not None:
            channel.reject(message.tag, requeue=False)
        return channel.count(dead) > 0

    eventually(arrived)


def test_an_argument_wins_over_a_policy_where_both_name_an_exchange(
    channel: Channel, name: Callable[[str], str], policy: SetPolicy
) -> None:
    own, other = (channel.declare(name(word)).queue for word in ("own", "other"))
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": own}
    queue = channel.declare(name("queue"), arguments=arguments).queue
    policy(queue, {"dead-letter-exchange": "", "dead-letter-routing-key": other})
    channel.publish(queue, b"bad")
    message = channel.get(queue, no_ack=False)
    assert message is not None
    channel.reject(message.tag, requeue=False)
    eventually(lambda: channel.count(own) == 1)


def test_what_an_exchange_can_not_route_goes_where_a_policy_says(
    channel: Channel, queue: str, name: Callable[[str], str], policy: SetPolicy
) -> None:
    exchange, alternate = name("exchange"), name("alternate")
    channel.declare_exchange(exchange)
    channel.declare_exchange(alternate, "fanout")
    channel.bind(queue, alternate)
    policy(exchange, {"alternate-exchange": alternate})

    def arrived() -> bool:
        channel.publish("nobody", b"x", exchange=exchange)
        return channel.count(queue) > 0

    eventually(arrived)


def test_the_policy_of_the_highest_priority_holds(
    api: Api, vhost: str, channel: Channel, queue: str, policy: SetPolicy
) -> None:
    policy(queue, {"max-length": 7}, "low", priority=1)
    policy(queue, {"message-ttl": 60000}, "high", priority=2)
    path = at("queues", vhost, queue)
    eventually(lambda: api.get(path).get("policy") == "high")
    assert api.get(path)["effective_policy_definition"] == {"message-ttl": 60000}


def test_a_policy_holds_for_queues_declared_later(
    channel: Channel, name: Callable[[str], str], policy: SetPolicy
) -> None:
    later = name("later")
    policy(later, {"max-length": 1})
    channel.declare(later)
    for number in range(3):
        channel.publish(later, b"%d" % number)
    eventually(lambda: channel.count(later) == 1)
    assert channel.drain(later) == [b"2"]


def test_an_operator_policy_can_only_make_limits_smaller(
    api: Api, vhost: str, channel: Channel, queue: str, policy: SetPolicy
) -> None:
    policy(queue, {"max-length": 7})
    path = at("operator-policies", vhost, "limit")
    assert api.put(path, body(pattern=f"^{queue}$", definition={"max-length": 3})) == (201, None)
    shown = at("queues", vhost, queue)
    eventually(lambda: api.get(shown).get("effective_policy_definition") == {"max-length": 3})
    assert api.get(shown)["operator_policy"] == "limit"
    assert api.put(path, body(definition={"dead-letter-exchange": "a"})) == (
        400,
        {
            "error": "bad_request",
            "reason": 'Validation failed\n\n[{<<"dead-letter-exchange">>,<<"a">>}] '
            "are not recognised policy settings\n",
        },
    )
    assert api.delete(path) == (204, None)
