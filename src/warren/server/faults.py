"""Faults on demand, so that users can see how their programs take them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from warren.broker.connection import BrokerConnection
from warren.broker.core import BrokerCore
from warren.broker.publisher import Publisher


class Faults:
    """What can go wrong with a broker, one method each.

    Where chance is involved, the same ``seed`` gives the same faults.
    """

    def __init__(self, core: BrokerCore, run: Callable[[Callable[[], Any]], Any]) -> None:
        self._core = core
        self._run = run
        self._random = random.Random(0)

    def seed(self, seed: int) -> None:
        """Start the sequence of chances anew."""
        self._random = random.Random(seed)

    def cut_connections(self, chance: float = 1.0) -> int:
        """Cut clients' TCP connections, without a word; returns how many."""

        def cut() -> int:
            chosen = [c for c in self._core.connections if self._random.random() < chance]
            for connection in chosen:
                connection.shell.abort()
            return len(chosen)

        return int(self._run(cut))

    def hold_confirms(self, hold: bool = True) -> None:
        """Keep publisher confirms back (True), or send all that were kept back (False)."""

        def change() -> None:
            for connection in self._core.connections:
                connection.confirm_fault = (lambda publisher: True) if hold else None
                if not hold:
                    _confirm_now(connection)

        self._run(change)

    def delay_confirms(self, delay_s: float) -> None:
        """Send confirms this much later, on the broker's clock; 0 for at once."""

        def change() -> None:
            for connection in self._core.connections:
                connection.confirm_fault = self._delayer(connection, delay_s) if delay_s else None

        self._run(change)

    def _delayer(
        self, connection: BrokerConnection, delay_s: float
    ) -> Callable[[Publisher], bool]:
        late: set[Publisher] = set()

        def fault(publisher: Publisher) -> bool:
            if publisher in late:
                late.discard(publisher)
                return False

            def send() -> None:
                late.add(publisher)
                publisher.send_confirms()

            self._core.timers.after(round(delay_s * 1000), send)
            return True

        return fault

    def drop_confirms(self, chance: float = 1.0) -> None:
        """Lose confirms: what is lost is never sent. 0 ends it."""

        def fault(publisher: Publisher) -> bool:
            if self._random.random() < chance:
                publisher.forget_confirms()
                return True
            return False

        def change() -> None:
            for connection in self._core.connections:
                connection.confirm_fault = fault if chance else None

        self._run(change)

    def cancel_consumers(self, queue: str, vhost: str = "/") -> int:
        """Cancel a queue's consumers from the broker's side; returns how many."""

        def cancel() -> int:
            consumers = list(self._core.vhosts[vhost].queue(queue).rota)
            for consumer in consumers:
                consumer.channel.queue_gone(consumer)
                consumer.queue.remove_consumer(consumer)
            return len(consumers)

        return int(self._run(cancel))


def _confirm_now(connection: BrokerConnection) -> None:
    for channel in connection.session.ready.values():
        channel.publisher.send_confirms()  # type: ignore[attr-defined]
