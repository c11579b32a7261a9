"""``warren user``, ``warren vhost``, ``warren permission``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.cli.conftest import Cli
from tests.support.brokers import TestBroker


@pytest.fixture
def alice(broker: TestBroker, name: Callable[[str], str]) -> Iterator[str]:
    """A name for a user, who is gone after the test."""
    made = name("alice")
    yield made
    with suppress(Exception):  # the test may have made none
        broker.delete_user(made)


def as_user(broker: TestBroker, user: str, password: str) -> str:
    return broker.management.replace("http://", f"http://{quote(user)}:{quote(password, safe='')}@")


class TestUsers:
    def test_a_user_is_added_and_can_log_in(self, cli: Cli, broker: TestBroker, alice: str) -> None:
        added = cli(
            "user", "add", alice, "--password-stdin", "--tags", "management", stdin=b"a b\n"
        )
        assert added.code == 0
        assert "a b" not in added.out
        said = cli("vhost", "list", "--url", as_user(broker, alice, "a b"))
        assert said.code == 0

    def test_a_password_is_changed_and_the_tags_stay(
        self, cli: Cli, broker: TestBroker, alice: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", "--tags", "management", stdin=b"old\n")
        assert cli("user", "passwd", alice, "--password-stdin", stdin=b"new\n").out == (
            f"changed the password of user '{alice}'\n"
        )
        codes = [
            cli("vhost", "list", "--url", as_user(broker, alice, each)).code
            for each in ("old", "new")
        ]
        assert codes == [1, 0]

    def test_a_user_that_is_there_is_not_overwritten(
        self, cli: Cli, refused: Any, alice: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", stdin=b"one\n")
        said = refused("user", "add", alice, "--password-stdin", stdin=b"two\n")
        assert said == (
            f"can't add user '{alice}': there is one; 'warren user passwd {alice}' changes the "
            "password"
        )

    def test_users_are_listed_without_their_hashes(self, cli: Cli, alice: str) -> None:
        cli("user", "add", alice, "--password-stdin", "--tags", "monitoring", stdin=b"x\n")
        assert [alice, "monitoring"] in cli("user", "list").rows
        assert "hash" not in cli("user", "list", "--json").out

    def test_a_user_is_deleted(self, cli: Cli, refused: Any, alice: str) -> None:
        cli("user", "add", alice, "--password-stdin", stdin=b"x\n")
        assert cli("user", "delete", alice).out == f"deleted user '{alice}'\n"
        assert refused("user", "delete", alice).startswith(f"can't find user '{alice}'")
        assert refused("user", "passwd", alice).startswith(f"can't find user '{alice}'")

    def test_who_may_not_administer_is_told_so(
        self, cli: Cli, refused: Any, broker: TestBroker, alice: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", "--tags", "monitoring", stdin=b"x\n")
        said = refused("user", "list", "--url", as_user(broker, alice, "x"))
        assert said == "can't list users: Not administrator user"

    def test_who_has_no_tag_is_not_let_in(
        self, cli: Cli, refused: Any, broker: TestBroker, alice: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", stdin=b"x\n")
        said = refused("queues", "list", "--url", as_user(broker, alice, "x"))
        assert said == f"{broker.management} does not let user '{alice}' in: Not management user"

    def test_without_a_terminal_a_password_must_come_from_standard_input(
        self, refused: Any, alice: str
    ) -> None:
        assert refused("user", "add", alice, code=2) == (
            f"password (user '{alice}'): no terminal to ask at; give it with --password-stdin"
        )


class TestVhosts:
    def test_a_vhost_is_added_listed_and_deleted(
        self, cli: Cli, refused: Any, name: Callable[[str], str]
    ) -> None:
        shop = name("a/b c")
        assert cli("vhost", "add", shop).out == f"added vhost '{shop}'\n"
        assert cli("vhost", "add", shop).out == f"vhost '{shop}' was there already\n"
        assert shop in [row["name"] for row in cli("vhost", "list", "--json").json]
        assert refused("vhost", "delete", shop, code=2).startswith("--yes (missing): needed where")
        assert cli("vhost", "delete", shop, "--yes").out == f"deleted vhost '{shop}'\n"
        assert refused("vhost", "delete", shop, "--yes").startswith(f"can't find vhost '{shop}'")


class TestPermissions:
    def test_permissions_are_set_listed_and_cleared(
        self, cli: Cli, refused: Any, alice: str, vhost: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", stdin=b"x\n")
        said = cli("permission", "set", alice, "^a", "^b", "", "--vhost", vhost)
        assert said.out == f"set permissions of user '{alice}' in vhost '{vhost}'\n"
        assert cli("permission", "list", alice).rows == [[alice, vhost, "^a", "^b", "-"]]
        assert cli("permission", "clear", alice, "--vhost", vhost).code == 0
        assert cli("permission", "list", alice, "--json").json == []
        assert refused("permission", "clear", alice, "--vhost", vhost) == (
            f"can't clear permissions of user '{alice}' in vhost '{vhost}': it has none"
        )

    def test_a_pattern_that_is_none_is_refused(self, refused: Any, vhost: str) -> None:
        said = refused("permission", "set", "guest", "(", "", "", "--vhost", vhost)
        assert said.startswith(
            f"can't set permissions of user 'guest' in vhost '{vhost}': invalid_"
        )

    def test_it_is_told_which_of_the_two_is_missing(
        self, refused: Any, alice: str, vhost: str
    ) -> None:
        said = refused("permission", "set", alice, "", "", "", "--vhost", vhost)
        assert said.startswith(f"can't find user '{alice}'")
        said = refused("permission", "set", "guest", "", "", "", "--vhost", f"{vhost}x")
        assert said == f"can't find vhost '{vhost}x': it is not there; did you mean '{vhost}'?"


class TestTags:
    def test_tags_are_changed_and_the_password_stays(
        self, cli: Cli, broker: TestBroker, alice: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", stdin=b"x\n")
        said = cli("user", "tags", alice, "monitoring", "policymaker")
        assert said.out == f"user '{alice}' has the tags monitoring,policymaker now\n"
        assert cli("overview", "--url", as_user(broker, alice, "x")).code == 0
        assert cli("user", "tags", alice).out == f"user '{alice}' has no tags now\n"
        assert cli("overview", "--url", as_user(broker, alice, "x")).code == 1

    def test_a_user_that_is_not_there_has_none(self, refused: Any, alice: str) -> None:
        assert refused("user", "tags", alice, "management").startswith(f"can't find user '{alice}'")


class TestLimits:
    def test_limits_of_a_user_are_set_listed_and_taken_away(
        self, cli: Cli, refused: Any, alice: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", stdin=b"x\n")
        said = cli("user", "limit", alice, "max-connections", "5")
        assert said.out == f"set max-connections of user '{alice}' to 5\n"
        cli("user", "limit", alice, "max-channels", "0")
        assert [alice, "5", "0"] in cli("user", "limits").rows
        said = cli("user", "limit", alice, "max-channels", "none")
        assert said.out == f"took away max-channels of user '{alice}'\n"
        assert [alice, "5", "-"] in cli("user", "limits").rows

    def test_limits_of_a_vhost_hold(self, cli: Cli, refused: Any, vhost: str) -> None:
        assert cli("vhost", "limit", vhost, "max-queues", "1").code == 0
        assert [vhost, "-", "1"] in cli("vhost", "limits").rows
        assert cli("queues", "declare", "first", "--vhost", vhost).code == 0
        said = refused("queues", "declare", "second", "--vhost", vhost)
        assert "queue limit in vhost" in said
        cli("vhost", "limit", vhost, "max-queues", "none")
        assert cli("queues", "declare", "second", "--vhost", vhost).code == 0

    @pytest.mark.parametrize("value", ["many", "-1", "1.5"])
    def test_a_limit_is_a_number(self, refused: Any, vhost: str, value: str) -> None:
        said = refused("vhost", "limit", "--", vhost, "max-queues", value, code=2)
        assert said == f"VALUE (argument): '{value}' is neither a number nor none"

    @pytest.mark.parametrize(("one", "limit"), [("user", "max-channels"), ("vhost", "max-queues")])
    def test_who_is_not_there_is_told(
        self, refused: Any, name: Callable[[str], str], one: str, limit: str
    ) -> None:
        nobody = name("nobody")
        said = refused(one, "limit", nobody, limit, "5")
        assert said.startswith(f"can't find {one} '{nobody}': it is not there; ")


class TestTopicPermissions:
    def test_they_are_set_listed_and_cleared(
        self, cli: Cli, refused: Any, alice: str, vhost: str
    ) -> None:
        cli("user", "add", alice, "--password-stdin", stdin=b"x\n")
        there = ("--vhost", vhost)
        said = cli("permission", "set-topic", alice, "amq.topic", "^a", "^b", *there)
        assert said.out == f"set topic permissions of user '{alice}' for exchange 'amq.topic'\n"
        assert cli("permission", "list-topics", alice).rows == [
            [alice, vhost, "amq.topic", "^a", "^b"]
        ]
        assert refused("permission", "clear-topic", alice, "events", *there) == (
            f"can't clear topic permissions of user '{alice}' in vhost '{vhost}': it has none; it "
            "has some for amq.topic"
        )
        assert cli("permission", "clear-topic", alice, "amq.topic", *there).code == 0
        assert cli("permission", "list-topics", alice, "--json").json == []
        assert refused("permission", "clear-topic", alice, *there).endswith(": it has none")

    def test_it_is_told_which_of_the_two_is_missing(
        self, refused: Any, alice: str, vhost: str
    ) -> None:
        said = refused("permission", "set-topic", alice, "amq.topic", "", "", "--vhost", vhost)
        assert said.startswith(f"can't find user '{alice}'")
