"""``python -m bench.spark_source``: queues to Parquet with JSON decoding, beside a raw socket.

Each round, on each broker: fill eight queues; drain them over a raw socket; fill them; let Spark
read, decode and write them; the same with a source written with pika. Then the share of the ledger,
one to two hundred queues, and the time from publish to visible in the table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import machine
from bench.brokers import launchers
from bench.load.process import ROOT
from bench.report import as_text
from bench.spark_pika import PikaSource
from warren.amqp import methods as m
from warren.amqp.client_hot import encode_message, publish_frame
from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking import BlockingConnection
from warren.client.endpoint import Endpoint
from warren.spark.drain import Drain
from warren.spark.drain_job import Range
from warren.spark.ledger import Ledger
from warren.spark.options import SourceOptions

PROPERTIES = encode_properties(
    Properties(content_type="application/json", delivery_mode=1, type="order", app_id="shop")
)
ROW = "number INT, sent DOUBLE, text STRING"
DELIVER = b"\x00\x3c\x00\x3c"


class Load:
    """Queues full of JSON on a broker."""

    def __init__(self, url: str, queues: int) -> None:
        self.url = url
        self.queues = [f"bench-spark-{index}" for index in range(queues)]
        self.link = BlockingConnection.open([Endpoint.from_uri(url).but(heartbeat_s=0)])
        self.channel = self.link.channel()
        self._frames = {
            queue: publish_frame(self.channel.number, "", queue, mandatory=False)
            for queue in self.queues
        }

    def declare(self) -> None:
        self.delete()
        for queue in self.queues:
            self.channel.call(m.QueueDeclare(queue=queue), m.QueueDeclareOk)

    def delete(self) -> None:
        for queue in self.queues:
            self.channel.call(m.QueueDelete(queue=queue), m.QueueDeleteOk)

    def send(self, queue: str, first: int, count: int, size: int) -> None:
        head = len(json.dumps({"number": 0, "sent": time.time(), "text": ""}))
        text = "x" * max(0, size - head)
        for number in range(first, first + count):
            body = json.dumps({"number": number, "sent": time.time(), "text": text}).encode()
            self.link.session.out.append(
                encode_message(self._frames[queue], self.channel.number, PROPERTIES, body, 131072)
            )
            if number % 500 == 0:
                self.link.flush()
        self.link.flush()

    def fill(self, messages: int, size: int) -> None:
        self.declare()
        each = messages // len(self.queues)
        for queue in self.queues:
            self.send(queue, 0, each, size)
        while sum(self.channel.ready_messages(queue)[0] for queue in self.queues) < messages:
            time.sleep(0.05)

    def drain_raw(self, messages: int) -> float:
        """Seconds in which a socket takes all messages, acknowledged, and looks into none."""
        link = BlockingConnection.open([Endpoint.from_uri(self.url)])
        window = min(65_535, messages // len(self.queues))
        channels = [link.channel() for _ in self.queues]
        for channel in channels:
            channel.call(m.BasicQos(prefetch_count=window), m.BasicQosOk)
        began = time.perf_counter()
        for channel, queue in zip(channels, self.queues, strict=True):
            channel.send(m.BasicConsume(queue=queue, consumer_tag="raw", exclusive=True))
        link.flush()
        sock = link._socket
        sock.settimeout(30)
        count, tail = 0, b""
        while count < messages:
            data = tail + sock.recv(1 << 18)
            count += data.count(DELIVER)
            tail = data[-3:]
        for channel in channels:
            channel.send(m.BasicAck(delivery_tag=window, multiple=True))
        link.flush()
        took = time.perf_counter() - began
        link.close()
        return took


class Spark:
    """A session in which both sources are known."""

    def __init__(self, folder: Path) -> None:
        import warren.spark

        self.session = warren.spark.session("bench", **{"spark.local.dir": str(folder)})
        self.session.dataSource.register(PikaSource)
        self.folder = folder
        self._runs = 0

    def query(self, load: Load, source: str, **options: Any) -> Any:
        self._runs += 1
        here = self.folder / str(self._runs)
        frame = (
            self.session.readStream.format(source)
            .options(uri=load.url, queues=",".join(load.queues), **options)
            .load()
        )
        rows = frame.selectExpr(f"from_json(cast(body as string), '{ROW}') row", "queue", "type")
        writer = rows.select("row.*", "queue", "type").writeStream.format("parquet")
        return writer.options(path=f"{here}/table", checkpointLocation=f"{here}/checkpoint")

    def rate(self, load: Load, source: str, messages: int) -> float:
        """Messages a second of three large batches, without the first, which starts the workers."""
        options: dict[str, Any] = {"maxMessagesPerTrigger": messages // 3}
        if source == "rabbitmq":
            options["ledger"] = str(self.folder / f"ledger{self._runs}")
        running = self.query(load, source, **options).trigger(processingTime="0 seconds").start()
        try:
            batches = _batches(running, messages)
        finally:
            running.stop()
        rows = sum(batch["numInputRows"] for batch in batches[1:])
        took_ms = sum(batch["durationMs"]["triggerExecution"] for batch in batches[1:])
        return rows / (took_ms / 1000)


def _batches(query: Any, messages: int) -> list[dict[str, Any]]:
    while True:
        batches = [batch for batch in query.recentProgress if batch["numInputRows"]]
        if sum(batch["numInputRows"] for batch in batches) >= messages:
            return batches
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.05)


class TimedLedger(Ledger):
    """Counts the time that the ledger takes."""

    took_s = 0.0

    def write(self, segment: Any) -> bool:
        began = time.perf_counter()
        try:
            return super().write(segment)
        finally:
            self.took_s += time.perf_counter() - began


def drain(load: Load, messages: int) -> tuple[float, float]:
    """A drain alone, without Spark: messages a second, and the ledger's share of the time."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = TimedLedger(Ledger.at(folder).files)
        ledger.create()
        options = SourceOptions.parse({"uri": load.url, "queues": "-"})
        each = messages // len(load.queues)
        began = time.perf_counter()
        ranges = [Range(queue, 0, each) for queue in load.queues]
        rows = sum(batch.num_rows for batch in Drain(options, ledger).rows(ranges))
        took = time.perf_counter() - began
    assert rows == messages, (rows, messages)
    return messages / took, ledger.took_s / took


def latency(spark: Spark, load: Load, seconds: float, rate: int) -> tuple[float, float]:
    """p50 and p95 of the time from publish to visible, in seconds."""
    load.declare()
    here = spark.folder / str(spark._runs + 1)
    query = spark.query(
        load, "rabbitmq", ledger=str(spark.folder / "latency"), maxMessagesPerTrigger=rate * 2
    )
    load.send(load.queues[0], 0, 10, 200)
    running = query.trigger(processingTime="0 seconds").start()
    _batches(running, 10)
    stop = threading.Event()

    def publish() -> None:
        number, began = 0, time.monotonic()
        while not stop.is_set():
            due = int((time.monotonic() - began) * rate) - number
            for index, queue in enumerate(load.queues):
                load.send(queue, number + index, max(0, due // len(load.queues)), 200)
            number += due // len(load.queues) * len(load.queues)
            time.sleep(0.02)

    publisher = threading.Thread(target=publish, daemon=True)
    publisher.start()
    time.sleep(seconds)
    stop.set()
    publisher.join()
    time.sleep(3)
    running.stop()
    return _visible(here / "table")


def _visible(table: Path) -> tuple[float, float]:
    import pyarrow.parquet as pq

    from urllib.parse import unquote, urlsplit  # isort: skip

    waits: list[float] = []
    log = table / "_spark_metadata"
    for entry in sorted(log.iterdir(), key=lambda path: path.stat().st_mtime):
        if entry.name.startswith(".") or entry.suffix == ".compact" or entry.stem == "0":
            continue
        seen = entry.stat().st_mtime
        for line in entry.read_text().splitlines()[1:]:
            path = unquote(urlsplit(json.loads(line)["path"]).path)
            sent = pq.ParquetFile(path).read(columns=["sent"]).column("sent").to_pylist()
            waits += [seen - each for each in sent]
    waits.sort()
    return waits[len(waits) // 2], waits[int(len(waits) * 0.95)]


def measure(options: argparse.Namespace, spark: Spark, broker: Any) -> list[Sequence[str]]:
    lines: list[Sequence[str]] = []
    running = broker.start()
    try:
        for size in (200, 1024):
            lines += _rates(options, spark, broker.name, running.url, size)
        if options.rates:
            return lines
        lines += _queues(options, broker.name, running.url)
        load = Load(running.url, 8)
        middle, late = latency(spark, load, options.seconds, 5_000)
        load.delete()
        lines.append(
            (broker.name, "publish to visible, 5,000/s", f"p50 {middle:.2f} s", f"p95 {late:.2f} s")
        )
    finally:
        running.stop()
    return lines


def _rates(
    options: argparse.Namespace, spark: Spark, broker: str, url: str, size: int
) -> list[Sequence[str]]:
    load = Load(url, 8)
    found: dict[str, list[float]] = {"raw": [], "spark": [], "pika": [], "drain": [], "ledger": []}
    for _ in range(options.rounds):
        load.fill(options.messages, size)
        found["raw"].append(options.messages / load.drain_raw(options.messages))
        for name, source in (("spark", "rabbitmq"), ("pika", "rabbitmq_pika")):
            load.fill(options.messages, size)
            found[name].append(spark.rate(load, source, options.messages))
        load.fill(options.messages, size)
        rate, share = drain(load, options.messages)
        found["drain"].append(rate)
        found["ledger"].append(share)
    load.delete()
    raw, to_table, pika, alone, share = (statistics.median(each) for each in found.values())
    lines = (
        ("raw socket", raw, ""),
        ("to Parquet", to_table, f"{to_table / raw:.0%} of raw"),
        ("the same with pika", pika, f"{to_table / pika:.1f} times"),
        ("drain without Spark", alone, f"{share:.0%} of it the ledger"),
    )
    return [(broker, f"{size} B: {what}", f"{rate:,.0f}/s", said) for what, rate, said in lines]


def _queues(options: argparse.Namespace, broker: str, url: str) -> list[Sequence[str]]:
    lines: list[Sequence[str]] = []
    first = 0.0
    for count in (1, 8, 50, 200):
        load = Load(url, count)
        messages = options.messages // count * count
        rates = []
        for _ in range(options.rounds):
            load.fill(messages, 200)
            rates.append(drain(load, messages)[0])
        load.delete()
        rate = statistics.median(rates)
        first = first or rate
        lines.append(
            (
                broker,
                f"drain of {count} queues",
                f"{rate:,.0f}/s",
                f"{rate / first:.0%} of one queue",
            )
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_source", description=__doc__)
    parser.add_argument("--messages", type=int, default=480_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long latency is measured")
    parser.add_argument("--rates", action="store_true", help="only how fast, not the rest")
    parser.add_argument("--broker", action="append", choices=("warren", "rabbitmq"))
    options = parser.parse_args()
    with (
        launchers(options.broker or ("warren", "rabbitmq")) as started,
        tempfile.TemporaryDirectory() as folder,
    ):
        spark = Spark(Path(folder))
        lines = [line for broker in started for line in measure(options, spark, broker)]
        spark.session.stop()
    print(as_text([("Broker", "Queues to a table", "", ""), *lines]))
    kept = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "messages": options.messages,
        "rounds": options.rounds,
        "table": lines,
    }
    if options.rates:
        return 0
    (ROOT / "bench" / "results" / "spark-source.json").write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
