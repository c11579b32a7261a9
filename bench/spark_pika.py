"""The peer of the source: what one would write with pika in an afternoon.

Each task opens a connection a queue, consumes until nothing comes for a moment, yields tuples, and
acknowledges at the end. It neither survives a crash nor keeps two attempts apart; it is here to be
measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pika
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

SCHEMA = "queue STRING, routing_key STRING, body BINARY, content_type STRING, type STRING"


class PikaReader(DataSourceStreamReader):
    """Offsets count messages; a partition a queue."""

    def __init__(self, options: dict[str, str]) -> None:
        self.uri, self.queues = options["uri"], options["queues"].split(",")
        self.limit = int(options.get("maxMessagesPerTrigger".lower(), 10**9))

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return dict.fromkeys(self.queues, 0)

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        connection = pika.BlockingConnection(pika.URLParameters(self.uri))
        channel = connection.channel()
        self._end = getattr(self, "_end", self.initialOffset())
        share = self.limit // len(self.queues)
        for queue in self.queues:
            ready = channel.queue_declare(queue, passive=True).method.message_count
            self._end[queue] += min(ready, share)
        connection.close()
        return dict(self._end)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [
            InputPartition((queue, end[queue] - start[queue]))
            for queue in self.queues
            if end[queue] > start[queue]
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        queue, count = partition.value
        connection = pika.BlockingConnection(pika.URLParameters(self.uri))
        channel = connection.channel()
        channel.basic_qos(prefetch_count=min(count, 65_535))
        tag = 0
        for method, properties, body in channel.consume(queue, inactivity_timeout=2):
            if method is None:
                break
            tag = method.delivery_tag
            kind = properties.content_type
            yield queue, method.routing_key, body, kind, properties.type
            if tag == count:
                break
        if tag:
            channel.basic_ack(tag, multiple=True)
        connection.close()


class PikaSource(DataSource):
    """``format("rabbitmq_pika")``."""

    @classmethod
    def name(cls) -> str:
        return "rabbitmq_pika"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return PikaReader(dict(self.options))
