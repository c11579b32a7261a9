"""Runs an app until it is told to stop: by a signal, or by the end of the process above it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvloop

from warren.errors import ConfigError

if TYPE_CHECKING:
    from warren.handlers.app import App

#: In the environment: the number of a pipe that ends when the parent does.
PARENT_PIPE = "WARREN_PARENT_PIPE"
#: And of one into which the app's drain time is written when it works.
READY_PIPE = "WARREN_READY_PIPE"

FINISHING = "finishing what is being handled (Ctrl-C again: leave at once)"
LEFT = "left at once; unfinished messages go back to their queues"

Say = Callable[[str], None]


def run(app: App, say: Say = lambda text: None) -> None:
    """Work until SIGTERM or Ctrl-C; what is being handled is finished first.

    A second Ctrl-C or SIGTERM leaves at once: what is not acknowledged is delivered again, to
    somebody. (Not a second SIGTERM to the child of a supervisor: whoever ends all processes of a
    service at once sends it one, and the supervisor sends the other.)
    """
    if _in_a_loop():
        remedy = "an event loop runs here already: use `async with app:` inside it"
        raise ConfigError("app.run()", remedy)
    uvloop.run(_work(app, say))


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _work(app: App, say: Say) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    alone = PARENT_PIPE not in os.environ
    terms = 0

    def asked(number: int) -> None:
        nonlocal terms
        terms += number == signal.SIGTERM
        if (stop.is_set() and number == signal.SIGINT) or (alone and terms == 2):
            say(LEFT)
            os._exit(128 + number)
        if number == signal.SIGINT:
            say(FINISHING)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked, number)
    pipe = os.environ.get(PARENT_PIPE)
    if pipe is not None:
        # Its other end is the supervisor's: readable means that the supervisor has gone.
        loop.add_reader(int(pipe), stop.set)
    starting = asyncio.create_task(app.start(), name="start the app")
    stopping = asyncio.create_task(stop.wait(), name="wait for a signal")
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            _tell_supervisor(app.member.drain_s)
            say(f"{app.describe()} (Ctrl-C stops it)")
            await stopping
    finally:
        starting.cancel()
        stopping.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await app.stop()
    say("stopped")


def _tell_supervisor(drain_s: float) -> None:
    if (pipe := os.environ.get(READY_PIPE)) is not None:
        os.write(int(pipe), f"{drain_s}\n".encode())
