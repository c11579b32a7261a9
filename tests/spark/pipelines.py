"""Pipelines of a test: files, what they wrote, and what is left in queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from tests.spark.queries import is_too_slow
from tests.support.wire import Channel, Message
from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking_publisher import BlockingPublisher
from warren.client.endpoint import Endpoint
from warren.client.publish_columns import Routes, encode_messages
from warren.errors import PipelineStopped
from warren.pipeline.count import BatchCount
from warren.pipeline.run import Progress, Run


class Job:
    """A pipeline's file in a folder, and a broker."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.batches: list[Progress] = []

    def write(self, text: str) -> None:
        (self.folder / "job.yaml").write_text(text)

    def make(self, told: Any = None) -> Run:
        file = str(self.folder / "job.yaml")
        return Run.from_file(file, url=self.url, told=told or self.batches.append)

    def run(self, text: str | None = None, told: Any = None) -> BatchCount:
        """All that is there now."""
        if text is not None:
            self.write(text)
        for _ in range(6):
            try:
                return self.make(told).run(once=True)
            except PipelineStopped as stopped:
                if not is_too_slow(stopped):
                    raise
        raise AssertionError("Spark's Python was too slow six times")

    def rows(self, table: str) -> list[dict[str, Any]]:
        found = ds.dataset(self.folder / "job-data" / table, partitioning="hive")
        return list(found.to_table().to_pylist())

    def column(self, table: str, name: str) -> list[Any]:
        return [row[name] for row in self.rows(table)]


def got(channel: Channel, queue: str) -> list[Message]:
    found = []
    while (message := channel.get(queue, no_ack=True)) is not None:
        found.append(message)
    return found


def ready(channel: Channel, queue: str) -> int:
    return int(channel.declare(queue, passive=True).message_count)


def send(url: str, queue: str, body: bytes, **properties: Any) -> None:
    """What no publisher of ours would send: surrogates stand for octets that are not UTF-8."""
    listed = encode_properties(Properties(**properties))
    with BlockingPublisher([Endpoint.from_uri(url)]) as publisher:
        publish = Routes(mandatory=True).frame("", queue)
        publisher.publish(encode_messages([publish], [listed], [body], publisher.frame_max))
        publisher.finish()


def order(number: Any, country: str = "de", cents: Any = 5) -> bytes:
    return json.dumps({"id": number, "country": country, "cents": cents}).encode()
