"""Faults on demand, so that users can see how their programs take them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from warren.broker.core import BrokerCore
from warren.broker.publisher import Publisher


class Faults:
    """What can go wrong with a broker, one method each.

    Confirm faults hold for every connection, also for those to come, until they are changed.
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
        self._set_gate((lambda publisher, last: False) if hold else None)

    def delay_confirms(self, delay_s: float) -> None:
        """Send confirms this much later, on the broker's clock; 0 for at once."""
        scheduled: dict[Publisher, int] = {}

        def gate(publisher: Publisher, last: int) -> bool:
            if scheduled.get(publisher, 0) < last:
                scheduled[publisher] = last
                self._core.timers.after(
                    round(delay_s * 1000), lambda: self._confirm_late(publisher, last, scheduled)
                )
            return False

        self._set_gate(gate if delay_s else None)

    @staticmethod
    def _confirm_late(publisher: Publisher, last: int, scheduled: dict[Publisher, int]) -> None:
        publisher.confirm(last)
        if scheduled.get(publisher) == last:
            del scheduled[publisher]

    def drop_confirms(self, chance: float = 1.0) -> None:
        """Lose confirms: what is lost is never sent. 0 ends it."""

        def gate(publisher: Publisher, last: int) -> bool:
            if self._random.random() < chance:
                publisher.lose_confirms(last)
                return False
            return True

        self._set_gate(gate if chance else None)

    def _set_gate(self, gate: Callable[[Publisher, int], bool] | None) -> None:
        def change() -> None:
            self._core.confirm_gate = gate
            for connection in self._core.connections:
                for channel in connection.session.ready.values():
                    channel.publisher.send_confirms()  # type: ignore[attr-defined]

        self._run(change)

    def cancel_consumers(self, queue: str, vhost: str = "/") -> int:
        """Cancel a queue's consumers from the broker's side; returns how many."""

        def cancel() -> int:
            consumers = list(self._core.vhosts[vhost].queues[queue].rota)
            for consumer in consumers:
                consumer.channel.queue_gone(consumer)
                consumer.queue.remove_consumer(consumer)
            return len(consumers)

        return int(self._run(cancel))
