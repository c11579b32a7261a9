"""What has to be done, and what would be refused."""

from __future__ import annotations

from dataclasses import replace

from warren.topology.diff import Plan, compare
from warren.topology.model import Actual, Binding, Exchange, Policy, Queue, Topology

SHOP = Topology(
    exchanges=(Exchange("orders", "topic"),),
    queues=(Queue("eu", arguments={"x-max-length": 5}),),
    bindings=(Binding("orders", "eu", routing_key="eu.#"),),
    policies=(Policy("short", "^eu", {"max-length": 5}),),
)


def broker_with(topology: Topology, **more: object) -> Actual:
    names = {"", "amq.topic", *(item.name for item in topology.exchanges)}
    queues = frozenset(item.name for item in topology.queues)
    base = Actual(topology, exchange_names=frozenset(names), queue_names=queues)
    return replace(base, **more)  # type: ignore[arg-type]


EMPTY = broker_with(Topology())


def plan(wanted: Topology, actual: Actual, *, prune: bool = False) -> Plan:
    return compare(wanted, actual, vhost="/", prune=prune)


def told(changes: tuple) -> list[str]:
    return [f"{change.action} {change.title}" for change in changes]


def test_nothing_is_done_twice() -> None:
    assert plan(SHOP, broker_with(SHOP)) == Plan("/", ())


def test_things_are_made_in_an_order_that_works() -> None:
    assert told(plan(SHOP, EMPTY).changes) == [
        "create policy short",
        "create exchange orders",
        "create queue eu",
        "create binding orders -> queue eu with 'eu.#'",
    ]


def test_a_slip_in_the_name_of_an_argument_is_doubted_and_made() -> None:
    wanted = Topology(queues=(Queue("eu", arguments={"x-max-lenght": 5, "x-owner": "ann"}),))
    (change,) = plan(wanted, EMPTY).changes
    assert change.doubts == (
        "brokers take x-max-lenght and do nothing with it: did you mean x-max-length?",
    )


def test_arguments_that_are_known_are_not_doubted() -> None:
    known = {"x-max-length": 5, "x-max-length-bytes": 5}
    assert not plan(Topology(queues=(Queue("eu", arguments=known),)), EMPTY).changes[0].doubts


def test_a_vhost_that_is_not_there_is_made_first() -> None:
    changes = plan(SHOP, replace(EMPTY, vhost_exists=False)).changes
    assert told(changes)[0] == "create vhost /"


def test_only_what_is_missing_is_made() -> None:
    there = replace(SHOP, bindings=())
    assert told(plan(SHOP, broker_with(there)).changes) == [
        "create binding orders -> queue eu with 'eu.#'"
    ]


def test_a_policy_is_changed_in_place() -> None:
    wanted = Topology(policies=(Policy("short", "^eu", {"max-length": 6}, priority=1),))
    (change,) = plan(wanted, broker_with(SHOP)).changes
    assert change.action == "change"
    assert change.details == ("priority is 0, the file has 1", "max-length is 5, the file has 6")


def test_a_queue_that_is_there_with_other_arguments_is_refused() -> None:
    wanted = Topology(queues=(Queue("eu", arguments={"x-max-length": 6, "x": 1}, line=7),))
    found = plan(wanted, broker_with(SHOP))
    assert found.changes == ()
    (change,) = found.refused
    assert change.line == 7
    assert change.details == (
        "x-max-length is 5, the file has 6",
        "x is not set, the file has 1",
        "a queue can't be changed: delete it first, or change the file",
    )


def test_an_argument_of_another_type_is_another_argument() -> None:
    there = Topology(exchanges=(Exchange("a", arguments={"x": 1}),))
    for value in (True, 1.0, "1"):
        wanted = Topology(exchanges=(Exchange("a", arguments={"x": value}),))
        assert plan(wanted, broker_with(there)).refused


def test_an_exchange_of_another_type_is_refused() -> None:
    wanted = Topology(exchanges=(Exchange("orders", "fanout", durable=False),))
    (change,) = plan(wanted, broker_with(SHOP)).refused
    assert change.details[:2] == (
        "type is topic, the file has fanout",
        "durable is true, the file has false",
    )


def test_a_binding_needs_both_its_ends() -> None:
    wanted = Topology(bindings=(Binding("absent", "nobody"),))
    (change,) = plan(wanted, EMPTY).refused
    assert change.details == (
        "there will be no exchange 'absent': it is neither in the file nor in the broker",
        "there will be no queue 'nobody': it is neither in the file nor in the broker",
    )


def test_a_binding_may_lead_to_what_the_file_does_not_have() -> None:
    wanted = Topology(bindings=(Binding("amq.topic", "eu"),))
    found = plan(wanted, broker_with(SHOP))
    assert (told(found.changes), found.refused) == (["create binding amq.topic -> queue eu"], ())


def test_a_binding_must_not_lead_to_what_is_pruned() -> None:
    wanted = Topology(bindings=(Binding("amq.topic", "eu"),))
    (change,) = plan(wanted, broker_with(SHOP), prune=True).refused
    assert change.details == (
        "there will be no queue 'eu': it is not in the file, and --prune deletes what is not",
    )


def test_a_connections_own_queue_is_in_the_way() -> None:
    actual = replace(EMPTY, queue_names=frozenset(["eu"]))
    (change,) = plan(Topology(queues=(Queue("eu"),)), actual).refused
    assert change.details == (
        "there is an exclusive queue of that name, which belongs to a connection",
    )


def test_what_is_not_in_the_file_stays() -> None:
    found = plan(Topology(queues=SHOP.queues), broker_with(SHOP))
    assert found.changes == ()
    assert told(found.others) == ["delete exchange orders", "delete policy short"]


def test_pruning_deletes_backwards_and_tells_of_messages() -> None:
    actual = broker_with(SHOP, messages={"eu": 1200})
    found = plan(Topology(), actual, prune=True)
    # the binding goes with its ends
    assert told(found.changes) == [
        "delete queue eu",
        "delete exchange orders",
        "delete policy short",
    ]
    assert found.changes[0].details == ("with 1,200 messages",)


def test_pruning_deletes_a_binding_whose_ends_stay() -> None:
    found = plan(replace(SHOP, bindings=()), broker_with(SHOP), prune=True)
    assert told(found.changes) == ["delete binding orders -> queue eu with 'eu.#'"]
