"""The expiration property: whole milliseconds, written as text, none below zero."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.wire import Channel

TEN_YEARS_MS = 315_360_000_000


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


@pytest.mark.parametrize(
    "expiration", ["60000", "+60000", "0060000", "4294967295", "4294967296", str(TEN_YEARS_MS)]
)
def test_whole_numbers_up_to_ten_years_are_accepted_and_delivered_as_written(
    channel: Channel, queue: str, expiration: str
) -> None:
    channel.publish(queue, b"hello", expiration=expiration)
    message = channel.get(queue)
    assert message is not None
    assert message.properties.expiration == expiration


@pytest.mark.parametrize("expiration", ["0", "-0", "+0", "000"])
def test_zero_is_accepted_and_expires_at_once(
    channel: Channel, queue: str, expiration: str
) -> None:
    channel.publish(queue, b"gone", expiration=expiration)
    channel.publish(queue, b"stays")
    assert channel.drain(queue) == [b"stays"]


def test_zero_reaches_a_consumer_that_waits(channel: Channel, queue: str) -> None:
    channel.consume(queue, no_ack=True)
    channel.publish(queue, b"hello", expiration="0")
    assert channel.delivery().body == b"hello"


@pytest.mark.parametrize(
    ("expiration", "words"),
    [
        ("", "no_integer"),
        ("soon", "no_integer"),
        (" 10", "no_integer"),
        (".5", "no_integer"),
        ("-", "no_integer"),
        ("--1", "no_integer"),
        ("é", "no_integer"),
        ("10s", '{leftover_string,"s"}'),
        ("10 ", '{leftover_string," "}'),
        ("1.5", '{leftover_string,".5"}'),
        ("1e3", '{leftover_string,"e3"}'),
        ("0x10", '{leftover_string,"x10"}'),
        ("1_000", '{leftover_string,"_000"}'),
        ('1"', '{leftover_string,"\\""}'),
        ("1\\", '{leftover_string,"\\\\"}'),
        ("1\n", '{leftover_string,"\\n"}'),
        ("-1 minute", '{leftover_string," minute"}'),
        ("-1", "{value_negative,-1}"),
        ("-60000", "{value_negative,-60000}"),
        (str(TEN_YEARS_MS + 1), f"{{value_too_large,{TEN_YEARS_MS + 1}}}"),
        ("1" * 30, f"{{value_too_large,{'1' * 30}}}"),
    ],
)
def test_anything_else_is_refused(
    channel: Channel, queue: str, expiration: str, words: str
) -> None:
    channel.publish(queue, b"hello", expiration=expiration)
    refusal = channel.expect_closed()
    # Long values are broken into lines: only there white space is not compared.
    said = "".join(refusal.text.split()) if len(expiration) >= 20 else refusal.text
    text = f"PRECONDITION_FAILED - invalid expiration '{expiration}': {words}"
    assert said == (text.replace(" ", "") if len(expiration) >= 20 else text)
    assert refusal.args == ("channel", 406, refusal.text, 60, 40)
    assert channel.connection.channel().drain(queue) == []


def test_it_is_refused_even_if_no_queue_would_get_the_message(channel: Channel) -> None:
    channel.publish("nowhere", b"hello", expiration="soon")
    assert channel.expect_closed().code == 406


def test_it_is_looked_at_before_cc(channel: Channel) -> None:
    channel.publish("nowhere", b"hello", expiration="soon", headers={"CC": 1})
    assert "invalid expiration" in channel.expect_closed().text
