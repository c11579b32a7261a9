"""Looking at a queue of the model of a broker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.unit.amqp.test_client_runs import Sent, wire
from tests.unit.amqp.test_client_session import running
from tests.unit.spark.model_broker import Link, Model
from warren.client.blocking_reader import EXCLUSIVE, SINGLE_ACTIVE, Tap
from warren.errors import QueueBusy
from warren.spark.drain.job import Range
from warren.spark.options import SourceOptions
from warren.spark.peek import Look, peek


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    monkeypatch.setattr(
        "warren.spark.peek.BlockingConnection.open", lambda *_, **__: closing(model.connect())
    )
    monkeypatch.setattr(Link, "wait", wait, raising=False)
    monkeypatch.setattr("warren.spark.peek._MOST_BYTES", 10_000)
    return model


def wait(link: Link, done: Callable[[], bool], timeout_s: float) -> None:
    while not done():
        assert link.pump(timeout_s)


def shown(model: Model) -> list[bytes]:
    options = SourceOptions.parse({"queues": "q", "peek": "true", "drainTimeoutMs": "1"})
    mode = SINGLE_ACTIVE if model.queue.quorum else EXCLUSIVE
    batches: list[Any] = list(peek(options, [Range("q", 0, len(model.queue.ready), mode)]))
    return [body for batch in batches for body in batch.column("body").to_pylist()]


def test_a_look_at_large_messages_ends_before_they_are_too_many(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        model.queue.publish(b"%04d" % number + bytes(996))

    first = shown(model)

    assert [int(body[:4]) for body in first] == list(range(10))
    assert "of queue 'q' only the first 10 messages are shown" in caplog.text
    assert [int(message.body[:4]) for message in model.queue.ready] == list(range(100))


@pytest.mark.parametrize(("ready", "told"), [(7, True), (5, False)])
def test_a_look_at_many_messages_says_that_it_shows_the_first_only(
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ready: int,
    told: bool,
) -> None:
    monkeypatch.setattr("warren.spark.peek._MOST_PEEKED", 5)
    for number in range(ready):
        model.queue.publish(b"%d" % number)

    assert [int(body) for body in shown(model)] == list(range(5))

    assert ("of queue 'q' only the first 5 messages are shown" in caplog.text) == told
    assert len(model.queue.ready) == ready


def test_all_messages_are_shown_that_are_not_too_large(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        model.queue.publish(b"%04d" % number)

    assert [int(body) for body in shown(model)] == list(range(100))
    assert not caplog.records
    assert len(model.queue.ready) == 100


def test_messages_that_look_alike_on_the_wire_are_counted_one_by_one(model: Model) -> None:
    session, look = running(), Look(model.connect())
    session.open_channel(look)

    session.receive(wire([Sent(body=bytes(1000))] * 100))

    assert look.full
    assert len(look.took) == 10


@pytest.mark.parametrize("left", [0, 3])
def test_a_queue_whose_active_consumer_is_another_is_not_taken_for_an_empty_one(
    model: Model, left: int
) -> None:
    model.queue.quorum = True
    for number in range(5):
        model.queue.publish(b"%d" % number)
    other = model.connect()
    other.begin_channel(Tap).start("q", SINGLE_ACTIVE, 5 - left)
    other.flush()
    assert len(model.queue.ready) == left

    with pytest.raises(QueueBusy, match="queue 'q' has had another consumer"):
        shown(model)


def test_a_queue_that_was_emptied_meanwhile_shows_nothing(model: Model) -> None:
    options = SourceOptions.parse({"queues": "q", "peek": "true", "drainTimeoutMs": "1"})

    assert sum(batch.num_rows for batch in peek(options, [Range("q", 0, 5)])) == 0
