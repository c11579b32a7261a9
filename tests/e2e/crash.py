"""The crash loop: load, kill -9, restart, compare.

    python -m tests.e2e.crash --rounds 200 --seed 1

Each round, publishers with confirms and transactions and consumers with acknowledgements work on
several queues (direct, fanout, with priorities, quorum, transactional) until the broker is killed
at a random moment. It is started again, every queue is emptied, and compared with what the
clients know:

- lost: confirmed (or committed), never acknowledged, and not found
- doubled: acknowledged, with an answer of the broker behind it, and found again; or seen by a
  client and found again without the redelivered flag; or found twice
- out of order: not in the order it was published (of its priority)
- torn: a transaction of which a part is there
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pika import spec

from tests.support.bulk import Bulk, Delivery
from tests.support.process import BrokerProcess
from tests.support.wire import Channel, Closed, Connection
from tests.support.wire_frames import Gone

#: What a client's thread ends of when the broker is killed.
OVER = (Gone, Closed, OSError, TimeoutError)
HIGHEST = 3
TRANSACTION = 7


@dataclass
class Source:
    """What one publisher knows."""

    first: int = 0
    sent: int = 0
    """The next number."""
    confirmed: int = 0
    """All below it are confirmed."""


@dataclass
class Sink:
    """What the consumers of one queue know."""

    name: str
    source: Source
    arguments: dict[str, object] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    acked: set[int] = field(default_factory=set)
    """The ack was sent."""
    settled: set[int] = field(default_factory=set)
    """The ack was sent, and the broker answered to something sent after it."""
    found: list[Delivery] = field(default_factory=list)


@dataclass
class Tally:
    rounds: int = 0
    confirmed: int = 0
    acknowledged: int = 0
    found: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    torn: int = 0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.out_of_order or self.torn)

    def __str__(self) -> str:
        cells = [(key.replace("_", " "), f"{value:,}") for key, value in vars(self).items()]
        widths = [max(len(key), len(value)) for key, value in cells]
        heads = "  ".join(key.rjust(width) for (key, _), width in zip(cells, widths, strict=True))
        row = "  ".join(value.rjust(width) for (_, value), width in zip(cells, widths, strict=True))
        return f"{heads}\n{row}"


class CrashLoop:
    """One data folder and its broker, killed again and again."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.broker = BrokerProcess(folder)
        self.tally = Tally()
        direct, fanout, priority, quorum, committed = (Source() for _ in range(5))
        self.sinks = {
            "direct": Sink("direct", direct),
            "fan-a": Sink("fan-a", fanout),
            "fan-b": Sink("fan-b", fanout),
            "fan-c": Sink("fan-c", fanout),
            "priority": Sink("priority", priority, {"x-max-priority": HIGHEST}),
            "quorum": Sink("quorum", quorum, {"x-queue-type": "quorum"}),
            "committed": Sink("committed", committed),
        }

    def run(self, rounds: int, *, tell: Callable[[str], None] = print) -> Tally:
        self.start()
        self.declare()
        for number in range(1, rounds + 1):
            killed_after = self.load()
            self.start()
            self.empty()
            problems = self.compare()
            self.tally.rounds = number
            tell(
                f"round {number:3}: killed after {killed_after * 1000:3.0f} ms: {problems or 'ok'}"
            )
        self.broker.stop()
        return self.tally

    def start(self) -> None:
        # Every other life has hardly any memory: messages are read back from the disk.
        limit = self.random.choice(["400000", "1000000000"])
        self.broker.start("--memory-limit-bytes", limit)

    def declare(self) -> None:
        channel = self.broker.connect().channel()
        channel.declare_exchange("fan", "fanout", durable=True)
        for sink in self.sinks.values():
            channel.declare(sink.name, durable=True, arguments=sink.arguments)
            if sink.name.startswith("fan-"):
                channel.bind(sink.name, "fan")

    # -- load ------------------------------------------------------------------------------------
    def load(self) -> float:
        """Work until the kill; returns when that was."""
        sinks = self.sinks
        for sink in sinks.values():
            sink.source.first = sink.source.confirmed = sink.source.sent
            sink.seen, sink.acked, sink.settled = set(), set(), set()
        jobs: list[Callable[[random.Random], None]] = [
            lambda dice: self.publish(sinks["direct"].source, "direct", dice),
            lambda dice: self.publish(sinks["fan-a"].source, "", dice, exchange="fan"),
            lambda dice: self.publish(sinks["priority"].source, "priority", dice, urgent=True),
            lambda dice: self.publish(sinks["quorum"].source, "quorum", dice),
            lambda dice: self.commit(sinks["committed"].source, dice),
            lambda dice: self.consume(sinks["direct"], dice, refuse=True),
            lambda dice: self.consume(sinks["fan-a"], dice),
            lambda dice: self.consume_in_transactions(sinks["fan-b"], dice),
            lambda dice: self.consume(sinks["priority"], dice),
            lambda dice: self.consume(sinks["quorum"], dice),
        ]
        seeds = [self.random.random() for _ in jobs]
        threads = [
            threading.Thread(target=self._until_killed, args=(job, random.Random(seed)))
            for job, seed in zip(jobs, seeds, strict=True)
        ]
        for thread in threads:
            thread.start()
        killed_after = self.random.uniform(0.1, 0.9)
        time.sleep(killed_after)
        self.broker.kill()
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
        return killed_after

    def _until_killed(self, job: Callable[[random.Random], None], dice: random.Random) -> None:
        with suppress(*OVER):
            job(dice)

    def publish(
        self,
        source: Source,
        queue: str,
        dice: random.Random,
        *,
        exchange: str = "",
        urgent: bool = False,
    ) -> None:
        bulk = Bulk(self.broker.url)
        try:
            bulk.confirm()
            while True:
                numbers = range(source.sent, source.sent + dice.randint(1, 40))
                source.sent = numbers.stop
                if urgent:
                    for number in numbers:
                        bulk.send(queue, [number], priority=number % (HIGHEST + 1))
                else:
                    bulk.send(queue, numbers, exchange=exchange)
                bulk.poll_confirms(0.002)
                source.confirmed = source.first + bulk.confirmed
                while bulk.published - bulk.confirmed > 300:
                    bulk.poll_confirms(1)
                    source.confirmed = source.first + bulk.confirmed
        finally:
            bulk.close()

    def commit(self, source: Source, dice: random.Random) -> None:
        """Transactions of some messages each: all of them or none."""
        bulk = Bulk(self.broker.url)
        try:
            bulk.channel.call(spec.Tx.Select())
            while True:
                numbers = range(source.sent, source.sent + TRANSACTION)
                source.sent = numbers.stop
                bulk.send("committed", numbers)
                if dice.random() < 0.5:
                    time.sleep(0.001)
                bulk.channel.call(spec.Tx.Commit())
                source.confirmed = numbers.stop
        finally:
            bulk.close()

    def consume(self, sink: Sink, dice: random.Random, *, refuse: bool = False) -> None:
        bulk = Bulk(self.broker.url, prefetch=dice.choice([1, 20, 300]))
        try:
            bulk.consume(sink.name)
            while True:
                came = list(bulk.deliveries())
                sink.seen |= {each.number for each in came}
                if refuse and came and dice.random() < 0.05:
                    bulk.channel.nack(came[-1].tag, multiple=True, requeue=True)
                    continue
                keep = dice.randint(0, 3)  # the last ones are not acknowledged yet
                done = came[: len(came) - keep] if len(came) > keep else came
                if not done:
                    continue
                sink.acked |= {each.number for each in done}
                for each in done:
                    bulk.ack(each.tag, multiple=False)
                if dice.random() < 0.5:
                    bulk.sync()
                    sink.settled |= sink.acked
        finally:
            bulk.close()

    def consume_in_transactions(self, sink: Sink, dice: random.Random) -> None:
        connection = Connection.open(self.broker.url)
        try:
            channel: Channel = connection.channel()
            channel.call(spec.Tx.Select())
            channel.qos(50)
            channel.consume(sink.name)
            while True:
                batch = [channel.delivery() for _ in range(dice.randint(1, 20))]
                numbers = {int(message.body) for message in batch}
                sink.seen |= numbers
                for message in batch:
                    channel.ack(message.tag)
                sink.acked |= numbers
                channel.call(spec.Tx.Commit())
                sink.settled |= numbers
        finally:
            connection.wire.close()

    # -- comparing -------------------------------------------------------------------------------
    def empty(self) -> None:
        """Take everything out of every queue."""
        for sink in self.sinks.values():
            bulk = Bulk(self.broker.url)
            count = bulk.channel.count(sink.name)
            bulk.consume(sink.name)
            sink.found = bulk.take(count)
            bulk.sync()
            assert bulk.channel.count(sink.name) == 0
            bulk.close()

    def compare(self) -> str:
        """What is wrong with this round; counts it, too."""
        before = vars(self.tally).copy()
        for source in {id(sink.source): sink.source for sink in self.sinks.values()}.values():
            self.tally.confirmed += source.confirmed - source.first
        for sink in self.sinks.values():
            self._compare(sink)
        names = ("lost", "doubled", "out_of_order", "torn")
        now = vars(self.tally)
        return ", ".join(
            f"{now[name] - before[name]} {name}" for name in names if now[name] - before[name]
        )

    def _compare(self, sink: Sink) -> None:
        tally, source = self.tally, sink.source
        numbers = [each.number for each in sink.found]
        there = set(numbers)
        confirmed = range(source.first, source.confirmed)
        tally.found += len(numbers)
        tally.acknowledged += len(sink.settled)
        tally.lost += len(set(confirmed) - there - sink.acked)
        tally.doubled += len(numbers) - len(there)
        tally.doubled += len(there & sink.settled)
        tally.doubled += len([n for n in there if not source.first <= n < source.sent])
        tally.doubled += len(
            [each for each in sink.found if each.number in sink.seen and not each.redelivered]
        )
        in_order = sorted(numbers)
        if sink.name == "priority":
            in_order.sort(key=lambda number: -(number % (HIGHEST + 1)))
        tally.out_of_order += sum(a != b for a, b in zip(numbers, in_order, strict=True))
        if sink.name == "committed":
            tally.torn += len(numbers) % TRANSACTION


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        loop = CrashLoop(Path(folder) / "data", options.seed)
        try:
            tally = loop.run(options.rounds)
        finally:
            loop.broker.kill()
        print(tally)
    return 0 if tally.clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
