"""The letter that is made of a dead message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.amqp.wire_values import sized
from tests.unit.broker.messages import message
from warren.amqp.tables import Array, Table, Timestamp
from warren.broker.message import Address, Message
from warren.broker.queues.dead_letter import make_letter

NOW_S = 1_700_000_000


def letter(
    of: Message, reason: str = "expired", *, queue: str = "q", routing_key: str | None = None
) -> Message:
    made, _ = make_letter(of, queue, reason, NOW_S, exchange="dlx", routing_key=routing_key)
    return made


def again(of: Message, queue: str, reason: str) -> Message:
    """The letter as the next queue sees it when it dies once more."""
    return letter(of, reason, queue=queue)


def deaths(of: Message) -> list[tuple[str, str, int]]:
    return [(death["queue"], death["reason"], death["count"]) for death in of.headers["x-death"]]


def test_a_first_death_is_told_in_full() -> None:
    made = letter(message(b"body", type="order"), "rejected")

    assert made.headers == {
        "x-death": [
            {
                "count": 1,
                "exchange": "ex",
                "queue": "q",
                "reason": "rejected",
                "routing-keys": ["key"],
                "time": Timestamp(NOW_S),
            }
        ],
        "x-first-death-exchange": "ex",
        "x-first-death-queue": "q",
        "x-first-death-reason": "rejected",
    }
    assert (made.body, made.property("type")) == (b"body", "order")
    assert made.headers["x-death"][0].kinds["count"] == "long"
    assert made.headers["x-death"][0].kinds["time"] == "timestamp"


def test_a_letter_keeps_its_routing_key_unless_the_queue_has_another() -> None:
    assert letter(message()).address.routing_key == "key"
    assert letter(message(), routing_key="other").address.routing_key == "other"
    assert letter(message()).address.exchange == "dlx"


def test_the_message_itself_is_not_touched() -> None:
    of = message(expiration="5", headers=Table({"n": 1}))
    before = of.content
    letter(of)

    assert of.content == before
    assert of.headers == {"n": 1}


def test_an_expiration_is_taken_off_and_told() -> None:
    made = letter(message(expiration="500"))

    assert made.property("expiration") is None
    assert made.traits.expiration_ms is None
    assert made.headers["x-death"][0]["original-expiration"] == "500"


def test_priority_and_persistence_stay() -> None:
    made = letter(message(priority=7, delivery_mode=2))

    assert (made.traits.priority, made.traits.persistent) == (7, True)
    assert (made.property("priority"), made.property("delivery_mode")) == (7, 2)


def test_the_same_death_is_counted() -> None:
    made = again(again(letter(message(), queue="a"), "a", "expired"), "a", "expired")

    assert deaths(made) == [("a", "expired", 3)]


def test_another_queue_or_reason_is_another_death_the_newest_in_front() -> None:
    made = again(letter(message(), "rejected", queue="a"), "a", "expired")

    assert deaths(made) == [("a", "expired", 1), ("a", "rejected", 1)]


def test_the_first_death_stays_the_first() -> None:
    made = again(letter(message(), "rejected", queue="a"), "b", "expired")

    assert made.headers["x-first-death-queue"] == "a"
    assert made.headers["x-first-death-reason"] == "rejected"


def test_other_headers_keep_their_octets() -> None:
    headers = Table(
        {"f": 1.5, "b": 7, "list": Array([1], ["byte"])},
        {"f": "float", "b": "byte", "list": "array"},
    )
    made = letter(message(headers=headers))

    assert made.headers.kinds["f"] == "float"  # type: ignore[attr-defined]
    assert made.headers.kinds["b"] == "byte"  # type: ignore[attr-defined]
    assert made.headers["list"].kinds == ["byte"]


def test_copies_are_told_as_routing_keys() -> None:
    made = letter(message(headers=Table({"CC": ["b", "c"]})))

    assert made.headers["x-death"][0]["routing-keys"] == ["key", "b", "c"]
    assert made.traits.copies == ("b", "c")


def test_a_routing_key_of_the_queue_takes_the_copies_away() -> None:
    made = letter(message(headers=Table({"CC": ["b"]})), routing_key="other")

    assert "CC" not in made.headers
    assert made.traits.copies == ()


@pytest.mark.parametrize(
    "gibberish",
    [
        "text",
        1,
        None,
        [],
        ["text", 1],
        Table(),
        [Table()],
        [Table({"queue": 1})],
        [Table({"count": "many", "queue": "q", "reason": "expired"})],
        [Table({"count": 2**63 - 1, "queue": "q", "reason": "expired"})],
        [Table({"queue": [1]}), Table({"queue": [2]})],
        [Table({"queue": Table(), "reason": Table()}), Table({"reason": Table()})],
    ],
    ids=repr,
)
def test_gibberish_instead_of_deaths_is_survived(gibberish: Any) -> None:
    made = letter(message(headers=Table({"x-death": gibberish})))

    first = made.headers["x-death"][0]
    assert (first["queue"], first["reason"]) == ("q", "expired")
    assert isinstance(first["count"], int)


def test_deaths_nested_absurdly_deep_are_survived() -> None:
    inner = b""
    for _ in range(5000):
        inner = b"\x01kF" + sized(inner)
    headers = sized(b"\x07x-deathA" + sized(b"F" + sized(inner)))
    of = message()
    parts = {"headers": headers}
    made = letter(of.rewritten(parts, Address("ex", "key"), of.traits))

    assert made.headers["x-death"][0]["queue"] == "q"


def test_a_letter_that_died_often_tells_the_same_as_one_that_was_read_anew() -> None:
    kept = fresh = message(b"body")
    for number in range(100):
        queue, reason = f"q{number % 60}", ("expired", "rejected")[number % 7 == 0]
        kept = again(kept, queue, reason)
        fresh = again(fresh, queue, reason)
        fresh = Message(fresh.address, fresh.content, fresh.traits, 4, 1)  # as a store gives it

    assert kept.headers == fresh.headers
    assert len(deaths(kept)) == len(set(deaths(kept))) > 60
    stored = kept.with_traits(kept.traits)
    assert again(stored, "last", "expired").headers == again(fresh, "last", "expired").headers
