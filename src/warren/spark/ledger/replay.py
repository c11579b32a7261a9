"""Publishing again what a ledger holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from warren.client.blocking import BlockingConnection
from warren.client.blocking_replay import Replayer
from warren.client.endpoint import parse_uri
from warren.spark.columns import PROPERTIES
from warren.spark.sent_on import sent_on


def replay(rows: Iterable[Mapping[str, Any]], uri: str, queue: str) -> int:
    """Publish rows to a queue, with their properties; returns when all are confirmed.

    Headers are text now, whatever they were; those that are of the message that was read only are
    left out. So is ``user_id``: the broker takes it from its owner only.
    """
    with BlockingConnection.open(parse_uri(uri), name="warren ledger") as link:
        replayer = Replayer(link, queue)
        for row in rows:
            replayer.publish(_properties(row), row["body"])
        return replayer.finish()


def _properties(row: Mapping[str, Any]) -> dict[str, Any]:
    values = {column.name: row[column.name] for column in PROPERTIES if column.name != "user_id"}
    if values["headers"] is not None:
        values["headers"] = dict(sent_on(values["headers"]) or ())
    if values["timestamp"] is not None:
        values["timestamp"] = int(values["timestamp"].timestamp())
    return values
