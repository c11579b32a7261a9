"""Publishing again what a ledger holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from warren.client.blocking import BlockingConnection
from warren.client.blocking_replay import Replayer
from warren.client.endpoint import parse_uri
from warren.spark.columns import PROPERTIES
from warren.spark.sent_on import cut, sent_on, with_names_cut, within


def replay(rows: Iterable[Mapping[str, Any]], uri: str, queue: str) -> int:
    """Publish rows to a queue, with their properties; returns when all are confirmed.

    Headers are text now, whatever they were; those that are of the message that was read only are
    left out. So is ``user_id``: the broker takes it from its owner only. What is too long now is
    cut, and headers that leave no room in a frame are left out.
    """
    with BlockingConnection.open(parse_uri(uri), name="warren ledger") as link:
        replayer = Replayer(link, queue)
        for row in rows:
            properties = _properties(row)
            headers = with_names_cut(sent_on(row["headers"]))
            if headers is not None:
                properties["headers"] = dict(within(headers, replayer.room(properties)))
            replayer.publish(properties, row["body"])
        return replayer.finish()


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
