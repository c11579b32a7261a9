"""``warren queues|exchanges|bindings|connections|channels|consumers``: lists and single pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.cli.conftest import Cli
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Closed, Connection

Name = Callable[[str], str]
Connect = Callable[..., Connection]


@pytest.fixture
def shop(vhost: str, broker: TestBroker, connect: Connect) -> Any:
    """A vhost with two queues, an exchange and a binding, and a channel in it."""
    channel = connect(url=broker.url + vhost).channel()
    channel.declare("orders", durable=True, arguments={"x-max-length": 5})
    channel.declare("invoices")
    channel.declare_exchange("events", "topic", durable=True)
    channel.bind("orders", "events", "order.#")
    return channel


@pytest.mark.usefixtures("shop")
class TestLists:
    def test_queues_are_listed(self, cli: Cli, vhost: str) -> None:
        said = cli("queues", "list", "--vhost", vhost, "--columns", "name,type,features")
        assert said.rows == [
            ["invoices", "classic", "transient"],
            ["orders", "classic", "durable", "limit"],
        ]

    def test_json_has_what_the_server_tells(self, cli: Cli, vhost: str) -> None:
        rows = cli("queues", "list", "--vhost", vhost, "--json").json
        assert {row["name"]: row["arguments"] for row in rows} == {
            "invoices": {},
            "orders": {"x-max-length": 5},
        }

    def test_json_can_be_reduced_to_columns(self, cli: Cli, vhost: str) -> None:
        said = cli("queues", "list", "--vhost", vhost, "--json", "--columns", "name,durable")
        assert said.json == [
            {"name": "invoices", "durable": False},
            {"name": "orders", "durable": True},
        ]

    def test_a_list_is_sorted_by_a_column(self, cli: Cli, vhost: str) -> None:
        words = ["queues", "list", "--vhost", vhost, "--columns", "name", "--sort", "name"]
        assert cli(*words).rows == [["invoices"], ["orders"]]
        assert cli(*words, "--reverse").rows == [["orders"], ["invoices"]]

    def test_a_pattern_picks_names(self, cli: Cli, vhost: str) -> None:
        said = cli("queues", "list", "in*", "--vhost", vhost, "--columns", "name")
        assert said.rows == [["invoices"]]

    def test_all_vhosts_are_listed_on_demand(self, cli: Cli, vhost: str) -> None:
        said = cli("queues", "list", "--all-vhosts", "--columns", "vhost,name")
        assert [vhost, "orders"] in said.rows

    def test_exchanges_are_listed_with_the_default_one(self, cli: Cli, vhost: str) -> None:
        said = cli("exchanges", "list", "--vhost", vhost, "--columns", "name,type")
        assert ["(default)", "direct"] in said.rows
        assert ["events", "topic"] in said.rows

    def test_bindings_are_listed(self, cli: Cli, vhost: str) -> None:
        said = cli("bindings", "list", "events", "--vhost", vhost)
        assert said.rows == [["events", "orders", "queue", "order.#", "-"]]


@pytest.mark.usefixtures("shop")
class TestPages:
    def test_a_queue_is_shown_with_its_bindings(self, cli: Cli, vhost: str) -> None:
        said = cli("queues", "show", "orders", "--vhost", vhost)
        lines = [line.split() for line in said.out.splitlines()]
        assert ["arguments.x-max-length", "5"] in lines
        assert ["events", "orders", "queue", "order.#", "-"] in lines

    def test_a_page_as_json(self, cli: Cli, vhost: str) -> None:
        found = cli("exchanges", "show", "events", "--vhost", vhost, "--json").json
        assert (found["name"], found["type"], found["durable"]) == ("events", "topic", True)

    def test_the_bindings_of_a_queue_are_shown(self, cli: Cli, vhost: str) -> None:
        rows = cli("bindings", "show", "orders", "--vhost", vhost, "--json").json
        assert {(row["source"], row["routing_key"]) for row in rows} == {
            ("", "orders"),
            ("events", "order.#"),
        }

    def test_an_exchange_without_bindings_has_none(self, cli: Cli, vhost: str) -> None:
        said = cli("bindings", "show", "amq.fanout", "--vhost", vhost, "--json")
        assert (said.code, said.json) == (0, [])


@pytest.mark.usefixtures("shop")
class TestWhatIsNotThere:
    def test_a_queue_is_told_with_the_nearest_name(self, refused: Any, vhost: str) -> None:
        assert refused("queues", "show", "ordres", "--vhost", vhost) == (
            f"can't find queue 'ordres' in vhost '{vhost}': it is not there; did you mean 'orders'?"
        )

    @pytest.mark.parametrize("what", ["queues", "exchanges", "bindings", "consumers"])
    def test_a_vhost_is_told_with_the_nearest_name(
        self, refused: Any, vhost: str, what: str
    ) -> None:
        assert refused(what, "list", "--vhost", f"{vhost}x") == (
            f"can't find vhost '{vhost}x': it is not there; did you mean '{vhost}'?"
        )

    def test_a_column_is_told_with_the_nearest_name(self, refused: Any, vhost: str) -> None:
        words = ("queues", "list", "--vhost", vhost, "--columns", "name,durabel")
        assert refused(*words, code=2) == (
            "--columns (argument): there is no column 'durabel'; did you mean durable?"
        )

    def test_a_binding_of_nothing(self, refused: Any, vhost: str) -> None:
        said = refused("bindings", "show", "nothing", "--vhost", vhost)
        assert said.startswith(f"can't find queue 'nothing' in vhost '{vhost}'")

    @pytest.mark.parametrize("what", ["connection", "channel", "consumer"])
    def test_what_clients_have(self, refused: Any, what: str) -> None:
        said = refused(f"{what}s", "show", "nobody's")
        assert said.startswith(f"can't find {what} 'nobody's'")


class TestClients:
    # RabbitMQ tells of connections, channels and consumers some seconds later.
    def test_connections_and_channels_are_listed_and_shown(
        self, cli: Cli, shop: Any, vhost: str
    ) -> None:
        (row,) = eventually(lambda: cli("connections", "list", "--vhost", vhost, "--json").json)
        assert (row["user"], row["vhost"]) == ("guest", vhost)
        (channel,) = eventually(lambda: cli("channels", "list", "--vhost", vhost, "--json").json)
        said = cli("channels", "show", channel["name"], "--json")
        assert said.json["connection_details"]["name"] == row["name"]
        assert f"connection {row['name']}\n" in cli("connections", "show", row["name"]).out

    def test_consumers_are_listed_and_shown(self, cli: Cli, shop: Any, vhost: str) -> None:
        shop.consume("orders", "ctag-1")
        words = ("--vhost", vhost, "--json")
        (row,) = eventually(lambda: cli("consumers", "list", *words).json)
        assert (row["consumer_tag"], row["queue"]["name"]) == ("ctag-1", "orders")
        assert cli("consumers", "show", "ctag-1", *words).json[0]["queue"] == row["queue"]

    def test_a_connection_is_closed_with_a_reason(
        self, cli: Cli, broker: TestBroker, vhost: str, connect: Connect
    ) -> None:
        connection = connect(url=broker.url + vhost)
        (row,) = eventually(lambda: cli("connections", "list", "--vhost", vhost, "--json").json)
        said = cli("connections", "close", row["name"], "--reason", "tidying\nup: größer")
        assert said.out == f"closed connection '{row['name']}'\n"
        closed: Closed = connection.expect_closed()
        assert (closed.code, closed.text) == (320, "CONNECTION_FORCED - tidying up: größer")


def test_the_overview_tells_what_it_is(cli: Cli, broker: TestBroker) -> None:
    said = cli("overview")
    assert said.code == 0
    assert said.out.splitlines()[0].endswith(f" at {broker.management}")
    assert cli("status").out.splitlines()[0] == said.out.splitlines()[0]
    assert "object_totals" in cli("overview", "--json").json


class TestLogin:
    def test_a_wrong_password_is_told_and_not_shown(self, refused: Any, broker: TestBroker) -> None:
        url = broker.management.replace("http://", "http://guest:wr0ng@")
        said = refused("queues", "list", "--url", url)
        assert said.startswith(f"{broker.management} does not let user 'guest' in: wrong name or")
        assert "wr0ng" not in said

    def test_the_password_may_come_from_the_environment(self, cli: Cli, broker: TestBroker) -> None:
        url = broker.management.replace("http://", "http://guest@")
        assert cli("vhost", "list", "--url", url, WARREN_PASSWORD="guest").code == 0
        assert cli("vhost", "list", "--url", url, WARREN_PASSWORD="wr0ng").code == 1
