from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.messages import message
from warren.amqp.properties import Properties, check_properties, encode_properties
from warren.amqp.tables import Table
from warren.broker.inspection import MAX_EXPIRY_MS, inspect, outline, parse_expiration
from warren.broker.message import PLAIN, Traits
from warren.errors import InternalError, PreconditionFailed


def traits(**properties: Any) -> Traits:
    return message(**properties).traits


def test_no_properties_are_the_plain_traits() -> None:
    assert inspect(b"\x00\x00", "guest") is PLAIN
    assert (PLAIN.priority, PLAIN.persistent, PLAIN.expiration_ms, PLAIN.copies) == (
        0,
        False,
        None,
        (),
    )


def test_what_the_broker_reads() -> None:
    found = traits(priority=7, delivery_mode=2, expiration="1500")

    assert (found.priority, found.persistent, found.expiration_ms) == (7, True, 1500)


def test_copies_are_those_of_cc_and_bcc() -> None:
    found = traits(headers=Table({"CC": ["a", "b"], "BCC": ["c"]}))

    assert found.copies == ("a", "b", "c")
    assert found.strip_bcc


def test_a_header_that_only_looks_like_cc_is_no_copy() -> None:
    assert traits(headers=Table({"nested": Table({"CC": ["a"]}), "text": "\x02CC"})).copies == ()


@pytest.mark.parametrize(("key", "value"), [("CC", "a"), ("BCC", 1), ("CC", Table())])
def test_copies_must_be_a_list(key: str, value: Any) -> None:
    with pytest.raises(PreconditionFailed, match=f'unacceptable_type_in_header,"{key}"'):
        traits(headers=Table({key: value}))


def test_a_reply_to_the_broker_needs_a_consumer_of_replies() -> None:
    octets = encode_properties(Properties(reply_to="amq.rabbitmq.reply-to"))

    assert inspect(octets, "guest").reply_to_us
    with pytest.raises(PreconditionFailed, match="fast reply consumer does not exist"):
        inspect(octets, "guest", may_reply=False)


def test_another_users_name_is_refused_unless_one_may_impersonate() -> None:
    octets = encode_properties(Properties(user_id="root"))

    with pytest.raises(PreconditionFailed) as refusal:
        inspect(octets, "guest")
    assert str(refusal.value) == (
        "user_id property set to 'root' but authenticated user was 'guest'"
    )
    inspect(octets, "root")
    inspect(octets, "guest", impersonator=True)


@pytest.mark.parametrize("mode", [0, 3, 255])
def test_a_delivery_mode_is_one_or_two(mode: int) -> None:
    with pytest.raises(PreconditionFailed, match=f"delivery_mode_unknown,{mode}"):
        traits(delivery_mode=mode)


def test_properties_that_can_not_be_read_are_an_internal_error() -> None:
    with pytest.raises(InternalError):
        inspect(b"\x80\x00\xff", "guest")


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [("0", 0), ("60000", 60_000), ("+5", 5), ("007", 7), (str(MAX_EXPIRY_MS), MAX_EXPIRY_MS)],
)
def test_an_expiration_is_read_as_erlang_reads_it(value: str, milliseconds: int) -> None:
    assert parse_expiration(value) == milliseconds


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "no_integer"),
        ("soon", "no_integer"),
        (" 5", "no_integer"),
        ("٣", "no_integer"),
        ("5 s", '{leftover_string," s"}'),
        ("1.5", '{leftover_string,".5"}'),
        ("-1", "{value_negative,-1}"),
        (str(MAX_EXPIRY_MS + 1), f"{{value_too_large,{MAX_EXPIRY_MS + 1}}}"),
    ],
)
def test_a_bad_expiration_is_refused_in_rabbitmqs_words(value: str, problem: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        parse_expiration(value)
    assert str(refusal.value) == f"invalid expiration '{value}': {problem}"


# -- outlines ------------------------------------------------------------------------------------
EVERYTHING = {
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "headers": Table({"a": "b"}),
    "delivery_mode": 2,
    "priority": 3,
    "correlation_id": "c1",
    "reply_to": "r",
    "expiration": "1500",
    "message_id": "m1",
    "timestamp": 17,
    "type": "t",
    "user_id": "guest",
    "app_id": "app",
    "cluster_id": "cluster",
}
PASSING = {"correlation_id": "another", "message_id": "", "timestamp": 1 << 40}


def octets_of(properties: dict[str, Any]) -> bytes:
    return encode_properties(Properties(**properties))


def outline_of(octets: bytes) -> bytes:
    return outline(octets, int.from_bytes(octets[:2], "big"))


@pytest.mark.parametrize("without", [(), *((name,) for name in EVERYTHING), tuple(PASSING)])
def test_messages_that_differ_in_their_ids_only_have_one_outline(without: tuple[str, ...]) -> None:
    first = {name: value for name, value in EVERYTHING.items() if name not in without}
    second = {name: PASSING.get(name, value) for name, value in first.items()}

    assert outline_of(octets_of(first)) == outline_of(octets_of(second)) != b""


@pytest.mark.parametrize("name", [name for name in EVERYTHING if name not in PASSING])
def test_whatever_else_differs_is_in_the_outline(name: str) -> None:
    other = {"headers": Table({"a": "c"}), "delivery_mode": 1, "priority": 4}
    changed = EVERYTHING | {name: other.get(name, "changed")}
    dropped = {each: value for each, value in EVERYTHING.items() if each != name}
    outlines = {outline_of(octets_of(each)) for each in (EVERYTHING, changed, dropped)}

    assert len(outlines) == 3


@pytest.mark.parametrize("names", [tuple(EVERYTHING), ("delivery_mode", *PASSING), tuple(PASSING)])
def test_a_list_that_can_not_be_read_has_no_readable_ones_outline(names: tuple[str, ...]) -> None:
    """Every cut, and every octet made larger or smaller: most are lengths or flags to somebody."""
    good = octets_of({name: EVERYTHING[name] for name in names})
    wanted = outline_of(good)
    spoilt = [good[:size] for size in range(2, len(good))]
    spoilt.append(good + b"x")
    spoilt += [
        good[:at] + bytes((octet & 255,)) + good[at + 1 :]
        for at, was in enumerate(good)
        for octet in (0, 1, was + 1, was - 1, 255)
    ]
    for octets in spoilt:
        if outline_of(octets) == wanted:
            check_properties(octets)
            assert vars_of(inspect(octets, "guest")) == vars_of(inspect(good, "guest"))


def vars_of(traits: Traits) -> dict[str, Any]:
    return {name: getattr(traits, name) for name in Traits.__slots__}
