"""``python -m bench.spark_source``: queues to Parquet with JSON decoding, beside a raw socket.

Each round, on each broker: fill eight queues; drain them over a raw socket; fill them; let Spark
read, decode and write them; the raw socket once more; the same with a source written with pika,
which has the same columns. Shares are of figures that were measured one after the other.
Then the share of the ledger, one to two hundred queues, and the time from publish to visible in the
table. A query runs for days and Java needs some minutes until it is as fast as it gets, so millions
of messages go before those that count. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any

from bench.brokers import launchers
from bench.spark_pika import SCHEMA as PIKA_COLUMNS
from bench.spark_pika import PikaSource
from bench.spark_report import Bar, Line, Report
from bench.timed_ledger import TimedLedger
from warren.amqp import methods as m
from warren.amqp.client_hot import encode_message, publish_frame
from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking import BlockingConnection
from warren.client.endpoint import Endpoint
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.ledger.ledger import Ledger
from warren.spark.options import SourceOptions

PROPERTIES = encode_properties(
    Properties(content_type="application/json", delivery_mode=1, type="order", app_id="shop")
)
ROW = "number INT, sent DOUBLE, text STRING"
#: How often all messages are read before the clock starts.
WARM_UPS = 6
#: The head of a frame with a delivery: its channel.
DELIVER = re.compile(rb"\x01(..)....\x00\x3c\x00\x3c", re.DOTALL)
#: Of a queue, over the raw socket: unacknowledged messages at the most, and so many in one
#: acknowledgement. Of seven windows from 500 to all, RabbitMQ is the fastest with this one.
WINDOW, ACK_EVERY = 20_000, 5_000
SIZES = (200, 1024)
QUEUES = (1, 8, 50, 200)
PARTS = ("rates", "queues", "latency")
Say = Callable[[str], None]


def _prose(letters: int) -> str:
    random = Random(1)
    words = ["".join(random.choices(ascii_lowercase, k=random.randint(2, 11))) for _ in range(5000)]
    often = [1 / rank for rank in range(1, len(words) + 1)]  # as in languages
    return " ".join(random.choices(words, often, k=letters // 2))[:letters]


_PROSE = _prose(1 << 20)


def _text(number: int, length: int) -> str:
    """A text like no other: one letter many times would cost the ledger and Parquet's compression
    nothing, and Parquet's statistics, which compare texts until they differ, too much."""
    at = number * 7919 % (len(_PROSE) - length)
    return _PROSE[at : at + length]


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
        length = max(0, size - head)
        for number in range(first, first + count):
            text = _text(number, length)
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
        opened = [link.channel() for _ in self.queues]
        channels = {each.number.to_bytes(2, "big"): each for each in opened}
        for channel in channels.values():
            channel.call(m.BasicQos(prefetch_count=WINDOW), m.BasicQosOk)
        began = time.perf_counter()
        for channel, queue in zip(channels.values(), self.queues, strict=True):
            channel.send(m.BasicConsume(queue=queue, consumer_tag="raw", exclusive=True))
        link.flush()
        sock = link._socket
        sock.settimeout(30)
        came, acked, tail = Counter[bytes](), Counter[bytes](), b""
        while came.total() < messages:
            data = tail + sock.recv(1 << 18)
            came.update(DELIVER.findall(data))
            tail = data[-10:]  # one octet less than what is looked for
            for number, channel in channels.items():
                if came[number] - acked[number] >= ACK_EVERY:
                    channel.send(m.BasicAck(delivery_tag=came[number], multiple=True))
                    acked[number] = came[number]
            link.flush()
        for number, channel in channels.items():
            if came[number] > acked[number]:
                channel.send(m.BasicAck(delivery_tag=came[number], multiple=True))
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
        self.warm = False
        self._runs = 0

    def query(self, load: Load, source: str, **options: Any) -> Any:
        self._runs += 1
        here = self.folder / str(self._runs)
        frame = (
            self.session.readStream.format(source)
            .schema(PIKA_COLUMNS)
            .options(uri=load.url, queues=",".join(load.queues), **options)
            .load()
        )
        rows = frame.selectExpr(f"from_json(cast(body as string), '{ROW}') row", "queue", "type")
        writer = rows.select("row.*", "queue", "type").writeStream.format("parquet")
        return writer.options(path=f"{here}/table", checkpointLocation=f"{here}/checkpoint")

    def rate(self, load: Load, source: str, messages: int, batches: int = 3) -> float:
        """Messages a second of large batches, without the first, which starts the workers."""
        options: dict[str, Any] = {"maxMessagesPerTrigger": messages // batches}
        if source == "rabbitmq":
            options["ledger"] = str(self.folder / f"ledger{self._runs}")
        running = self.query(load, source, **options).trigger(processingTime="0 seconds").start()
        try:
            counted = _batches(running, messages)[1:]
        finally:
            running.stop()
        rows = sum(batch["numInputRows"] for batch in counted)
        took_ms = sum(batch["durationMs"]["triggerExecution"] for batch in counted)
        return rows / (took_ms / 1000)


def _batches(query: Any, messages: int) -> list[dict[str, Any]]:
    while True:
        batches = [batch for batch in query.recentProgress if batch["numInputRows"]]
        if sum(batch["numInputRows"] for batch in batches) >= messages:
            return batches
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.05)


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


def latency(spark: Spark, load: Load, seconds: float, rate: int) -> dict[str, float]:
    """How long a message takes from publish to visible, and how many were published a second."""
    load.declare()
    here = spark.folder / str(spark._runs + 1)
    query = spark.query(
        load,
        "rabbitmq",
        ledger=str(spark.folder / f"latency{spark._runs}"),
        maxMessagesPerTrigger=rate * 2,
    )
    first = 10
    load.send(load.queues[0], 0, first, 200)
    running = query.trigger(processingTime="0 seconds").start()
    _batches(running, first)
    began = time.monotonic()
    published = _publish_steadily(load, seconds, rate)
    took = time.monotonic() - began
    deadline = time.monotonic() + 30
    while len(waits := _waits(here / "table")) < first + published:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(waits)} of {first + published} messages are in the table")
        time.sleep(1.0)
    running.stop()
    waits = sorted(waits[first:])
    return {
        "published": published / took,
        "p50": waits[len(waits) // 2],
        "p95": waits[int(len(waits) * 0.95)],
    }


def _publish_steadily(load: Load, seconds: float, rate: int) -> int:
    """Publish for so long; returns how many it were."""
    number, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        each = (int(passed * rate) - number) // len(load.queues)
        for queue in load.queues:
            load.send(queue, number, each, 200)
        number += each * len(load.queues)
        time.sleep(0.02)
    return number


def _waits(table: Path) -> list[float]:
    """Of each message in a table, in the order they became visible, how long it took."""
    import pyarrow.parquet as pq

    from urllib.parse import unquote, urlsplit  # isort: skip

    waits: list[float] = []
    seen: set[str] = set()
    log = [each for each in (table / "_spark_metadata").iterdir() if each.stem.isdigit()]
    for entry in sorted(log, key=lambda path: int(path.stem)):
        visible = entry.stat().st_mtime
        paths = {json.loads(line)["path"] for line in entry.read_text().splitlines()[1:]}
        for path in paths - seen:  # every tenth entry has all that came before it, too
            file = pq.ParquetFile(unquote(urlsplit(path).path))
            waits += [visible - sent for sent in file.read(["sent"]).column("sent").to_pylist()]
        seen |= paths
    return waits


def measure(options: argparse.Namespace, spark: Spark, url: str, say: Say) -> dict[str, float]:
    """All figures of one broker, by name."""
    found: dict[str, float] = {}
    say("the first millions, until Java has compiled what it runs")
    load = Load(url, 8)
    for number in range(WARM_UPS if not spark.warm else 1):
        load.fill(options.messages, SIZES[number % len(SIZES)])
        spark.rate(load, "rabbitmq", options.messages)
    load.fill(options.messages // 4, 200)
    spark.rate(load, "rabbitmq_pika", options.messages // 4)
    load.delete()
    spark.warm = True
    if "rates" in options.parts:
        for size in SIZES:
            for name, value in _rates(options, spark, url, size, say).items():
                found[f"{size} B: {name}"] = value
    if "queues" in options.parts:
        found |= _queues(options, spark, url, say)
    if "latency" in options.parts:
        load = Load(url, 8)
        say("5,000 messages a second, from publish to visible")
        found |= latency(spark, load, options.seconds, 5_000)
        load.delete()
    return found


def _rates(
    options: argparse.Namespace, spark: Spark, url: str, size: int, say: Say
) -> dict[str, float]:
    load = Load(url, 8)
    names = ("raw", "spark", "pika", "drain", "ledger", "of raw", "times pika")
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(options.rounds):
        where = f"{size} B, round {number + 1} of {options.rounds}"
        say(f"{where}: raw socket, before and after what is compared with it")
        raw = [_raw(load, options.messages, size)]
        say(f"{where}: to Parquet")
        load.fill(options.messages, size)
        rate = spark.rate(load, "rabbitmq", options.messages)
        raw.append(_raw(load, options.messages, size))
        say(f"{where}: to Parquet with pika")
        load.fill(options.messages // 4, size)  # enough to see how slow the peer is
        pika = spark.rate(load, "rabbitmq_pika", options.messages // 4)
        load.fill(options.messages, size)
        alone, share = drain(load, options.messages)
        mean = statistics.mean(raw)
        say(f"{where}: {rate:,.0f}/s, {rate / mean:.2f} of {mean:,.0f}/s raw; pika {pika:,.0f}/s")
        for name, value in zip(
            names, (mean, rate, pika, alone, share, rate / mean, rate / pika), strict=True
        ):
            found[name].append(value)
    load.delete()
    return {name: statistics.median(each) for name, each in found.items()}


def _raw(load: Load, messages: int, size: int) -> float:
    load.fill(messages, size)
    return messages / load.drain_raw(messages)


def _queues(options: argparse.Namespace, spark: Spark, url: str, say: Say) -> dict[str, float]:
    """One to many queues to Parquet: the slowest as a share of one, and the most of eight.

    In turns, and of each the median: single rates differ by more than what is asked here, and the
    slowest of some single ones would be the unluckiest.
    """
    found: dict[int, list[float]] = {count: [] for count in QUEUES}
    turns = max(3, options.rounds)
    for number in range(turns):
        for count in QUEUES:
            say(f"{count} queues to Parquet, {number + 1} of {turns}")
            load = Load(url, count)
            messages = options.messages // count * count
            load.fill(messages, 200)
            found[count].append(spark.rate(load, "rabbitmq", messages, batches=6))
            load.delete()
            load.link.close()
    rates = {count: statistics.median(each) for count, each in found.items()}
    return {
        **{f"{count} queues": rate for count, rate in rates.items()},
        "many queues": min(rates.values()) / rates[QUEUES[0]],
        "most queues": rates[QUEUES[-1]] / rates[8],
    }


def lines(by_broker: dict[str, dict[str, float]]) -> list[Line]:
    """The figures, with what is asked of them."""

    def line(title: str, name: str, unit: str, bar: Bar | None = None) -> Line:
        values = {broker: found[name] for broker, found in by_broker.items() if name in found}
        return Line(title, unit, values, bar or Bar())

    told: list[Line] = []
    for size in (f"{octets} B" for octets in SIZES):
        told += [
            line(f"{size}: raw socket", f"{size}: raw", "rate"),
            line(
                f"{size}: queues to Parquet",
                f"{size}: spark",
                "rate",
                Bar(at_least=60_000, on=["warren"]),
            ),
            line(
                f"{size}: share of the raw rate",
                f"{size}: of raw",
                "ratio",
                Bar(at_least=0.70, on=["rabbitmq"]),
            ),
            line(f"{size}: the same with pika", f"{size}: pika", "rate"),
            line(
                f"{size}: times the pika source",
                f"{size}: times pika",
                "ratio",
                Bar(at_least=3.0, on=["rabbitmq"]),
            ),
            line(f"{size}: drain without Spark", f"{size}: drain", "rate"),
            line(f"{size}: the ledger's share of a drain's time", f"{size}: ledger", "ratio"),
        ]
    told += [line(f"{count} queues to Parquet", f"{count} queues", "rate") for count in QUEUES]
    told += [
        line(
            "1 to 200 queues: the slowest, share of one queue's",
            "many queues",
            "ratio",
            Bar(at_least=0.8),
        ),
        line("200 queues, share of eight queues'", "most queues", "ratio", Bar(at_least=0.8)),
        line("published while that is measured", "published", "rate", Bar(at_least=4_750)),
        line("publish to visible at 5,000/s, p50", "p50", "time", Bar(at_most=1.0)),
        line("publish to visible at 5,000/s, p95", "p95", "time", Bar(at_most=3.0)),
    ]
    return [each for each in told if each.values]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_source", description=__doc__)
    parser.add_argument("--messages", type=int, default=480_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long latency is measured")
    parser.add_argument(
        "--only", dest="parts", action="append", choices=PARTS, help="a part, not the whole"
    )
    parser.add_argument("--broker", action="append", choices=("warren", "rabbitmq"))
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    options.parts = options.parts or PARTS
    report = Report("source", messages=options.messages, rounds=options.rounds)
    by_broker: dict[str, dict[str, float]] = {}
    with (
        launchers(options.broker or ("warren", "rabbitmq")) as started,
        tempfile.TemporaryDirectory() as folder,
    ):
        report.say("Spark starts")
        spark = Spark(Path(folder))
        for broker in started:
            running = broker.start()
            report.versions[broker.name] = running.version
            try:
                say = partial(_say_on, report, broker.name)
                by_broker[broker.name] = measure(options, spark, running.url, say)
            finally:
                running.stop()
        spark.session.stop()
    return report.end(lines(by_broker), keep=options.keep)


def _say_on(report: Report, broker: str, words: str) -> None:
    report.say(f"{broker}: {words}")


if __name__ == "__main__":
    sys.exit(main())
