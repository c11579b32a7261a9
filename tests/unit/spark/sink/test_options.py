"""What each option of the sink comes to, and which contradict each other."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from tests.unit.spark.sink.sent import sent
from warren.errors import ConfigError
from warren.spark.sink.options import SINK, SinkOptions

DEAD = {"onUnroutable": "deadletter", "deadLetterExchange": "dead"}

#: Option, its text, and the field that has it, with its value.
FIELDS = [
    ("exchange", "shop", "exchange", "shop"),
    ("routingKey", "new", "routing_key", "new"),
    ("writeName", "paid", "write_name", "paid"),
    ("writeId", "shop-7", "write_id", "shop-7"),
    ("mandatory", "false", "mandatory", False),
    ("onTooLong", "shorten", "shorten", True),
    ("progress", "true", "progress", True),
]
RULES = [
    ("confirmWindow", "7", "window", 7),
    ("confirmTimeoutMs", "7", "confirm_timeout_s", 0.007),
    ("blockedTimeoutMs", "7", "blocked_timeout_s", 0.007),
    ("reconnectTimeoutMs", "7", "reconnect_s", 0.007),
    ("retries", "7", "retries", 7),
    ("onUnroutable", "drop", "unroutable", "drop"),
]
PROPERTIES = [
    ("contentType", "x/y", "content_type", "x/y"),
    ("contentEncoding", "gzip", "content_encoding", "gzip"),
    ("deliveryMode", "1", "delivery_mode", 1),
    ("priority", "7", "priority", 7),
    ("correlationId", "c-1", "correlation_id", "c-1"),
    ("replyTo", "answers", "reply_to", "answers"),
    ("expiration", "60000", "expiration", "60000"),
    ("type", "order", "type", "order"),
    ("userId", "ann", "user_id", "ann"),
    ("appId", "shop", "app_id", "shop"),
]


@pytest.mark.parametrize(("option", "text", "field", "value"), FIELDS)
def test_an_option_says_one_thing_of_the_write(
    option: str, text: str, field: str, value: Any
) -> None:
    assert SinkOptions.parse({option: text}) == replace(SinkOptions.parse({}), **{field: value})


@pytest.mark.parametrize(("option", "text", "field", "value"), RULES)
def test_an_option_says_one_thing_of_how_rows_are_published(
    option: str, text: str, field: str, value: Any
) -> None:
    silent = SinkOptions.parse({})

    told = SinkOptions.parse({option: text})

    assert told == replace(silent, rules=replace(silent.rules, **{field: value}))


def test_the_dead_letter_exchange_is_where_rows_go_that_no_queue_takes() -> None:
    rules = SinkOptions.parse(DEAD).rules

    assert (rules.unroutable, rules.dead_letter_exchange) == ("deadletter", "dead")


@pytest.mark.parametrize(("option", "text", "field", "value"), PROPERTIES)
def test_an_option_sets_one_property_of_rows_without_it(
    option: str, text: str, field: str, value: Any
) -> None:
    rows = {"routing_key": pa.array(["q"])}
    (silent,), (told,) = sent(rows), sent(rows, **{option: text})

    assert asdict(silent)[field] in (None, 2)  # messages are persistent
    assert told == replace(silent, **{field: value})


def test_no_option_is_left_out_here() -> None:
    tried = {option for option, *_ in [*FIELDS, *RULES, *PROPERTIES]}
    assert tried | DEAD.keys() == {option.name for option in SINK}


# -- what contradicts ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"onUnroutable": "fail"},
        {"onUnroutable": "drop"},
        {"mandatory": "false"},
    ],
)
def test_an_exchange_for_dead_letters_that_nothing_would_go_to_is_refused(
    given: dict[str, str],
) -> None:
    remedy = "needs onUnroutable=deadletter and mandatory=true"
    with pytest.raises(ConfigError, match=remedy) as refused:
        SinkOptions.parse({**given, "deadLetterExchange": "dead"})
    assert refused.value.option == "deadLetterExchange"


@pytest.mark.parametrize("wanted", ["fail", "drop", "deadletter"])
def test_what_becomes_of_rows_that_nobody_notices_can_not_be_said(wanted: str) -> None:
    given = {**DEAD, "onUnroutable": wanted, "mandatory": "false"}
    with pytest.raises(ConfigError, match=r"^onUnroutable .* needs mandatory=true"):
        SinkOptions.parse(given)


def test_an_exchange_for_dead_letters_has_a_name_of_at_most_255_octets() -> None:
    assert SinkOptions.parse({**DEAD, "deadLetterExchange": "é" * 127}).rules
    with pytest.raises(ConfigError, match=r"deadLetterExchange .* 256 octets; 255 is the most$"):
        SinkOptions.parse({**DEAD, "deadLetterExchange": "é" * 128})
