"""A broker on a thread of its own, and the event loop it runs on."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from warren.server.broker import Broker

_USAGE = "write 'with warren.Broker.in_thread() as broker'"


class InThread:
    """``Broker.in_thread()``: the broker runs as long as the ``with`` block."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._started: concurrent.futures.Future[Callable[[], None]] = concurrent.futures.Future()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Broker:
        if self._thread is not None:
            raise TypeError(f"this broker was started before; for another, {_USAGE}")
        self._thread = threading.Thread(
            target=run, args=(self._main,), name="warren-broker", daemon=True
        )
        self._thread.start()
        self._started.result()
        return self._broker

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        self._started.result()()
        self._thread.join()

    async def _main(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def stop_it() -> None:
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(stop.set)

        try:
            async with self._broker:
                self._started.set_result(stop_it)
                await stop.wait()
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def __aenter__(self) -> NoReturn:
        raise TypeError(f"this is no 'async with': {_USAGE}, also inside a coroutine")

    async def __aexit__(self, *error: object) -> None:
        """Only there so that ``async with`` asks for ``__aenter__``."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the broker has not started, so it has no {name} yet: {_USAGE}")


def run(main: Callable[[], Any]) -> None:
    """Run a coroutine function on the fastest event loop there is."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
