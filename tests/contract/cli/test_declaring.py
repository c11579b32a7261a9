"""``warren queues|exchanges|bindings declare|delete``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.cli.conftest import Cli
from tests.support.eventually import eventually


@pytest.fixture
def there(vhost: str) -> tuple[str, str]:
    return ("--vhost", vhost)


def test_a_queue_is_made_once(cli: Cli, vhost: str, there: tuple[str, str]) -> None:
    words = ("queues", "declare", "orders", "--argument", "x-max-length=5", *there)
    assert cli(*words).out == f"made queue 'orders' in vhost '{vhost}'\n"
    assert cli(*words).out == (
        f"queue 'orders' in vhost '{vhost}' was there already, as it should be\n"
    )
    row = cli("queues", "show", "orders", "--json", *there).json
    assert (row["durable"], row["auto_delete"], row["arguments"]) == (
        True,
        False,
        {"x-max-length": 5},
    )


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_a_queue_has_a_type(cli: Cli, there: tuple[str, str], kind: str) -> None:
    assert cli("queues", "declare", "orders", "--type", kind, *there).code == 0
    row = cli("queues", "show", "orders", "--json", *there).json
    assert row["arguments"]["x-queue-type"] == kind


def test_a_queue_may_be_brief(cli: Cli, there: tuple[str, str]) -> None:
    assert cli("queues", "declare", "orders", "--transient", "--auto-delete", *there).code == 0
    row = cli("queues", "show", "orders", "--json", *there).json
    assert (row["durable"], row["auto_delete"]) == (False, True)


def test_a_queue_that_is_another_is_refused(
    cli: Cli, refused: Any, vhost: str, there: tuple[str, str]
) -> None:
    cli("queues", "declare", "orders", *there)
    said = refused("queues", "declare", "orders", "--argument", "x-max-length=5", *there)
    assert said.startswith(
        f"can't declare queue 'orders' in vhost '{vhost}': inequivalent arg 'x-max-length'"
    )


@pytest.mark.parametrize("text", ["x-max-length", "=5"])
def test_an_argument_has_a_name_and_a_value(
    refused: Any, there: tuple[str, str], text: str
) -> None:
    said = refused("queues", "declare", "orders", "--argument", text, *there, code=2)
    assert said == f"--argument (argument): '{text}' is not like NAME=VALUE"


@pytest.mark.parametrize("what", ["queues", "exchanges"])
def test_a_vhost_that_is_not_there_is_told(refused: Any, vhost: str, what: str) -> None:
    said = refused(what, "declare", "orders", "--vhost", f"{vhost}x")
    assert said.startswith(f"can't find vhost '{vhost}x': it is not there")


def test_an_empty_queue_is_deleted_at_once(cli: Cli, refused: Any, there: tuple[str, str]) -> None:
    cli("queues", "declare", "orders", *there)
    assert cli("queues", "delete", "orders", *there).out.startswith("deleted queue 'orders'")
    assert "it is not there" in refused("queues", "delete", "orders", *there)


def test_an_exchange_is_made_and_deleted(cli: Cli, refused: Any, there: tuple[str, str]) -> None:
    words = ("--type", "topic", "--internal", "--argument", "alternate-exchange=amq.fanout")
    assert cli("exchanges", "declare", "events", *words, *there).code == 0
    row = cli("exchanges", "show", "events", "--json", *there).json
    assert (row["type"], row["internal"]) == ("topic", True)
    assert row["arguments"] == {"alternate-exchange": "amq.fanout"}
    assert cli("exchanges", "delete", "events", *there).code == 0
    assert "it is not there" in refused("exchanges", "delete", "events", *there)


def test_an_exchange_of_no_type_is_refused(
    refused: Any, vhost: str, there: tuple[str, str]
) -> None:
    said = refused("exchanges", "declare", "events", "--type", "topik", *there)
    assert said.startswith(f"can't declare exchange 'events' in vhost '{vhost}': ")
    assert "topik" in said


def test_an_exchange_in_use_stays_if_that_is_wanted(
    cli: Cli, refused: Any, there: tuple[str, str]
) -> None:
    cli("exchanges", "declare", "events", *there)
    cli("queues", "declare", "orders", *there)
    cli("bindings", "declare", "events", "orders", *there)
    said = refused("exchanges", "delete", "events", "--if-unused", *there)
    assert "in use" in said


def test_a_queue_is_bound_and_unbound(
    cli: Cli, refused: Any, vhost: str, there: tuple[str, str]
) -> None:
    cli("queues", "declare", "orders", *there)
    ends = ("amq.topic", "orders", "--routing-key", "a.#", *there)
    assert cli("bindings", "declare", *ends).out == (
        "bound queue 'orders' to exchange 'amq.topic' with routing key 'a.#'\n"
    )
    assert cli("bindings", "show", "orders", *there).rows[-1][:4] == [
        "amq.topic",
        "orders",
        "queue",
        "a.#",
    ]
    assert refused("bindings", "delete", "amq.topic", "orders", *there) == (
        "can't unbind queue 'orders' from exchange 'amq.topic': there is none such; the bindings "
        "between them have the routing keys 'a.#'"
    )
    assert cli("bindings", "delete", *ends).code == 0
    assert refused("bindings", "delete", *ends).endswith("there is no binding between them")


def test_a_binding_has_arguments(cli: Cli, there: tuple[str, str]) -> None:
    cli("queues", "declare", "orders", *there)
    ends = ("amq.headers", "orders", "--argument", "x-match=any", "--argument", "n=5", *there)
    assert cli("bindings", "declare", *ends).code == 0
    rows = cli("bindings", "show", "orders", "--json", *there).json
    assert {"x-match": "any", "n": 5} in [row["arguments"] for row in rows]
    assert cli("bindings", "delete", *ends).code == 0


def test_an_exchange_is_bound_to_an_exchange(cli: Cli, there: tuple[str, str]) -> None:
    cli("exchanges", "declare", "events", *there)
    ends = ("amq.topic", "events", "--to-exchange", "--routing-key", "a", *there)
    assert cli("bindings", "declare", *ends).out == (
        "bound exchange 'events' to exchange 'amq.topic' with routing key 'a'\n"
    )
    assert cli("bindings", "delete", *ends).code == 0


@pytest.mark.parametrize(
    ("ends", "missing"),
    [(("amq.topik", "orders"), "exchange 'amq.topik'"), (("amq.topic", "ordes"), "queue 'ordes'")],
)
def test_the_end_that_is_missing_is_told(
    cli: Cli, refused: Any, vhost: str, there: tuple[str, str], ends: tuple[str, str], missing: str
) -> None:
    cli("queues", "declare", "orders", *there)
    said = refused("bindings", "declare", *ends, *there)
    assert said.startswith(f"can't find {missing} in vhost '{vhost}': it is not there; did you")


def test_messages_are_not_deleted_unasked(cli: Cli, refused: Any, there: tuple[str, str]) -> None:
    cli("queues", "declare", "orders", *there)
    cli("publish", "orders", "hello", *there)

    def known() -> bool:
        return bool(cli("queues", "show", "orders", "--json", *there).json.get("messages"))

    eventually(known, within_s=30)  # RabbitMQ learns of it some seconds later
    said = refused("queues", "delete", "orders", *there, code=2)
    assert said == (
        "--yes (missing): needed where nobody can be asked: delete queue 'orders' and the message "
        "in it?"
    )
    assert "not empty" in refused("queues", "delete", "orders", "--if-empty", *there)
    assert cli("queues", "delete", "orders", "--yes", *there).code == 0
