"""``warren topology``: apply, diff, export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cli.conftest import Cli
from tests.support.brokers import TestBroker
from warren.client.management import Management
from warren.errors import ApiRefused
from warren.topology.diff import CREATE, Change
from warren.topology.model import Binding, Exchange, Policy, Queue
from warren.topology.remote import carry_out
from warren.topology.rules import problems

SHOP = """
exchanges:
  orders: {type: topic}
  dead: {type: fanout, durable: false, auto_delete: true}
queues:
  eu: {type: quorum, arguments: {x-dead-letter-exchange: dead}}
  us: {durable: false, arguments: {x-max-length: 1000, x-own: [1, 2.5, {a: true}]}}
  dead:
bindings:
  - {source: orders, queue: eu, routing_key: "eu.#"}
  - {source: orders, exchange: amq.fanout}
  - {source: dead, queue: dead}
  - {source: amq.headers, queue: us, arguments: {x-match: any, country: US, size: 5}}
policies:
  short: {pattern: "^u", apply_to: queues, priority: 1, definition: {max-length: 500}}
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        file = tmp_path / "shop.yaml"
        file.write_text(text)
        return str(file)

    return write


class TestApply:
    def test_a_file_is_made_once(self, cli: Cli, vhost: str, write: Any) -> None:
        words = ("topology", "apply", write(SHOP), "--vhost", vhost)
        first = cli(*words)
        assert first.code == 0, first
        assert first.out.splitlines()[-1] == "10 made"
        assert cli(*words).out == f"nothing to do: vhost '{vhost}' is as the file says\n"

    def test_what_is_made_is_what_the_file_says(self, cli: Cli, vhost: str, write: Any) -> None:
        cli("topology", "apply", write(SHOP), "--vhost", vhost)
        queues = cli("queues", "list", "--vhost", vhost, "--json").json
        assert {row["name"]: (row["durable"], row["arguments"]) for row in queues} == {
            "dead": (True, {}),
            "eu": (True, {"x-queue-type": "quorum", "x-dead-letter-exchange": "dead"}),
            "us": (False, {"x-max-length": 1000, "x-own": [1, 2.5, {"a": True}]}),
        }
        bindings = cli("bindings", "list", "--vhost", vhost, "--json").json
        assert {
            (row["source"], row["destination_type"], row["destination"], row["routing_key"])
            for row in bindings
            if row["source"]
        } == {
            ("orders", "queue", "eu", "eu.#"),
            ("orders", "exchange", "amq.fanout", ""),
            ("dead", "queue", "dead", ""),
            ("amq.headers", "queue", "us", ""),
        }

    def test_a_vhost_that_the_file_names_is_made(
        self, cli: Cli, broker: TestBroker, name: Callable[[str], str], write: Any
    ) -> None:
        shop = name("a shop")
        file = write(f"vhost: {shop}\n{SHOP}")
        assert f"  + vhost {shop}\n" in cli("topology", "diff", file).out
        try:
            assert cli("topology", "apply", file).out.endswith("11 made\n")
            assert cli("topology", "diff", file, "--exit-code").code == 0
        finally:
            broker.delete_vhost(shop)

    def test_a_vhost_that_only_the_option_names_is_not_made(
        self, refused: Any, name: Callable[[str], str], write: Any
    ) -> None:
        shop = name("typo")
        said = refused("topology", "apply", write(SHOP), "--vhost", shop)
        assert said.startswith(f"can't find vhost '{shop}': it is not there; 'warren vhost add")

    def test_a_policy_is_changed(self, cli: Cli, vhost: str, write: Any) -> None:
        cli("topology", "apply", write(SHOP), "--vhost", vhost)
        said = cli("topology", "apply", write(SHOP.replace("500", "600")), "--vhost", vhost)
        assert said.out.splitlines()[1:] == [
            "  ~ policy short",
            "      max-length is 500, the file has 600",
            "1 changed",
        ]
        (policy,) = cli("policy", "list", "--vhost", vhost, "--json").json
        assert policy["definition"] == {"max-length": 600}

    def test_nothing_is_touched_if_a_part_would_be_refused(
        self, cli: Cli, refused: Any, vhost: str, write: Any
    ) -> None:
        cli(
            "topology",
            "apply",
            write("queues: {us: {arguments: {x-max-length: 1}}}"),
            "--vhost",
            vhost,
        )
        before = cli("topology", "export", "--vhost", vhost).out
        file = write(SHOP)
        assert refused("topology", "apply", file, "--vhost", vhost) == (
            f"the broker would refuse one thing in {file} (see !): nothing was changed"
        )
        assert cli("topology", "export", "--vhost", vhost).out == before


class TestDiff:
    def test_it_shows_and_touches_nothing(self, cli: Cli, vhost: str, write: Any) -> None:
        words = ("topology", "diff", write(SHOP), "--vhost", vhost)
        for _ in range(2):
            lines = cli(*words).out.splitlines()
            assert "  + queue eu (quorum, x-dead-letter-exchange dead)" in lines
            assert "  + binding orders -> queue eu with 'eu.#'" in lines
            assert lines[-1] == "10 to make"

    def test_the_exit_code_can_tell(self, cli: Cli, vhost: str, write: Any) -> None:
        words = ("topology", "diff", write(SHOP), "--vhost", vhost)
        assert (cli(*words).code, cli(*words, "--exit-code").code) == (0, 1)

    def test_a_queue_that_can_not_be_changed_is_shown(
        self, cli: Cli, vhost: str, write: Any
    ) -> None:
        cli("topology", "apply", write(SHOP), "--vhost", vhost)
        said = cli("topology", "diff", write(SHOP.replace("1000", "2000")), "--vhost", vhost)
        assert said.code == 1
        assert said.out.splitlines()[1:] == [
            "  ! queue us (line 7)",
            "      x-max-length is 1000, the file has 2000",
            "      a queue can't be changed: delete it first, or change the file",
            "1 refused",
        ]

    def test_programs_get_json(self, cli: Cli, vhost: str, write: Any) -> None:
        found = cli("topology", "diff", write("queues: {a: }"), "--vhost", vhost, "--json").json
        change = {
            "action": "create",
            "kind": "queue",
            "name": "a",
            "details": ["classic"],
            "doubts": [],
            "line": 1,
        }
        assert found == {"vhost": vhost, "changes": [change], "refused": [], "not_in_file": []}

    def test_a_mistake_is_told_with_its_line(self, refused: Any, write: Any) -> None:
        file = write("queues:\n  a: {durabel: true}\n")
        assert refused("topology", "diff", file, code=2) == (
            f"{file}:2: queue 'a': unknown key 'durabel'; did you mean 'durable'?"
        )

    def test_a_file_that_is_not_there(self, refused: Any, tmp_path: Path) -> None:
        file = tmp_path / "absent.yaml"
        said = refused("topology", "diff", str(file), code=2)
        assert said == f"FILE (argument): there is no file {file}"


class TestPrune:
    def test_without_it_what_is_not_in_the_file_stays(
        self, cli: Cli, vhost: str, write: Any
    ) -> None:
        cli("topology", "apply", write(SHOP), "--vhost", vhost)
        said = cli("topology", "apply", write("queues: {dead: }"), "--vhost", vhost)
        assert said.out == (
            f"nothing to do: vhost '{vhost}' is as the file says; "
            "5 things are not in the file (--prune deletes)\n"
        )

    def test_it_deletes_what_is_not_in_the_file(self, cli: Cli, vhost: str, write: Any) -> None:
        cli("topology", "apply", write(SHOP), "--vhost", vhost)
        small = write("exchanges: {orders: {type: topic}}\nqueues: {dead: }")
        words = ("topology", "apply", small, "--vhost", vhost, "--prune")
        said = cli(*words, "--yes")
        assert said.out.splitlines()[-1] == "5 deleted"
        assert cli("topology", "export", "--vhost", vhost).out.splitlines()[1:] == [
            f"vhost: {vhost}",
            "",
            "exchanges:",
            "  orders: {type: topic}",
            "",
            "queues:",
            "  dead: {}",
        ]

    def test_it_asks(self, refused: Any, cli: Cli, vhost: str, write: Any) -> None:
        cli("topology", "apply", write(SHOP), "--vhost", vhost)
        said = refused("topology", "apply", write("{}"), "--vhost", vhost, "--prune", code=2)
        assert said == (
            "--yes (missing): needed where nobody can be asked: "
            f"delete 6 things from vhost '{vhost}'?"
        )
        assert cli("topology", "diff", write(SHOP), "--vhost", vhost, "--exit-code").code == 0


class TestExport:
    def test_what_is_exported_can_be_applied_elsewhere(
        self, cli: Cli, broker: TestBroker, vhost: str, name: Callable[[str], str], write: Any
    ) -> None:
        cli("topology", "apply", write(SHOP), "--vhost", vhost)
        file = write(cli("topology", "export", "--vhost", vhost).out)
        assert cli("topology", "diff", file, "--prune", "--exit-code").code == 0
        other = name("other")
        broker.add_vhost(other)
        try:
            assert cli("topology", "apply", file, "--vhost", other).out.endswith("10 made\n")
            said = cli("topology", "diff", file, "--vhost", other, "--prune", "--exit-code")
            assert (said.code, said.out.partition(":")[0]) == (0, "nothing to do")
        finally:
            broker.delete_vhost(other)

    def test_a_file_is_not_overwritten(
        self, cli: Cli, refused: Any, vhost: str, tmp_path: Path
    ) -> None:
        file = str(tmp_path / "shop.yaml")
        words = ("topology", "export", file, "--vhost", vhost)
        assert cli(*words).out == f"wrote 0 things to {file}\n"
        assert refused(*words, code=2) == (
            f"FILE (argument): {file} is there already; --force writes over it"
        )
        assert cli(*words, "--force").code == 0

    def test_connections_own_and_the_brokers_own_are_left_out(
        self, cli: Cli, broker: TestBroker, vhost: str, connect: Any
    ) -> None:
        channel = connect(url=broker.url + vhost).channel()
        channel.declare("mine", exclusive=True)
        channel.bind("mine", "amq.direct", "k")
        channel.declare("")
        assert cli("topology", "export", "--vhost", vhost).out.splitlines()[1:] == [
            f"vhost: {vhost}"
        ]


def queue(
    kind: str = "classic", *, durable: bool = True, auto_delete: bool = False, **more: Any
) -> Queue:
    arguments = {name.replace("_", "-"): value for name, value in more.items()}
    return Queue("q", kind, durable, auto_delete, arguments)


ITEMS = [
    queue(durable=False, auto_delete=True),
    queue("quorum", durable=False),
    queue("quorum", auto_delete=True),
    queue("stream", durable=False),
    queue("quorum", x_max_priority=5),
    queue("stream", x_message_ttl=5),
    queue("stream", x_max_age="7D"),
    queue("stream", x_max_age="7"),
    queue("stream", x_max_age="0s"),
    queue(x_max_age="7D"),
    queue(x_max_length=0),
    queue(x_max_length=-1),
    queue(x_max_length="5"),
    queue(x_max_length=1.5),
    queue(x_max_length=True),
    queue(x_message_ttl=0),
    queue(x_message_ttl=315_360_000_000),
    queue(x_message_ttl=315_360_000_001),
    queue(x_expires=0),
    queue(x_expires=1_000_000),
    queue(x_max_priority=255),
    queue(x_max_priority=256),
    queue(x_overflow="reject-publish-dlx"),
    queue(x_overflow="none"),
    queue(x_single_active_consumer="yes"),
    queue(x_dead_letter_exchange=5),
    queue(x_dead_letter_routing_key="k"),
    queue(x_dead_letter_routing_key="k", x_dead_letter_exchange="d"),
    queue(x_queue_mode="lazy"),
    queue(x_queue_mode="eager"),
    queue("quorum", x_delivery_limit=-1),
    queue(x_delivery_limit=3),
    queue(x_my_own={"a": [1, "b"]}),
    Queue("amq.mine"),
    Queue("q" * 255),
    Exchange("amq.mine"),
    Exchange("e", "headers", durable=False, auto_delete=True, internal=True),
    Exchange("e", "toppic"),
    Exchange("e", arguments={"alternate-exchange": 5}),
    Exchange("e", arguments={"alternate-exchange": "absent"}),
    Binding("", "there", routing_key="k"),
    Binding("amq.direct", "there", routing_key="k"),
    Binding("amq.direct", "amq.topic", to="exchange", routing_key="k"),
    Binding("amq.headers", "there", arguments={"x-match": "some"}),
    Binding("amq.headers", "there", arguments={"x-match": "any-with-x"}),
    Binding("hash", "there", routing_key="eu"),
    Binding("hash", "there", routing_key="0"),
    Binding("hash", "there", routing_key="2"),
    Policy("p", "^a", {}),
    Policy("p", "a(", {"max-length": 5}),
    Policy("p", r"^(?!amq\.)", {"max-length": 5}),
    Policy("p", "^a", {"max-size": 5}),
    Policy("p", "^a", {"max-length": "5"}),
    Policy("p", "^a", {"max-length": -5}),
    Policy("p", "^a", {"message-ttl": 0, "expires": 5, "dead-letter-exchange": "d"}),
    Policy("p", "^a", {"expires": 0}),
    Policy("p", "^a", {"overflow": "none"}),
    Policy("p", "^a", {"queue-mode": "lazy"}, apply_to="queues", priority=-1),
    Policy("p", "^a", {"alternate-exchange": "e"}, apply_to="exchanges"),
]


def _id(item: Any) -> str:
    facts = " ".join(f"{name}={value}" for name, value in item.facts().items())
    return f"{item.kind} {facts}"


@pytest.mark.parametrize("item", ITEMS, ids=_id)
def test_what_is_refused_beforehand_is_what_the_broker_refuses(
    broker: TestBroker, vhost: str, item: Any
) -> None:
    with Management(broker.management) as api:
        api.put("queues", vhost, "there")
        api.put("exchanges", vhost, "hash", body={"type": "x-consistent-hash"})
        types = [each["name"] for each in api.get("overview")["exchange_types"]]
        told = list(problems(item, exchange_types=types, type_of={"hash": "x-consistent-hash"}))
        try:
            carry_out(api, vhost, Change(CREATE, item.kind, str(item), item=item))
            refusal = None
        except ApiRefused as error:
            refusal = str(error)
    assert bool(told) == bool(refusal), (told, refusal)
