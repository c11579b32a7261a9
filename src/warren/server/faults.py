"""Faults on demand, so that users can see how their programs take them."""

from __future__ import annotations

import difflib
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

from warren.broker.connection import BrokerConnection
from warren.broker.core import BrokerCore
from warren.broker.publisher import Publisher
from warren.errors import ConfigError


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

    def cut_connections(
        self, chance: float = 1.0, *, name: str | None = None, user: str | None = None
    ) -> int:
        """Cut clients' TCP connections, without a word; returns how many.

        All of them, or those only whose client gave this ``name`` (``connection_name`` in its
        properties), or that logged in as this ``user``.
        """
        _check_chance(chance, "cut_connections")
        _check_text("name", name, "cut_connections")
        _check_text("user", user, "cut_connections")

        def cut() -> int:
            meant = [
                connection
                for connection in self._core.connections
                if name in (None, _given_name(connection)) and user in (None, connection.user_name)
            ]
            chosen = [each for each in meant if self._random.random() < chance]
            for connection in chosen:
                connection.shell.abort()
            return len(chosen)

        return int(self._run(cut))

    def hold_confirms(self, hold: bool = True) -> None:
        """Keep publisher confirms back (True), or send all that were kept back (False)."""
        self._set_gate((lambda publisher, last: False) if hold else None)

    def delay_confirms(self, delay_s: float) -> None:
        """Send confirms this much later, on the broker's clock; 0 for at once."""
        if not _is_number(delay_s) or delay_s < 0:
            raise _wrong("delay_s", delay_s, "a number of seconds", "delay_confirms")
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
        _check_chance(chance, "drop_confirms")

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

    def cancel_consumers(self, queue: str, vhost: str = "/", *, tag: str | None = None) -> int:
        """Cancel a queue's consumers from the broker's side; returns how many.

        All of them, or those with this consumer ``tag`` only.

        Raises:
            ConfigError: there is no such queue, or virtual host.
        """
        for name, value in (("queue", queue), ("vhost", vhost), ("tag", tag)):
            _check_text(name, value, "cancel_consumers")

        def cancel() -> int:
            vhosts = self._core.vhosts
            if vhost not in vhosts:
                raise _missing("vhost", f"there is no virtual host '{vhost}'", vhost, vhosts)
            queues = vhosts[vhost].queues
            if queue not in queues:
                what = f"there is no queue '{queue}' in virtual host '{vhost}'"
                raise _missing("queue", what, queue, queues)
            consumers = [each for each in queues[queue].rota if tag in (None, each.tag)]
            for consumer in consumers:
                consumer.channel.queue_gone(consumer)
                consumer.queue.remove_consumer(consumer)
            return len(consumers)

        return int(self._run(cancel))


def _given_name(connection: BrokerConnection) -> object:
    """What the client calls itself."""
    name = connection.session.client_properties.get("connection_name")
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _check_chance(chance: object, method: str) -> None:
    if not isinstance(chance, int | float) or not 0 <= chance <= 1:
        raise _wrong("chance", chance, "a number from 0 to 1", method)


def _check_text(argument: str, value: object, method: str) -> None:
    if value is not None and not isinstance(value, str):
        raise _wrong(argument, value, "a string", method)


def _wrong(argument: str, value: object, wanted: str, method: str) -> ConfigError:
    return ConfigError(argument, f"{value!r} is not {wanted}", method)


def _missing(argument: str, what: str, name: str, known: Iterable[str]) -> ConfigError:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return ConfigError(argument, what + hint, "cancel_consumers")
