"""A broker takes up what the one before it left in the store."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from warren.broker.exchanges import EXCHANGE_TYPES
from warren.broker.journal import Journal
from warren.broker.queues.arguments import queue_type
from warren.broker.queues.queue import Queue
from warren.broker.queues.stream import StreamQueue
from warren.broker.records import unpack_arguments
from warren.errors import StoreDamaged
from warren.store.base import LogSummary

if TYPE_CHECKING:
    from warren.broker.core import BrokerCore

log = logging.getLogger(__name__)

_NOTHING = LogSummary(0, 0, 0, 0)


def recover(core: BrokerCore, journal: Journal) -> None:
    """Take up everything, or say what can't be.

    Raises:
        StoreDamaged: a definition in the store makes no sense.
    """
    try:
        _recover(core, journal)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        reason = f"a definition can't be read: {type(error).__name__} {error}"
        raise StoreDamaged(journal.store.name, reason) from error


def _recover(core: BrokerCore, journal: Journal) -> None:
    """Virtual hosts first, then exchanges and queues, then what binds them."""
    records: dict[str, list[tuple[list[Any], dict[str, Any]]]] = {}
    for kind, key, value in journal.definitions():
        records.setdefault(kind, []).append((key, value))
    _administered(core, records)
    for key, value in records.get("exchange", ()):
        _exchange(core, key, value)
    logs = journal.store.logs()
    for key, value in records.get("queue", ()):
        _queue(core, journal, key, value, logs)
    for key, _ in records.get("binding", ()):
        _binding(core, key)


def _administered(
    core: BrokerCore, records: dict[str, list[tuple[list[Any], dict[str, Any]]]]
) -> None:
    """Users and virtual hosts as they were left; in a new store there are none yet."""
    if "vhost" not in records and "user" not in records:
        return
    core.admin.forget_all()
    for kind in ("user", "vhost", "permission", "topic_permission"):
        for key, value in records.get(kind, ()):
            core.admin.restore(kind, key, value)
    if "user" not in records:  # as RabbitMQ: it makes a guest only where there is nothing at all
        log.warning("all users were deleted: nobody can log in until a program adds one")


def _exchange(core: BrokerCore, key: list[Any], value: dict[str, Any]) -> None:
    vhost, name = key
    core.vhosts[vhost].exchanges[name] = EXCHANGE_TYPES[value["type"]](
        name,
        durable=True,
        auto_delete=value["auto_delete"],
        internal=value["internal"],
        arguments=unpack_arguments(value["arguments"]),
    )


def _queue(
    core: BrokerCore,
    journal: Journal,
    key: list[Any],
    value: dict[str, Any],
    logs: dict[int, LogSummary],
) -> None:
    vhost, name = key
    arguments = unpack_arguments(value["arguments"])
    cls: type[Queue] | type[StreamQueue] = (
        StreamQueue if queue_type(arguments) == "stream" else Queue
    )
    core.last_log = max(core.last_log, value["log"])
    queue = cls(
        core.vhosts[vhost],
        name,
        durable=True,
        auto_delete=value["auto_delete"],
        arguments=arguments,
        log_id=value["log"],
    )
    core.vhosts[vhost].queues[name] = queue
    queue.recover(journal, logs.get(value["log"], _NOTHING))


def _binding(core: BrokerCore, key: list[Any]) -> None:
    vhost_name, source, kind, destination, routing_key, arguments = key
    vhost = core.vhosts[vhost_name]
    places: dict[str, Any] = vhost.exchanges if kind == "exchange" else vhost.queues
    vhost.bind(source, places[destination], routing_key, unpack_arguments(arguments))
