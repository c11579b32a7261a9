"""What a connection remembers of what was declared through it."""

from __future__ import annotations

from warren.amqp import methods as m
from warren.amqp.tables import Table
from warren.client.topology import Topology


def queue(topology: Topology, name: str, **options: bool) -> None:
    topology.queue(m.QueueDeclare(queue=name, **options), name)


def names(topology: Topology) -> list[str]:
    return [
        method.queue if isinstance(method, m.QueueDeclare) else method.exchange  # type: ignore[union-attr]
        for method in topology.objects()
    ]


def test_a_second_declaration_is_remembered_once() -> None:
    topology = Topology()
    queue(topology, "q")
    queue(topology, "q")
    topology.exchange(m.ExchangeDeclare(exchange="e"))
    assert names(topology) == ["q", "e"]


def test_bindings_differ_by_their_arguments() -> None:
    topology = Topology()
    for value in (1, 2, 1):
        topology.bound(m.QueueBind(queue="q", exchange="e", arguments=Table({"x": value})))
    assert len(topology.bindings()) == 2

    topology.unbound(m.QueueUnbind(queue="q", exchange="e", arguments=Table({"x": 1})))
    assert len(topology.bindings()) == 1


def test_a_queue_goes_with_its_bindings() -> None:
    topology = Topology()
    queue(topology, "q")
    topology.bound(m.QueueBind(queue="q", exchange="q"))
    topology.bound(m.QueueBind(queue="other", exchange="q"))
    topology.queue_gone("q")
    assert names(topology) == []
    assert topology.bindings() == [m.QueueBind(queue="other", exchange="q")]


def test_an_exchange_goes_with_its_bindings_on_either_side() -> None:
    topology = Topology()
    topology.exchange(m.ExchangeDeclare(exchange="e"))
    topology.bound(m.QueueBind(queue="q", exchange="e"))
    topology.bound(m.ExchangeBind(destination="e", source="x"))
    topology.bound(m.ExchangeBind(destination="x", source="e"))
    topology.exchange_gone("e")
    assert (topology.objects(), topology.bindings()) == ([], [])


def test_a_new_name_is_taken_over_by_the_bindings() -> None:
    topology = Topology()
    topology.queue(m.QueueDeclare(queue="", exclusive=True), "amq.gen-1")
    topology.bound(m.QueueBind(queue="amq.gen-1", exchange="e", routing_key="amq.gen-1"))
    topology.bound(m.QueueBind(queue="amq.gen-1", exchange="e", routing_key="k"))
    assert topology.is_named_by_broker("amq.gen-1")

    topology.renamed("amq.gen-1", "amq.gen-2")

    assert names(topology) == ["amq.gen-2"]
    assert topology.is_named_by_broker("amq.gen-2")
    assert not topology.is_named_by_broker("amq.gen-1")
    assert [(each.queue, each.routing_key) for each in topology.bindings()] == [  # type: ignore[union-attr]
        ("amq.gen-2", "amq.gen-2"),
        ("amq.gen-2", "k"),
    ]


def test_an_auto_delete_queue_goes_with_its_last_consumer() -> None:
    topology = Topology()
    queue(topology, "stays")
    queue(topology, "goes", auto_delete=True)
    topology.auto_deleted("stays")
    topology.auto_deleted("goes")
    topology.auto_deleted("unknown")
    assert names(topology) == ["stays"]
