"""Who is cancelled while it waits is cancelled, whatever comes at the same moment: somebody who
tries again until it is cancelled would go on for ever."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from warren.client import dialing
from warren.client.address import parse_urls
from warren.client.backoff import Backoff
from warren.client.comeback import Comeback
from warren.errors import HostUnreachable


class Refused:
    """A dialer that is refused at once."""

    def __init__(self, *_: object) -> None:
        """Whatever the address."""

    def dial(self) -> None:
        raise HostUnreachable("nowhere", "refused")

    def abort(self) -> None:
        """Nothing is open."""


async def test_a_dial_that_is_answered_as_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "Dialer", Refused)
    before = set(threading.enumerate())
    task = asyncio.create_task(dialing.dial_first(parse_urls("amqp://localhost:1"), {}))
    await asyncio.sleep(0)
    for thread in set(threading.enumerate()) - before:
        thread.join()  # its answer waits for the loop now, which stands still
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_close_that_is_cancelled_while_it_ends_the_coming_back() -> None:
    connection: Any = SimpleNamespace(loop=asyncio.get_running_loop())
    coming_back = Comeback(connection, Backoff())
    coming_back._run(asyncio.sleep(60), "reconnect")
    await asyncio.sleep(0)
    task = asyncio.create_task(coming_back.stop())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
