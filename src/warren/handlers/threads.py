"""Runs plain functions in threads, and keeps a queue from moving on while one of them works.

A thread can't be stopped. So a task that is cancelled while its function runs goes on waiting for
it, as long as the message is this member's: only then may the queue be given away. When the broker
has taken the message back already (its connection is gone), waiting would help nobody; but the
queue is not begun again here before that thread has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from warren.handlers.failures import unusual

if TYPE_CHECKING:
    from warren.handlers.message import Message

log = logging.getLogger(__name__)

#: How often a thread that outlasts its time is asked whether its message is still ours.
LOOK_S = 0.2

_Running = asyncio.Future[tuple[Any, BaseException | None]]


class NotBegun(Exception):
    """The message was lost while it waited for a free thread."""


class Threads:
    """The threads of one app."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="warren handler")
        self._busy: dict[str, set[_Running]] = {}

    async def run(self, function: Callable[[Message], Any], message: Message) -> Any:
        """Call a function in a thread; returns and raises what it does.

        Cancelling does not end it before the function does, unless the message is lost.

        Raises:
            NotBegun: the message was lost before there was a free thread.
        """
        work = self._pool.submit(_called, function, message)
        running: _Running = asyncio.wrap_future(work)
        self._note(message.queue, running)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            if work.cancel():  # it waited for a free thread
                raise
            await _outlast(running, message)
            if not running.done():
                raise
        result, error = running.result()
        if error is not None:
            raise error
        return result

    async def idle(self, queue: str) -> None:
        """Wait until no thread works on a message of this queue."""
        while busy := self._busy.get(queue):
            await asyncio.wait(busy)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _note(self, queue: str, running: _Running) -> None:
        busy = self._busy.setdefault(queue, set())
        busy.add(running)

        def ended(_: _Running) -> None:
            busy.discard(running)
            if not busy and self._busy.get(queue) is busy:
                del self._busy[queue]

        running.add_done_callback(ended)


async def _outlast(running: _Running, message: Message) -> None:
    if not running.done() and not message.delivery.stale:
        log.warning(
            "queue %s is not given away yet: the time to finish is over, but a thread still works "
            "on %r (message-id %s), and a plain function can't be stopped",
            message.queue,
            message,
            message.message_id,
        )
    while not running.done() and not message.delivery.stale:
        await asyncio.wait({running}, timeout=LOOK_S)


def _called(
    function: Callable[[Message], Any], message: Message
) -> tuple[Any, BaseException | None]:
    """What a plain function returned, or raised: not every exception can pass through a future."""
    if message.delivery.stale:
        return None, NotBegun()
    try:
        return function(message), None
    except (KeyboardInterrupt, StopIteration) as error:
        return None, unusual(error)
    except BaseException as error:  # noqa: BLE001 - judged in the event loop
        return None, error
