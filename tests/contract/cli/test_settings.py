"""``warren policy`` and ``warren definitions``."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cli.conftest import Cli
from tests.support.brokers import TestBroker


class TestPolicies:
    def test_a_policy_is_set_listed_and_deleted(self, cli: Cli, vhost: str) -> None:
        at = ("--vhost", vhost)
        definition = ("max-length=5", "overflow=reject-publish")
        said = cli("policy", "set", "short", "^a", *definition, "--apply-to", "queues", *at)
        assert said.out == f"set policy 'short' in vhost '{vhost}'\n"
        (row,) = cli("policy", "list", *at, "--json").json
        assert row["definition"] == {"max-length": 5, "overflow": "reject-publish"}
        assert (row["pattern"], row["apply-to"], row["priority"]) == ("^a", "queues", 0)
        assert cli("policy", "delete", "short", *at).code == 0
        assert cli("policy", "list", *at, "--json").json == []

    def test_a_definition_may_be_json(self, cli: Cli, vhost: str) -> None:
        cli("policy", "set", "p", "^a", '{"message-ttl": 5}', "--priority", "3", "--vhost", vhost)
        (row,) = cli("policy", "list", "--vhost", vhost, "--json").json
        assert (row["definition"], row["priority"]) == ({"message-ttl": 5}, 3)

    def test_what_the_broker_does_not_know_is_refused(self, refused: Any, vhost: str) -> None:
        said = refused("policy", "set", "p", "^a", "max-size=5", "--vhost", vhost)
        assert said == (
            f"can't set policy 'p' in vhost '{vhost}': "
            '[{"max-size",5}] are not recognised policy settings'
        )

    def test_a_policy_that_is_not_there(self, cli: Cli, refused: Any, vhost: str) -> None:
        cli("policy", "set", "short", "^a", "max-length=5", "--vhost", vhost)
        assert refused("policy", "delete", "shor", "--vhost", vhost) == (
            f"can't delete policy 'shor' in vhost '{vhost}': it is not there; did you mean 'short'?"
        )


TOPOLOGY = {
    "queues": [
        {"name": "q", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 5}}
    ],
    "exchanges": [
        {
            "name": "e",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {},
        }
    ],
    "bindings": [
        {
            "source": "e",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "a.#",
            "arguments": {},
        }
    ],
}


class TestDefinitions:
    def test_a_vhost_goes_through_a_file(self, cli: Cli, vhost: str, tmp_path: Path) -> None:
        source, copy = tmp_path / "source.json", tmp_path / "copy.json"
        source.write_text(json.dumps(TOPOLOGY))
        said = cli("definitions", "import", str(source), "--vhost", vhost)
        assert said.out == f"took 1 exchange, 1 queue, 1 binding from {source}\n"
        said = cli("definitions", "export", str(copy), "--vhost", vhost)
        assert said.out == f"wrote 1 exchange, 1 queue, 1 binding to {copy}\n"
        found = json.loads(copy.read_text())
        assert {kind: found[kind] for kind in TOPOLOGY} == TOPOLOGY

    def test_everything_is_exported_into_a_file_of_ones_own(
        self, cli: Cli, vhost: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "all.json"
        assert cli("definitions", "export", str(file)).code == 0
        assert {"name": vhost} in [
            {"name": v["name"]} for v in json.loads(file.read_text())["vhosts"]
        ]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_standard_output_and_input_will_do(self, cli: Cli, vhost: str) -> None:
        cli("definitions", "import", "-", "--vhost", vhost, stdin=json.dumps(TOPOLOGY).encode())
        found = cli("definitions", "export", "--vhost", vhost).json
        assert found["queues"] == TOPOLOGY["queues"]

    def test_a_vhost_that_is_not_there(self, refused: Any, vhost: str) -> None:
        assert refused("definitions", "export", "--vhost", f"{vhost}x").startswith(
            f"can't find vhost '{vhost}x'"
        )

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("{\n oops", "{file}:2: not JSON: Expecting property name enclosed in double quotes"),
            ("[]", "{file} holds no definitions: it must be a JSON object"),
        ],
    )
    def test_a_file_that_is_none_is_told_with_its_line(
        self, refused: Any, tmp_path: Path, text: str, told: str, broker: TestBroker
    ) -> None:
        file = tmp_path / "bad.json"
        file.write_text(text)
        said = refused("definitions", "import", str(file), code=2)
        assert said == "FILE (argument): " + told.format(file=file)

    def test_what_the_broker_refuses_is_told(
        self, refused: Any, vhost: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "bad.json"
        queue = {**TOPOLOGY["queues"][0], "arguments": {"x-max-length": -1}}
        file.write_text(json.dumps({"queues": [queue]}))
        said = refused("definitions", "import", str(file), "--vhost", vhost)
        assert said.startswith(f"can't import {file}: ")
