"""What was declared through a connection, so that it can be declared again.

After a reconnect the broker may be another node, or the same one without what was not durable.
Everything is declared again in the order of its first declaration. A queue that the broker named
gets a new name; bindings and consumers follow.
"""

from __future__ import annotations

from typing import TypeVar

from warren.amqp import methods as m

Declaration = m.QueueDeclare | m.ExchangeDeclare | m.QueueBind | m.ExchangeBind
D = TypeVar("D", bound=m.Method)
Key = tuple[str, ...]


class Topology:
    """Declarations by what they declare."""

    def __init__(self) -> None:
        self._declared: dict[Key, Declaration] = {}
        #: Queues that the broker has named.
        self._named_by_broker: set[str] = set()

    def objects(self) -> list[Declaration]:
        """Exchanges and queues."""
        return [each for key, each in self._declared.items() if not key[0].startswith("bind")]

    def bindings(self) -> list[Declaration]:
        """To be asked for when the queues are there: one may have got a new name."""
        return [each for key, each in self._declared.items() if key[0].startswith("bind")]

    def exchange(self, method: m.ExchangeDeclare) -> None:
        self._declared["exchange", method.exchange] = method

    def queue(self, method: m.QueueDeclare, name: str) -> None:
        if method.queue != name:
            self._named_by_broker.add(name)
        self._declared["queue", name] = changed(method, queue=name)

    def bound(self, method: m.QueueBind | m.ExchangeBind) -> None:
        self._declared[_binding(method)] = method

    def unbound(self, method: m.QueueUnbind | m.ExchangeUnbind) -> None:
        self._declared.pop(_binding(method), None)

    def queue_gone(self, name: str) -> None:
        self._named_by_broker.discard(name)
        self._forget("queue", name)

    def exchange_gone(self, name: str) -> None:
        self._forget("exchange", name)

    def auto_deleted(self, queue: str) -> None:
        """The last consumer of a queue is gone, and it goes if it was to."""
        declared = self._declared.get(("queue", queue))
        if isinstance(declared, m.QueueDeclare) and declared.auto_delete:
            self.queue_gone(queue)

    def is_named_by_broker(self, queue: str) -> bool:
        return queue in self._named_by_broker

    def renamed(self, old: str, new: str) -> None:
        """The broker has given the queue another name."""
        self._named_by_broker.discard(old)
        self._named_by_broker.add(new)
        declared: dict[Key, Declaration] = {}
        for key, method in self._declared.items():
            if isinstance(method, m.QueueDeclare) and method.queue == old:
                declared["queue", new] = changed(method, queue=new)
            elif isinstance(method, m.QueueBind) and method.queue == old:
                # The default binding key of many programs is the queue's own name.
                key_name = new if method.routing_key == old else method.routing_key
                moved = changed(method, queue=new, routing_key=key_name)
                declared[_binding(moved)] = moved
            else:
                declared[key] = method
        self._declared = declared

    def _forget(self, kind: str, name: str) -> None:
        self._declared.pop((kind, name), None)
        places = ("queue",) if kind == "queue" else ("exchange", "source", "destination")
        for key, method in list(self._declared.items()):
            if key[0].startswith("bind") and any(
                getattr(method, place, None) == name for place in places
            ):
                del self._declared[key]


def changed(method: D, **fields: object) -> D:
    """A copy of a method with other values."""
    return type(method)(**{**method._fields(), **fields})


def _binding(method: m.Method) -> Key:
    arguments = repr(sorted(getattr(method, "arguments").items(), key=repr))  # noqa: B009
    if isinstance(method, m.QueueBind | m.QueueUnbind):
        return "bind queue", method.queue, method.exchange, method.routing_key, arguments
    assert isinstance(method, m.ExchangeBind | m.ExchangeUnbind)
    return "bind exchange", method.destination, method.source, method.routing_key, arguments
