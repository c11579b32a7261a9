"""What runs in a worker process: ``python -m warren.cli.scenes.worker TASK URL …``.

A worker tells what it does on stdout, a JSON object a line. It goes when the broker goes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from warren.cli.scenes import load
from warren.cli.scenes.link import Delivery, Link
from warren.cli.scenes.load import tell
from warren.errors import AccessRefused, WarrenError

PREFETCH = 10
RETRY_S = 0.05


def share(*arguments: str) -> None:
    """Be a member of a group."""
    from warren.cli.scenes import member  # asyncio and the groups: the others do without

    member.share(*arguments)


def work(url: str, queue: str, how: str, work_ms: str, stop_at: str) -> None:
    """Consume in order, acknowledging each message when its work is done.

    ``how`` is "exclusive" or "shared". The message numbered ``stop_at`` is taken in hand and never
    finished: that is the moment to kill this process.
    """
    with Link(url) as link:
        _subscribe(link, queue, exclusive=how == "exclusive")
        while True:
            delivery = link.next(3600)
            if delivery is not None:
                _handle(link, delivery, float(work_ms) / 1000, int(stop_at))


def _subscribe(link: Link, queue: str, *, exclusive: bool) -> None:
    while True:
        try:
            link.consume(queue, prefetch=PREFETCH, exclusive=exclusive)
        except AccessRefused as refusal:
            tell("refused", why=f"{refusal.code} {refusal.reply_text}")
            time.sleep(RETRY_S)
            link.open_channel()
        else:
            tell("subscribed")
            return


def _handle(link: Link, delivery: Delivery, work_s: float, stop_at: int) -> None:
    number = int(delivery.body)
    tell("got", number=number, redelivered=delivery.redelivered, at=time.monotonic())
    if number == stop_at:
        while True:
            link.next(3600)  # ends with the connection
    time.sleep(work_s)
    link.ack(delivery)
    tell("done", number=number)


_TASKS: dict[str, Callable[..., None]] = {
    "work": work,
    "share": share,
    "publish": load.publish,
    "consume": load.consume,
    "ping": load.ping,
}


def main(task: str, *arguments: str) -> int:
    try:
        _TASKS[task](*arguments)
    except (WarrenError, OSError) as error:
        tell("failed", why=str(error))
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
