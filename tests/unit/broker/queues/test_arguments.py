"""Queue arguments. Which text answers which mistake is the contract suite's; here are the rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.amqp.wire_values import Typed, entries
from warren.amqp.tables import Table, decode_table
from warren.broker.queues.arguments import (
    KNOWN,
    QueueSettings,
    check_consume,
    check_declare,
    check_same_arguments,
    check_same_field,
    parse_age_s,
    queue_type,
)
from warren.errors import InternalError, PreconditionFailed

WHERE = "queue 'q' in vhost '/'"


def table(**fields: Typed) -> Table:
    """Arguments with these wire types; an underscore stands for a hyphen."""
    return decode_table(entries({key.replace("_", "-"): value for key, value in fields.items()}))


def declare(values: dict[str, Any]) -> None:
    check_declare(WHERE, Table(values))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"x-message-ttl": 0, "x-expires": 1, "x-max-length": 0, "x-max-length-bytes": 0},
        {"x-max-priority": 255, "x-overflow": "reject-publish-dlx", "x-queue-mode": "lazy"},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": ""},
        {"x-queue-type": "quorum", "x-delivery-limit": 3, "x-quorum-initial-group-size": 3},
        {"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 10**12},
        {"anything-else": 1},
    ],
    ids=lambda values: ", ".join(values) or "none",
)
def test_good_arguments_are_taken(values: dict[str, Any]) -> None:
    declare(values)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"x-message-ttl": -1}, "{value_negative,-1}"),
        ({"x-message-ttl": "5"}, '"expected integer, got longstr"'),
        ({"x-expires": 0}, "{value_zero,0}"),
        ({"x-max-length": -1}, "{value_negative,-1}"),
        ({"x-max-priority": 256}, "{max_value_exceeded,256}"),
        ({"x-overflow": "spill"}, "invalid_overflow"),
        ({"x-overflow": 1}, "{unacceptable_type,signedint}"),
        ({"x-single-active-consumer": 1}, "{unacceptable_type,signedint}"),
        ({"x-dead-letter-routing-key": "k"}, "routing_key_but_no_dlx_defined"),
        ({"x-queue-type": "heap"}, "\"unsupported queue type 'heap'\""),
        ({"x-queue-type": "stream", "x-max-age": "7 days"}, "invalid_max_age"),
    ],
)
def test_a_bad_argument_is_named(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        declare(values)
    name = list(values)[-1]
    assert str(refusal.value) == f"invalid arg '{name}' for {WHERE}: {problem}"


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("quorum", "x-max-priority", 5),
        ("stream", "x-message-ttl", 5),
        ("classic", "x-delivery-limit", 5),
        ("stream", "x-dead-letter-exchange", ""),
    ],
)
def test_an_argument_of_another_queue_type_is_refused(kind: str, name: str, value: Any) -> None:
    with pytest.raises(PreconditionFailed, match=f"rabbit_{kind}_queue"):
        declare({"x-queue-type": kind, name: value})


def test_what_a_consumer_may_ask_depends_on_the_queue_type() -> None:
    check_consume(WHERE, "classic", Table({"x-priority": -5, "anything": 1}))
    check_consume(WHERE, "stream", Table({"x-stream-offset": "first"}))
    with pytest.raises(PreconditionFailed, match="expected integer, got longstr"):
        check_consume(WHERE, "classic", Table({"x-priority": "high"}))
    with pytest.raises(PreconditionFailed, match="rabbit_classic_queue"):
        check_consume(WHERE, "classic", Table({"x-stream-offset": "first"}))
    with pytest.raises(InternalError):
        check_consume(WHERE, "stream", Table({"x-stream-offset": "someday"}))


# -- equivalence ---------------------------------------------------------------------------------
@pytest.mark.parametrize("old", [Typed("b", 5), Typed("s", 5), Typed("I", 5), Typed("l", 5)])
@pytest.mark.parametrize("new", [Typed("B", 5), Typed("u", 5), Typed("i", 5), Typed("L", 5)])
def test_integers_of_any_width_are_the_same(old: Typed, new: Typed) -> None:
    check_same_arguments(WHERE, KNOWN["classic"], table(x_expires=old), table(x_expires=new))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (Typed("I", 5), Typed("I", 6), "received '6' but current is '5'"),
        (Typed("I", 5), Typed("d", 5.0), "received '5.0' but current is '5'"),
        (Typed("I", 5), Typed("S", "5"), "received '5' but current is '5'"),
        (Typed("t", True), Typed("I", 1), "received '1' but current is 'true'"),
    ],
)
def test_other_values_are_not(old: Typed, new: Typed, told: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        check_same_arguments(WHERE, ("x-expires",), table(x_expires=old), table(x_expires=new))
    assert str(refusal.value) == f"inequivalent arg 'x-expires' for {WHERE}: {told}"


def test_an_argument_on_one_side_only_is_told_with_its_type() -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        check_same_arguments(WHERE, ("x-expires",), table(), table(x_expires=Typed("I", 5)))
    assert str(refusal.value) == (
        f"inequivalent arg 'x-expires' for {WHERE}: "
        "received the value '5' of type 'signedint' but current is none"
    )


def test_no_queue_type_is_the_same_as_classic_and_as_nothing_else() -> None:
    classic, quorum = table(x_queue_type=Typed("S", "classic")), Table({"x-queue-type": "quorum"})

    check_same_arguments(WHERE, KNOWN["classic"], Table(), classic)
    check_same_arguments(WHERE, KNOWN["classic"], classic, Table())
    with pytest.raises(PreconditionFailed):
        check_same_arguments(WHERE, KNOWN["classic"], Table(), quorum)


def test_arguments_that_are_not_known_are_not_compared() -> None:
    check_same_arguments(WHERE, KNOWN["classic"], Table({"mine": 1}), Table({"mine": 2}))


def test_a_property_that_differs_is_told() -> None:
    check_same_field(WHERE, "durable", True, True)
    with pytest.raises(PreconditionFailed) as refusal:
        check_same_field(WHERE, "durable", False, True)
    assert str(refusal.value) == (
        f"inequivalent arg 'durable' for {WHERE}: received 'true' but current is 'false'"
    )


# -- meaning -------------------------------------------------------------------------------------
def test_settings_are_what_the_arguments_mean() -> None:
    settings = QueueSettings.from_arguments(
        {
            "x-message-ttl": 5,
            "x-max-length": 7,
            "x-overflow": "reject-publish",
            "x-single-active-consumer": True,
            "x-dead-letter-exchange": "",
        }
    )

    assert settings == QueueSettings(
        message_ttl_ms=5,
        max_length=7,
        overflow="reject-publish",
        single_active_consumer=True,
        dead_letter_exchange="",
    )


def test_without_arguments_there_are_no_limits() -> None:
    assert QueueSettings.from_arguments({}) == QueueSettings()
    assert queue_type({}) == "classic"


@pytest.mark.parametrize(
    ("age", "seconds"),
    [
        ("5s", 5),
        ("2m", 120),
        ("3h", 10_800),
        ("7D", 604_800),
        ("1M", 2_592_000),
        ("1Y", 31_536_000),
    ],
)
def test_an_age_has_a_unit(age: str, seconds: int) -> None:
    assert parse_age_s(age) == seconds


@pytest.mark.parametrize("age", ["", "7", "D", "7d", "7 D", "-7D", "1.5h", "٣D", "7DD"])
def test_an_age_that_can_not_be_read_is_none(age: str) -> None:
    assert parse_age_s(age) == 0


def test_an_age_of_absurd_length_is_survived() -> None:
    assert parse_age_s("9" * 5000 + "Y") > 0
