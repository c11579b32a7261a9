"""``warren ledger`` on a ledger that a drain has written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pika import spec

from tests.spark.drains import Task, publish
from tests.spark.pipelines import send
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from tests.support.wire import Channel
from warren.cli.ledger_rows import Rows
from warren.cli.main import main
from warren.errors import LedgerUnusable, ReplayStopped
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.replay import replay

on_one_broker = pytest.mark.parametrize("broker", ["warren"], indirect=True)


@pytest.fixture
def queue(channel: Channel, name: Callable[..., str]) -> str:
    queue = name("kept")
    channel.declare(queue)
    return queue


@pytest.fixture
def ledger(broker: TestBroker, channel: Channel, queue: str, tmp_path: Path) -> Path:
    """Five messages settled, three in doubt."""
    task = Task(broker.url, tmp_path / "ledger")
    publish(channel, queue, range(8), type="order", headers={"a": 1})
    task.run(queue, 0, 5)
    task.crash(queue, 5, 8, "after segment")
    return tmp_path / "ledger"


@on_one_broker
def test_ls_lists_segments_and_what_is_in_doubt(
    ledger: Path, queue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "ls", str(ledger), "--json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert [
        (row["queue"], row["start"], row["end"], row["rows"], row["state"]) for row in rows
    ] == [
        (queue, 0, 5, 5, "settled"),
        (queue, 5, 8, 3, "in doubt"),
    ]


@on_one_broker
def test_show_shows_messages_of_a_range(
    ledger: Path, queue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["ledger", "show", str(ledger), queue, "--from", "3", "--until", "6", "--json"]) == 0
    )
    rows = json.loads(capsys.readouterr().out)
    assert [(row["offset"], row["body"], row["headers"]) for row in rows] == [
        (3, "3", {"a": "1"}),
        (4, "4", {"a": "1"}),
        (5, "5", {"a": "1"}),
    ]

    assert main(["ledger", "show", str(ledger), queue]) == 0
    assert "order" in capsys.readouterr().out


@on_one_broker
def test_verify_names_what_is_damaged(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "verify", str(ledger)]) == 0
    assert "2 segments, 8 messages, 1 in doubt, 0 damaged" in capsys.readouterr().out

    damaged = min(ledger.glob("*.arrow"))
    damaged.write_bytes(damaged.read_bytes()[:-1])

    assert main(["ledger", "verify", str(ledger)]) == 1
    assert damaged.name in capsys.readouterr().out


def test_replay_publishes_again(
    broker: TestBroker, ledger: Path, queue: str, channel: Channel, name: Callable[..., str]
) -> None:
    other = name("again")
    channel.declare(other)
    given = ["ledger", "replay", str(ledger), queue, "--uri", broker.url, "--to", other, "--yes"]

    assert main([*given, "--until", "3"]) == 0

    found = [channel.get(other) for _ in range(3)]
    assert [message.body for message in found if message] == [b"0", b"1", b"2"]
    assert [message.properties.type for message in found if message] == ["order"] * 3
    assert channel.count(other) == 0


@on_one_broker
def test_replay_leaves_out_what_is_of_the_message_that_was_read_only(
    broker: TestBroker, channel: Channel, name: Callable[..., str], tmp_path: Path
) -> None:
    queue, other = name("counted"), name("again")
    for each in (queue, other):
        channel.declare(each)
    counts = {"x-delivery-count": 3, "x-acquired-count": 4}
    publish(channel, queue, [1], headers={**counts, "CC": ["nowhere"], "a": "b"})
    Task(broker.url, tmp_path / "ledger").run(queue, 0, 1)
    given = ["--uri", broker.url, "--to", other, "--yes"]

    assert main(["ledger", "replay", str(tmp_path / "ledger"), queue, *given]) == 0

    message = channel.get(other)
    assert message is not None
    assert message.properties.headers == {"a": "b"}


@on_one_broker
def test_replay_publishes_what_is_longer_as_text_than_it_was(
    broker: TestBroker, channel: Channel, name: Callable[..., str], tmp_path: Path
) -> None:
    queue, other = name("long"), name("again")
    for each in (queue, other):
        channel.declare(each)
    headers = {"first": "a", "binary": b"\xff" * 100_000, "last": "b"}
    send(broker.url, queue, b"7", correlation_id="\udce9" * 100, headers=headers)
    Task(broker.url, tmp_path / "ledger").run(queue, 0, 1)
    given = ["--uri", broker.url, "--to", other, "--yes"]

    assert main(["ledger", "replay", str(tmp_path / "ledger"), queue, *given]) == 0

    message = channel.get(other)
    assert message is not None
    assert message.properties.headers == {"first": "a", "last": "b"}
    assert message.properties.correlation_id == "\ufffd" * 85


def test_a_folder_without_a_ledger_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "nowhere"
    assert main(["ledger", "ls", str(nowhere)]) == 2
    assert f"there is no ledger at {nowhere}" in capsys.readouterr().err


@on_one_broker
def test_ls_lists_the_rest_and_marks_a_segment_that_is_damaged(
    ledger: Path, queue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = min(ledger.glob("*.arrow"))
    damaged.write_bytes(damaged.read_bytes()[:-1])

    assert main(["ledger", "ls", str(ledger)]) == 1
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert queue in first
    assert "damaged" in first
    assert "in doubt" in second


@on_one_broker
def test_ls_counts_the_octets_of_bodies(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "ls", str(ledger), "--json"]) == 0
    assert [row["bytes"] for row in json.loads(capsys.readouterr().out)] == [5, 3]


@on_one_broker
def test_a_damaged_marker_is_not_said_to_hold_messages(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ledger / "ledger.json").write_text("garbage")
    assert main(["ledger", "ls", str(ledger)]) == 2
    said = capsys.readouterr().err
    assert "ledger.json" in said
    assert "it holds no messages" in said
    assert "nowhere else" not in said


@on_one_broker
def test_replay_to_a_queue_that_is_not_there_says_to_declare_it(
    broker: TestBroker, ledger: Path, queue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["ledger", "replay", str(ledger), queue, "--uri", broker.url, "--yes"]
    assert main([*given, "--to", f"{queue}-nobody"]) == 2
    said = capsys.readouterr().err
    assert f"no queue '{queue}-nobody'" in said
    assert "declare it first" in said


# -- replay that ends in between -----------------------------------------------------------------
def rows_until(ledger: Path, queue: str, offset: int, event: Callable[[], Any]) -> Iterator[Any]:
    """What the ledger holds; at that offset something happens."""
    for row in Rows(Ledger.at(str(ledger)), queue, 0, None):
        if row["offset"] == offset:
            event()
        yield row


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.client.blocking_replay._WINDOW", 2)


@pytest.mark.usefixtures("few_at_once")
def test_replay_to_a_queue_that_is_deleted_meanwhile_ends_and_says_so(
    broker: TestBroker, ledger: Path, queue: str, channel: Channel, name: Callable[..., str]
) -> None:
    other = name("again")
    channel.declare(other)
    rows = rows_until(ledger, queue, 5, lambda: channel.call(spec.Queue.Delete(queue=other)))

    with pytest.raises(ReplayStopped, match=f"queue '{other}' was deleted meanwhile") as stopped:
        replay(rows, broker.url, other)

    assert stopped.value.reached in (4, 5)
    assert stopped.value.confirmed == stopped.value.reached
    assert f"go on with --from {stopped.value.reached}" in str(stopped.value)


@pytest.mark.usefixtures("few_at_once")
def test_replay_whose_connection_breaks_says_how_far_it_got(
    broker: TestBroker, ledger: Path, queue: str, channel: Channel, name: Callable[..., str]
) -> None:
    other = name("again")
    channel.declare(other)
    with Proxy(broker.host, broker.port) as proxy:
        with pytest.raises(ReplayStopped) as stopped:
            replay(rows_until(ledger, queue, 5, proxy.cut), proxy.url, other)
        reached = stopped.value.reached
        assert reached in (3, 4, 5)
        assert stopped.value.confirmed == reached
        given = ["ledger", "replay", str(ledger), queue, "--uri", proxy.url, "--to", other, "--yes"]
        assert main([*given, "--from", str(reached)]) == 0

    bodies = [int(body) for body in channel.drain(other)]
    assert bodies[:reached] == list(range(reached))
    assert bodies[-(8 - reached) :] == list(range(reached, 8))


@pytest.mark.usefixtures("few_at_once")
def test_replay_to_a_queue_that_is_full_says_how_far_it_got(
    broker: TestBroker, ledger: Path, queue: str, channel: Channel, name: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    other = name("again")
    channel.declare(other, arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    given = ["ledger", "replay", str(ledger), queue, "--uri", broker.url, "--to", other, "--yes"]

    assert main(given) == 1

    assert "a queue is full" in (said := capsys.readouterr().err)
    assert "go on with --from" in said


def test_replay_whose_ledger_fails_says_how_far_it_got(
    broker: TestBroker, ledger: Path, queue: str, channel: Channel, name: Callable[..., str]
) -> None:
    other = name("again")
    channel.declare(other)

    def forget() -> None:
        raise LedgerUnusable("there", "it is gone")

    with pytest.raises(ReplayStopped, match="there can't be read: it is gone; 5 messages") as told:
        replay(rows_until(ledger, queue, 5, forget), broker.url, other)

    assert told.value.reached == 5
    assert channel.count(other) == 5
