"""What the catalog remembers of queues, and what it forgets."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from warren.client.endpoint import Endpoint
from warren.client.kinds import QueueKind
from warren.errors import (
    ApiUnreachable,
    ConnectionLost,
    KindUnknown,
    NotFound,
    NotSingleActive,
    PreconditionFailed,
    QueueMissing,
)
from warren.spark.driver import Driver, QueuePartition
from warren.spark.ledger.ledger import Ledger
from warren.spark.listing import Listing
from warren.spark.options import SourceOptions
from warren.spark.plan import offset_of
from warren.spark.queue_info import QueueInfo
from warren.spark.queues import Catalog
from warren.testing import FakeClock


def link_to(*, host: str = "mq", **server: str) -> Any:
    """A connection to a broker that greets so."""
    return SimpleNamespace(
        session=SimpleNamespace(server_properties=server), endpoint=Endpoint(host=host)
    )


LINK = link_to()
HERE = link_to(cluster_name="rabbit@here")
STREAM = QueueKind("stream", single_active=False)
CLASSIC = QueueKind("classic", single_active=False)
QUORUM = QueueKind("quorum", single_active=False)


class Broker:
    """What a broker tells of queues that come and go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **queues: QueueKind) -> None:
        self.queues = queues
        self.asked: list[str] = []
        monkeypatch.setattr("warren.spark.queues.queue_kind", self._kind)
        monkeypatch.setattr("warren.spark.queues.count_ready", self._count)
        monkeypatch.setattr("warren.spark.driver.Driver._connected", lambda _: LINK)

    def _kind(self, link: Any, name: str) -> QueueKind:
        self.asked.append(name)
        if name not in self.queues:
            raise NotFound("queue", name, "/")
        return self.queues[name]

    def _count(self, link: Any, names: list[str]) -> dict[str, int | None]:
        return {name: 5 if name in self.queues else None for name in names}


def options(queues: str = "q", **given: str) -> SourceOptions:
    return SourceOptions.parse({"queues": queues, **given})


def modes(driver: Driver, ledger: str, **ends: int) -> dict[str, str]:
    """How the queues of a batch would be read."""
    end = {"ledger": ledger, "queues": ends}
    tasks = driver.partitions({"ledger": ledger, "queues": dict.fromkeys(ends, 0)}, end)
    found: dict[str, str] = {}
    for task in tasks:
        assert isinstance(task, QueuePartition)
        found |= {each.queue: each.mode for each in task.ranges}
    return found


def test_a_queue_that_comes_back_is_asked_for_its_kind_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker(monkeypatch, q=CLASSIC)
    catalog = Catalog(options(onMissingQueue="wait"))
    assert catalog.queues(LINK)["q"].kind == "classic"

    del broker.queues["q"]
    assert catalog.ready(LINK) == {}
    broker.queues["q"] = QUORUM

    with pytest.raises(NotSingleActive):
        _ = catalog.queues(LINK)["q"].mode


def test_the_kind_of_a_queue_that_stays_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(monkeypatch, q=CLASSIC)
    catalog = Catalog(options())

    for _ in range(3):
        assert catalog.queues(LINK) == {"q": QueueInfo("q", "classic")}
        assert catalog.ready(LINK) == {"q": 5}

    assert broker.asked == ["q"]


def test_it_is_asked_again_over_a_new_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(monkeypatch, q=CLASSIC)
    catalog = Catalog(options())
    catalog.queues(LINK)
    broker.queues["q"] = QUORUM

    assert catalog.queues(link_to())["q"].kind == "quorum"


def test_and_after_a_time_in_which_nobody_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, clock = Broker(monkeypatch, q=CLASSIC), FakeClock()
    catalog = Catalog(options(), lambda: clock.monotonic_ms() / 1000)
    catalog.queues(LINK)
    broker.queues["q"] = QUORUM

    clock.advance(50)
    assert catalog.queues(LINK)["q"].kind == "classic"
    clock.advance(3601)
    assert catalog.queues(LINK)["q"].kind == "quorum"


def test_before_it_is_read_after_a_minute_in_which_nobody_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, clock = Broker(monkeypatch, q=CLASSIC), FakeClock()
    catalog = Catalog(options(), lambda: clock.monotonic_ms() / 1000)
    catalog.queues(LINK)
    broker.queues["q"] = STREAM

    clock.advance(59)
    catalog.queues(LINK)
    assert not catalog.have_changed(LINK, ["q"])
    clock.advance(61)
    assert catalog.queues(LINK)["q"].kind == "classic"  # nothing is asked of an idle one
    assert broker.asked == ["q"]

    assert catalog.have_changed(LINK, ["q"])
    assert catalog.queues(LINK)["q"].kind == "stream"
    assert not catalog.have_changed(LINK, ["q"])
    assert broker.asked == ["q", "q"]


def seldom(monkeypatch: pytest.MonkeyPatch, clock: FakeClock, ledger: Path) -> Driver:
    """A driver by this clock, for which each stream has three messages."""
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: 3)
    monkeypatch.setattr("warren.spark.driver.stream_start", lambda link, queue, wanted: 0)
    catalog = partial(Catalog, clock=lambda: clock.monotonic_ms() / 1000)
    monkeypatch.setattr("warren.spark.driver.Catalog", catalog)
    return Driver(options(ledger=str(ledger)))


def test_a_query_that_runs_seldom_plans_with_the_kind_that_a_queue_has_by_then(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broker, clock = Broker(monkeypatch, q=CLASSIC), FakeClock()
    driver = seldom(monkeypatch, clock, tmp_path)
    start = driver.initial()
    clock.advance(600)
    broker.queues["q"] = STREAM

    end = driver.latest(start, None, None)

    assert (end["queues"], broker.asked) == ({"q": 3}, ["q", "q"])


def test_and_asks_no_stream_where_it_ends_that_is_none_any_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broker, clock = Broker(monkeypatch, q=STREAM), FakeClock()
    driver = seldom(monkeypatch, clock, tmp_path)
    end = driver.latest(driver.initial(), None, None)
    clock.advance(600)
    broker.queues["q"] = CLASSIC
    monkeypatch.delattr("warren.spark.driver.stream_end")

    assert driver.latest(end, None, None)["queues"] == {"q": 8}


def test_what_has_changed_is_known_though_the_connection_broke_in_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, clock = Broker(monkeypatch, a=CLASSIC, b=CLASSIC), FakeClock()
    catalog = Catalog(options("a,b"), lambda: clock.monotonic_ms() / 1000)
    catalog.queues(LINK)
    clock.advance(61)
    catalog.queues(LINK)
    broker.queues["a"] = STREAM
    with monkeypatch.context() as patch:
        patch.setattr("warren.spark.queues.queue_kind", broken_at("b", broker))
        with pytest.raises(ConnectionLost):
            catalog.have_changed(LINK, ["a", "b"])

    assert catalog.have_changed(LINK, ["a", "b"])


def broken_at(broken: str, broker: Broker) -> Any:
    def kind(link: Any, name: str) -> QueueKind:
        if name == broken:
            raise ConnectionLost(("mq", 5672), "it broke")
        return broker.queues[name]

    return kind


def test_a_queue_whose_node_is_down_stays_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(monkeypatch, s=STREAM)
    catalog = Catalog(options("s"))
    catalog.queues(LINK)
    del broker.queues["s"]

    other = link_to()
    assert catalog.queues(other)["s"].kind == "stream"

    broker.queues["s"] = QUORUM  # it is back, and another one
    assert catalog.queues(other)["s"].kind == "quorum"


def test_a_stream_that_is_no_longer_named_is_read_as_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Broker(monkeypatch, q=CLASSIC, s=STREAM)
    ledger = Ledger.at(str(tmp_path)).create()

    found = modes(Driver(options(ledger=str(tmp_path))), ledger, q=5, s=7)

    assert found == {"q": "exclusive", "s": "stream"}


def test_a_stream_that_went_with_a_batch_open_is_missed_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Broker(monkeypatch)

    with pytest.raises(QueueMissing, match="no queue 's'"):
        modes(Driver(options("s")), "", s=7)


def test_or_left_out_where_queues_may_come_and_go(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Broker(monkeypatch, t=STREAM)

    found = modes(Driver(options("s,t", onMissingQueue="wait")), "", s=7, t=3)

    assert found == {"t": "stream"}
    assert "stream 's' is gone" in caplog.text


def test_a_queue_that_went_with_a_batch_open_is_left_to_the_drain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Broker(monkeypatch, q=CLASSIC)
    ledger = Ledger.at(str(tmp_path)).create()

    found = modes(Driver(options(ledger=str(tmp_path))), ledger, q=5, gone=7)

    assert found == {"q": "exclusive", "gone": "exclusive"}


@pytest.mark.parametrize(("kind", "counts"), [("classic", False), ("quorum", True), ("", True)])
def test_deliveries_are_counted_by_every_kind_of_queue_but_the_classic_one(
    kind: str, counts: bool
) -> None:
    assert QueueInfo("q", kind).counts is counts


def test_a_task_is_told_that_a_classic_queue_counts_no_deliveries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Broker(monkeypatch, q=CLASSIC)
    ledger = Ledger.at(str(tmp_path)).create()
    driver = Driver(options(ledger=str(tmp_path)))

    tasks = driver.partitions(offset_of(ledger, {}), offset_of(ledger, {"q": 5, "gone": 7}))

    ranges = [each for task in tasks if isinstance(task, QueuePartition) for each in task.ranges]
    assert {each.queue: each.counts for each in ranges} == {"q": False, "gone": True}


# -- delivery limits -----------------------------------------------------------------------------
OLD = {"product": "RabbitMQ", "version": "3.13.7"}
NEW = {"product": "RabbitMQ", "version": "4.0.2"}
#: A server's greeting, a quorum queue's arguments, its policy, and what is told of its limit.
LIMITS = [
    (OLD, {}, {}, None),
    (OLD, {"x-delivery-limit": 5}, {}, "more than 5 times (its delivery limit)"),
    (OLD, {"x-delivery-limit": 5, "x-dead-letter-exchange": ""}, {}, None),
    (OLD, {"x-delivery-limit": 5000}, {}, None),
    (NEW, {}, {}, "more than 20 times (the default since RabbitMQ 4.0"),
    (NEW, {"x-delivery-limit": -1}, {}, None),
    (NEW, {"x-dead-letter-exchange": "dead"}, {}, None),
    ({"product": "another", "version": "4.0"}, {}, {}, None),
    ({}, {}, {}, None),
    (NEW, {}, {"delivery-limit": -1}, None),
    (NEW, {}, {"delivery-limit": 7}, "more than 7 times"),
    (NEW, {"x-delivery-limit": 9}, {"delivery-limit": 7}, "more than 7 times"),
    (NEW, {"x-delivery-limit": -1}, {"delivery-limit": 7}, "more than 7 times"),
    (NEW, {}, {"dead-letter-exchange": "dead"}, None),
]


@pytest.mark.parametrize(("server", "arguments", "policy", "told"), LIMITS)
def test_a_quorum_queue_that_would_drop_what_comes_back_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    server: dict[str, str],
    arguments: dict[str, Any],
    policy: dict[str, Any],
    told: str | None,
) -> None:
    row = {"name": "a.q", "type": "quorum", "arguments": arguments}
    row["effective_policy_definition"] = policy
    monkeypatch.setattr(Listing, "_get", lambda *_, **__: [row])
    catalog = Catalog(options("a.*"))

    for _ in range(2):
        catalog.queues(link_to(**server))

    assert_told(caplog, told)


def assert_told(caplog: pytest.LogCaptureFixture, told: str | None) -> None:
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == (told is not None)
    if told is not None:
        assert told in found[0]
        assert "x-delivery-limit=-1" in found[0]
        assert "dead-letter exchange" in found[0]


@pytest.mark.parametrize(
    ("server", "kind", "told"),
    [
        (NEW, QueueKind("quorum", single_active=True), "more than 20 times"),
        (OLD, QueueKind("quorum", single_active=True), None),
        (OLD, QueueKind("quorum", single_active=True, delivery_limit=3), "more than 3 times"),
        (NEW, QueueKind("quorum", single_active=True, dead_letters=True), None),
        (NEW, CLASSIC, None),
        (NEW, STREAM, None),
    ],
)
def test_so_is_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    server: dict[str, str],
    kind: QueueKind,
    told: str | None,
) -> None:
    Broker(monkeypatch, q=kind)
    catalog = Catalog(options())

    for _ in range(2):
        catalog.queues(link_to(**server))

    assert_told(caplog, told)


def test_a_name_that_leaves_no_room_for_the_kind_is_told_from_a_missing_permission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(link: Any, name: str) -> QueueKind:
        raise PreconditionFailed("inequivalent arg 'x-queue-type' for queue 'qqq...")

    def away(listing: Listing, name: str) -> QueueInfo:
        raise ApiUnreachable("http://mq:15672", "refused")

    monkeypatch.setattr("warren.spark.queues.queue_kind", cut)
    monkeypatch.setattr(Listing, "queue", away)

    with pytest.raises(KindUnknown, match=r"is cut behind so long a name.* managementUrl") as told:
        Catalog(options()).queues(LINK)
    assert "permission" not in str(told.value)
    monkeypatch.setattr(Listing, "queue", lambda _, name: QueueInfo(name, "stream"))
    assert Catalog(options()).queues(LINK)["q"].kind == "stream"
