"""What the management API is asked of queues: where, how often, and what is told if it can't be."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.unit.spark.test_queues import CLASSIC, HERE, Broker, link_to, options
from warren.client.endpoint import Endpoint
from warren.errors import (
    ApiLoginRefused,
    ApiRefused,
    ApiUnreachable,
    ConfigError,
)
from warren.spark.listing import Listing, places
from warren.spark.queues import Catalog


class Api:
    """A management API where one was guessed to be."""

    address = "http://mq:15672"

    def __init__(self, cluster: str | None) -> None:
        self._cluster = cluster
        #: How often it listed all queues.
        self.lists = 0

    def get(self, *path: str, what: str, query: Any = None) -> Any:
        if path != ("overview",):
            self.lists += 1
            return [{"name": "q"}, {"name": "other"}]
        if self._cluster is None:
            raise ApiRefused(what, 401, "not for you")
        return {"cluster_name": self._cluster}


@pytest.mark.parametrize("cluster", ["rabbit@here", "", None])
def test_a_management_api_that_may_be_the_broker_s_is_asked(
    monkeypatch: pytest.MonkeyPatch, cluster: str | None
) -> None:
    monkeypatch.setattr("warren.spark.listing.management", lambda *_: nullcontext(Api(cluster)))

    assert list(Catalog(options("q*")).queues(HERE)) == ["q"]


def test_a_guessed_management_api_of_another_broker_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Api("rabbit@there")
    monkeypatch.setattr("warren.spark.listing.management", lambda *_: nullcontext(other))

    with pytest.raises(ConfigError, match=r"of another broker, of cluster 'rabbit@there'"):
        Catalog(options("q*")).queues(HERE)
    named = options("q*", managementUrl="http://mq:15672")  # who names it must know
    assert list(Catalog(named).queues(HERE)) == ["q"]


# -- where, and how often ------------------------------------------------------------------------
def test_without_a_word_it_is_looked_for_where_we_are_connected_and_then_at_the_others() -> None:
    given = options("q*", uri="amqp://one,two,three")

    found = places(given, Endpoint(host="two"))

    assert [place.address for place in found] == [
        ("two", 15672),
        ("one", 15672),
        ("three", 15672),
    ]


def test_a_node_whose_management_api_is_away_leaves_it_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def management(_: Any, at: Endpoint) -> Any:
        asked.append(at.host)
        return nullcontext(Away() if at.host == "one" else Api("rabbit@here"))

    monkeypatch.setattr("warren.spark.listing.management", management)

    found = Catalog(options("q*", uri="amqp://one,two")).queues(link_to(host="one"))

    assert (list(found), asked) == (["q"], ["one", "two"])


def test_where_it_answered_last_it_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def management(_: Any, at: Endpoint) -> Any:
        asked.append(at.host)
        return nullcontext(Away() if at.host == "one" else Api("rabbit@here"))

    monkeypatch.setattr("warren.spark.listing.management", management)
    listing = Listing(options("q*", managementUrl="http://one:15672,http://two:15672"))

    for _ in range(2):
        listing.queues()
        listing.forget()

    assert asked == ["one", "two", "two"]


@pytest.mark.parametrize("once_there", [False, True])
def test_a_login_that_is_refused_is_told_though_another_host_is_away(
    monkeypatch: pytest.MonkeyPatch, once_there: bool
) -> None:
    there = once_there

    def management(_: Any, at: Endpoint) -> Any:
        return nullcontext(Api("rabbit@here") if there else Away(refuses=at.host == "two"))

    monkeypatch.setattr("warren.spark.listing.management", management)
    listing = Listing(options("q*", managementUrl="http://one:15672,http://two:15672"))
    if there:
        listing.queues()
        listing.forget()
    there = False

    with pytest.raises(ApiLoginRefused):
        listing.queues()


class Away:
    """A management API that nobody reaches."""

    address = "http://one:15672"

    def __init__(self, *, refuses: bool = False) -> None:
        self._refuses = refuses

    def get(self, *path: str, what: str, query: Any = None) -> Any:
        if self._refuses:
            raise ApiLoginRefused(self.address, "ann", "login failed")
        raise ApiUnreachable(self.address, "refused")


def test_a_list_is_good_for_a_moment_or_until_a_queue_of_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api, broker = Api("rabbit@here"), Broker(monkeypatch, q=CLASSIC)
    monkeypatch.setattr("warren.spark.listing.management", lambda *_: nullcontext(api))
    catalog = Catalog(options("q*"))
    for _ in range(50):
        catalog.queues(HERE)
        assert catalog.ready(HERE) == {"q": 5}
    assert api.lists == 1

    del broker.queues["q"]
    catalog.ready(HERE)
    catalog.queues(HERE)

    assert api.lists == 2


def test_one_that_is_not_there_yet_makes_no_list_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    Broker(monkeypatch, q=CLASSIC)
    api = Api("rabbit@here")
    monkeypatch.setattr("warren.spark.listing.management", lambda *_: nullcontext(api))
    catalog = Catalog(options("q*,late", onMissingQueue="wait"))

    for _ in range(50):
        catalog.queues(HERE)
        catalog.ready(HERE)

    assert api.lists == 1
