"""The peer of the source: what one would write with pika in an afternoon.

Each task opens a connection a queue, consumes until nothing comes for a moment, yields tuples, and
acknowledges them as it goes. It neither survives a crash nor keeps two attempts apart; it is here
to be measured.
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
        self.share = int(options["maxmessagespertrigger"]) // len(self.queues)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return dict.fromkeys(self.queues, 0)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        connection = pika.BlockingConnection(pika.URLParameters(self.uri))
        channel = connection.channel()
        end = dict(start)
        for queue in self.queues:
            ready = channel.queue_declare(queue, passive=True).method.message_count
            end[queue] += min(ready, self.share)
        connection.close()
        return end

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
        channel.basic_qos(prefetch_count=1000)
        for method, properties, body in channel.consume(queue, inactivity_timeout=2):
            if method is None:
                break
            yield queue, method.routing_key, body, properties.content_type, properties.type
            channel.basic_ack(method.delivery_tag)
            if method.delivery_tag == count:
                break
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
