"""What a blocking publisher hears between two calls, when only the heart reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.contract.test_bulk_publishing import messages
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.wire import Channel
from warren.client import blocking_publisher
from warren.client.blocking_publisher import BlockingPublisher, PublishRules
from warren.client.endpoint import Endpoint
from warren.errors import Nacked, NotFound, Unroutable


class Unheard:
    """A publisher that hears of nothing until it is left alone, as while Spark makes more rows."""

    def __init__(self, proxy: Proxy, **rules: Any) -> None:
        self.proxy = proxy
        endpoint = Endpoint.from_uri(proxy.url)
        self.bulk = BlockingPublisher([endpoint], PublishRules(**rules))
        assert self.bulk.frame_max  # it has connected

    def publish(self, encoded: list[bytes]) -> None:
        self.proxy.stall()
        self.bulk.publish(encoded)
        self.proxy.resume()

    def left_alone(self, until: Callable[[], bool]) -> None:
        """Does what the heart does, without waiting for its next beat."""

        def beat() -> bool:
            self.bulk._idle.beat(time.monotonic())
            return until()

        eventually(beat)


class Later:
    """Stands for the module ``time``: so many seconds have passed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def monotonic(self) -> float:
        return time.monotonic() + self._seconds

    sleep = staticmethod(time.sleep)


@pytest.fixture
def unheard(broker: TestBroker) -> Iterator[Callable[..., Unheard]]:
    made: list[Unheard] = []
    with Proxy(broker.host, broker.port) as proxy:

        def make(**rules: Any) -> Unheard:
            made.append(Unheard(proxy, **rules))
            return made[-1]

        yield make
        for each in made:
            each.bulk.abandon()


def test_a_message_that_comes_back_between_two_calls_fails_the_next_one(
    unheard: Callable[..., Unheard],
) -> None:
    alone = unheard()
    alone.publish(messages([b"lost"], "nowhere-at-all"))
    alone.left_alone(lambda: not alone.bulk.unconfirmed)

    for call in (alone.bulk.finish, partial(alone.bulk.publish, []), alone.bulk.finish):
        with pytest.raises(Unroutable, match="no queue for routing key 'nowhere-at-all'"):
            call()


def test_one_that_the_dead_letter_exchange_returns_between_two_calls_fails_the_next_one(
    unheard: Callable[..., Unheard], channel: Channel, name: Callable[[str], str]
) -> None:
    exchange, queue = name("dead"), name("bulk")
    channel.declare_exchange(exchange, "fanout")
    channel.declare(queue)
    alone = unheard(unroutable="deadletter", dead_letter_exchange=exchange)
    alone.publish(messages([b"lost"], "nowhere-at-all"))
    alone.left_alone(lambda: bool(alone.bulk.counts.dead_lettered))
    alone.publish(messages([b"well"], queue))  # and the dead letter before it
    alone.left_alone(lambda: not alone.bulk.unconfirmed)

    with pytest.raises(Unroutable, match=exchange):
        alone.bulk.finish()


@pytest.mark.parametrize("more", [0, 1, 50_000])
def test_a_refusal_that_comes_between_two_calls_fails_the_next_one(
    unheard: Callable[..., Unheard], more: int
) -> None:
    # What is written to a channel that is closed would end the connection, with another error.
    alone = unheard()
    alone.publish(messages([b"lost"], "key", exchange="not-there"))
    link = alone.bulk._link
    assert link is not None
    alone.left_alone(lambda: not link.session.channels)

    with pytest.raises(NotFound, match="no exchange 'not-there'"):
        alone.bulk.publish(messages([b"more"] * more, "key"))
        alone.bulk.finish()


def test_one_that_is_refused_between_two_calls_is_tried_again_by_the_next_one(
    unheard: Callable[..., Unheard], channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("full")
    channel.declare(queue, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    alone = unheard(retries=1)
    alone.publish(messages([b"one", b"two", b"three"], queue))
    alone.left_alone(lambda: alone.bulk.counts.nacked + alone.bulk.counts.confirmed == 3)

    with pytest.raises(Nacked):
        alone.bulk.finish()


def test_the_wait_for_a_confirm_begins_when_a_message_is_sent(
    unheard: Callable[..., Unheard],
    channel: Channel,
    name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A dead letter waits for the next call, which may be long after the last confirm.
    exchange, queue = name("dead"), name("dead")
    channel.declare_exchange(exchange, "fanout")
    channel.declare(queue)
    channel.bind(queue, exchange)
    alone = unheard(unroutable="deadletter", dead_letter_exchange=exchange)
    alone.publish(messages([b"one"], "nowhere-at-all"))
    alone.left_alone(lambda: not alone.bulk._sent)

    monkeypatch.setattr(blocking_publisher, "time", Later(100.0))
    alone.proxy.delay(0.05)  # the confirm is not there at once
    alone.bulk.publish(messages([b"two"], queue))
    alone.bulk.finish()

    assert set(channel.drain(queue)) == {b"one", b"two"}
