"""Publishing again what a ledger holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from warren.client.blocking import BlockingConnection
from warren.client.blocking_replay import Replayer
from warren.client.endpoint import parse_uri
from warren.errors import LedgerUnusable, ReplayStopped, Unroutable, WarrenError
from warren.spark.columns import PROPERTIES
from warren.spark.sent_on import cut, sent_on, with_names_cut, within


def replay(rows: Iterable[Mapping[str, Any]], uri: str, queue: str) -> int:
    """Publish rows to a queue, with their properties; returns when all are confirmed, how many.

    Headers are text now, whatever they were; those that are of the message that was read only are
    left out. So is ``user_id``: the broker takes it from its owner only. What is too long now is
    cut, and headers that leave no room in a frame are left out.

    Raises:
        ReplayStopped: it ended in between; says up to where all is confirmed.
        NotFound: the queue is not there; nothing was published.
    """
    with BlockingConnection.open(parse_uri(uri), name="warren ledger") as link:
        replayer = Replayer(link, queue)
        try:
            _publish(replayer, rows)
        except TimeoutError as error:
            raise _stopped(replayer, str(error)) from None
        except WarrenError as error:
            # Where the broker still answers, what it has may as well be certain.
            with suppress(WarrenError, TimeoutError):
                replayer.finish()
            raise _stopped(replayer, _reason(error, queue)) from None
        return replayer.confirmed


def _reason(error: WarrenError, queue: str) -> str:
    if isinstance(error, LedgerUnusable):
        return f"{error.place} can't be read: {error.reason}"
    if isinstance(error, Unroutable):
        return f"queue '{queue}' was deleted meanwhile, with what was still in it"
    return str(error)


def _stopped(replayer: Replayer, reason: str) -> ReplayStopped:
    return ReplayStopped(replayer.queue, reason, replayer.confirmed, replayer.reached)


def _publish(replayer: Replayer, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        properties = _properties(row)
        headers = with_names_cut(sent_on(row["headers"]))
        if headers is not None:
            properties["headers"] = dict(within(headers, replayer.room(properties)))
        replayer.publish(properties, row["body"], row["offset"])
    replayer.finish()


def _properties(row: Mapping[str, Any]) -> dict[str, Any]:
    """All but the headers."""
    values: dict[str, Any] = {
        column.name: cut(row[column.name]) if column.sql == "STRING" else row[column.name]
        for column in PROPERTIES
        if column.name not in ("user_id", "headers")
    }
    if values["timestamp"] is not None:
        values["timestamp"] = int(values["timestamp"].timestamp())
    return values
