"""Publishes numbered messages to queues, in order: ``python -m tests.e2e.groups.publisher``.

Its options are the fields of ``PublisherOptions`` as JSON, its only argument. On SIGTERM it waits
for the confirms that are due, and ends. What was sent and had no answer is never sent again: a
group may see it, or not.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import signal
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import warren.client
from warren.amqp.properties import Properties
from warren.client import Channel, Confirm, Connection
from warren.errors import Nacked
from warren.testing.group_log import GroupLog

PERSISTENT = Properties(delivery_mode=2)
TICK_S = 0.02
LAST_CONFIRMS_S = 30.0


@dataclass(frozen=True)
class PublisherOptions:
    url: str
    queues: list[str]
    log: str
    rate: int = 500
    seed: int = 1
    first: int = 0
    """The number of the first message of each queue."""


class Publisher:
    def __init__(self, options: PublisherOptions, log: GroupLog) -> None:
        self._options, self._log = options, log
        self._random = random.Random(options.seed)
        self._next: dict[str, int] = defaultdict(lambda: options.first)
        self._open: dict[Confirm, tuple[str, int]] = {}
        self._refused = False

    async def run(self, stop: asyncio.Event) -> None:
        async with warren.client.connect(self._options.url, name="publisher") as connection:
            channel = await connection.channel()
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGUSR2, self._tell, connection)
            while not stop.is_set():
                if not self._refused:
                    self._publish(channel, max(1, round(self._options.rate * TICK_S)))
                await asyncio.sleep(TICK_S)
                self._settle()
                if self._refused and not channel.unconfirmed:
                    # A channel that began while a quorum queue had no leader is refused for ever.
                    await channel.close()
                    channel, self._refused = await connection.channel(), False
            async with asyncio.timeout(LAST_CONFIRMS_S):
                while self._open:
                    await asyncio.sleep(TICK_S)
                    self._settle()

    def _tell(self, connection: Connection) -> None:
        """What it waits for, to whoever looks into a scenario that failed."""
        logging.info(
            "%s, blocked: %s, %d unconfirmed", connection, connection.blocked, len(self._open)
        )

    def _publish(self, channel: Channel, count: int) -> None:
        if len(self._open) > 2 * self._options.rate:  # the broker is away: don't pile up
            return
        batch: dict[str, list[int]] = defaultdict(list)
        for queue in self._random.choices(self._options.queues, k=count):
            batch[queue].append(self._next[queue])
            self._next[queue] += 1
        for queue, numbers in batch.items():
            self._log.sent(queue, numbers)
            for number in numbers:
                confirm = channel.publish(
                    str(number).encode(), routing_key=queue, properties=PERSISTENT
                )
                self._open[confirm] = (queue, number)

    def _settle(self) -> None:
        done: dict[str, list[int]] = defaultdict(list)
        for confirm, (queue, number) in list(self._open.items()):
            if confirm.done:
                del self._open[confirm]
                if confirm.error is None:
                    done[queue].append(number)
                self._refused = self._refused or isinstance(confirm.error, Nacked)
                confirm.seen = True
        for queue, numbers in done.items():
            self._log.confirmed(queue, numbers)


async def run(options: PublisherOptions) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", flush=True)
    with GroupLog(Path(options.log)) as log:
        await Publisher(options, log).run(stop)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s %(message)s")
    asyncio.run(run(PublisherOptions(**json.loads(sys.argv[1]))))
