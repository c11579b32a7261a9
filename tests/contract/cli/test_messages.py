"""``warren publish``, ``warren get``, ``warren purge``."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cli.conftest import Cli
from tests.support.wire import Channel


@pytest.fixture
def queue(channel: Channel, name: Callable[[str], str]) -> str:
    made = name("letters")
    channel.declare(made)
    return made


def test_a_message_goes_into_a_queue_and_is_seen(cli: Cli, queue: str) -> None:
    said = cli("publish", queue, "hello", "--persistent", "--header", "n=5", "--header", "s=x")
    assert (said.code, said.out) == (0, f"published 1 message to queue '{queue}'\n")
    (message,) = cli("get", queue, "--json").json
    assert message["payload"] == "hello"
    assert message["properties"] == {"delivery_mode": 2, "headers": {"n": 5, "s": "x"}}


def test_properties_are_sent(cli: Cli, queue: str) -> None:
    words = ("--property", "content-type=text/plain", "--property", "priority=3")
    cli("publish", queue, *words, "hello")
    (message,) = cli("get", queue, "--json").json
    assert message["properties"] == {"content_type": "text/plain", "priority": 3}


def test_getting_leaves_a_message_where_it_is_unless_it_is_taken(cli: Cli, queue: str) -> None:
    cli("publish", queue, "hello")
    seen = [cli("get", queue, *words, "--json").json for words in ((), ("--take",), ())]
    assert [[each["redelivered"] for each in messages] for messages in seen] == [
        [False],
        [True],
        [],
    ]


def test_people_see_a_message_with_all_it_has(cli: Cli, queue: str) -> None:
    cli("publish", queue, "two\nlines\x1b[31m", "--property", "message_id=m1", "--header", "a=true")
    assert cli("get", queue, "--count", "5").out == (
        "1. 14 B\n"
        "  exchange     (default)\n"
        f"  routing key  {queue}\n"
        "  redelivered  no\n"
        "  message_id   m1\n"
        "  header a     yes\n"
        "  two\n  lines\\x1b[31m\n"
        "\n"
        f"1 message seen, 0 more in queue '{queue}'\n"
    )
    cli("purge", queue)
    assert cli("get", queue).out == f"queue '{queue}' is empty\n"


def test_octets_come_out_as_they_went_in(cli: Cli, queue: str, tmp_path: Path) -> None:
    body = bytes(range(256))
    (tmp_path / "body").write_bytes(body)
    cli("publish", queue, f"@{tmp_path / 'body'}")
    cli("publish", queue, "-", stdin=body)
    messages = cli("get", queue, "--count", "2", "--json").json
    assert [base64.b64decode(each["payload"]) for each in messages] == [body, body]


def test_raw_prints_the_body_and_nothing_else(cli: Cli, queue: str) -> None:
    cli("publish", queue, "h\u00e9llo")
    assert cli("get", queue, "--raw").out == "h\u00e9llo"


def test_each_line_can_be_a_message(cli: Cli, queue: str) -> None:
    said = cli("publish", queue, "-", "--lines", stdin=b"one\ntwo\r\nthree")
    assert said.out == f"published 3 messages to queue '{queue}'\n"
    messages = cli("get", queue, "--count", "9", "--json").json
    assert [each["payload"] for each in messages] == ["one", "two", "three"]


def test_an_exchange_routes(cli: Cli, queue: str, channel: Channel) -> None:
    channel.bind(queue, "amq.topic", f"{queue}.#")
    said = cli("publish", f"{queue}.new", "hello", "--exchange", "amq.topic")
    assert said.out == (
        f"published 1 message to exchange 'amq.topic' with routing key '{queue}.new'\n"
    )
    assert cli("get", queue, "--json").json[0]["exchange"] == "amq.topic"


def test_a_message_that_goes_nowhere_is_an_error(cli: Cli, refused: Any, vhost: str) -> None:
    # In a vhost of its own: in another there may be a queue with a name that is near.
    assert refused("publish", "orders", "hello", "--vhost", vhost) == (
        f"can't publish to queue 'orders' in vhost '{vhost}': there is no such queue: the message "
        f"went nowhere; 'warren queues declare orders --vhost {vhost}' makes it, 'warren topology "
        "apply' a whole file"
    )
    assert cli("queues", "declare", "orders", "--vhost", vhost).code == 0
    assert cli("publish", "orders", "hello", "--vhost", vhost).code == 0
    said = refused("publish", "ordres", "hello", "--vhost", vhost)
    assert "the message went nowhere; did you mean 'orders'? " in said


def test_a_message_that_no_binding_takes_is_an_error(cli: Cli, refused: Any, vhost: str) -> None:
    words = ("publish", "key", "hello", "--exchange", "amq.direct", "--vhost", vhost)
    assert refused(*words).endswith(
        "nothing is bound there for that key: the message went nowhere; 'warren bindings declare "
        f"amq.direct QUEUE --routing-key key --vhost {vhost}' binds a queue"
    )
    cli("queues", "declare", "orders", "--vhost", vhost)
    bound = cli(
        "bindings", "declare", "amq.direct", "orders", "--routing-key", "key", "--vhost", vhost
    )
    assert bound.code == 0
    assert cli(*words).code == 0


def test_an_exchange_that_is_not_there(refused: Any, name: Any) -> None:
    said = refused("publish", "k", "hello", "--exchange", "amq.topik")
    assert said == (
        "can't find exchange 'amq.topik' in vhost '/': it is not there; did you mean 'amq.topic'?"
    )


@pytest.mark.parametrize("command", ["get", "purge"])
def test_a_queue_that_is_not_there(refused: Any, queue: str, command: str) -> None:
    assert refused(command, f"{queue}x") == (
        f"can't find queue '{queue}x' in vhost '/': it is not there; did you mean '{queue}'?"
    )


def test_purging_empties_a_queue(cli: Cli, queue: str) -> None:
    cli("publish", queue, "hello")
    assert cli("purge", queue).out == f"purged queue '{queue}' in vhost '/'\n"
    assert cli("get", queue, "--json").json == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--property", "contnt_type=x"),
            "--property (argument): a message has no property 'contnt_type'; "
            "did you mean content_type?",
        ),
        (
            ("--property", "priority=x"),
            "--property (argument): priority must be a number, not 'x'",
        ),
        (("--header", "x"), "--header (argument): 'x' is not like NAME=VALUE"),
        (("--lines",), "--lines (argument): BODY must be - or @FILE then"),
    ],
)
def test_what_makes_no_sense_is_not_sent(
    refused: Any, queue: str, words: tuple[str, ...], said: str
) -> None:
    assert refused("publish", queue, "hello", *words, code=2) == said
