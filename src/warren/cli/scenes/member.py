"""A member of a group, as a worker process of the demo: ``worker.py``'s task ``share``."""

from __future__ import annotations

import asyncio
import time

from warren.cli.scenes.load import tell
from warren.client import Delivery
from warren.errors import WarrenError
from warren.groups.group import Group
from warren.groups.listener import Ordered

WORK_S = 0.001
#: The demo lets members come and go faster than people do.
MIN_INTERVAL_S = 0.3


class Telling(Ordered):
    """Handles one message of a queue after the other, and tells what it holds."""

    def __init__(self) -> None:
        super().__init__(self._work)

    async def assigned(self, queue: str) -> None:
        await super().assigned(queue)
        tell("holds", queue=queue)

    async def revoked(self, queue: str) -> None:
        await super().revoked(queue)
        tell("released", queue=queue)

    async def lost(self, queue: str) -> None:
        await super().lost(queue)
        tell("released", queue=queue)

    async def _work(self, delivery: Delivery) -> None:
        number, again = int(delivery.body), delivery.redelivered
        tell("got", queue=delivery.queue, number=number, again=again, at=time.monotonic())
        await asyncio.sleep(WORK_S)


def share(url: str, group: str, *queues: str) -> None:
    """Be a member until the process is killed or the broker goes."""
    try:
        asyncio.run(_share(url, group, queues))
    except WarrenError as error:
        raise OSError(str(error)) from None


async def _share(url: str, group: str, queues: tuple[str, ...]) -> None:
    async with Group(
        url, group, queues, listener=Telling(), min_interval_s=MIN_INTERVAL_S, prefetch=5
    ) as member:
        tell("joined")
        while member.snapshot().connected:  # noqa: ASYNC110 - nobody tells, and it is a demo
            await asyncio.sleep(0.1)
