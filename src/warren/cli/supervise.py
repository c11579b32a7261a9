"""Keeps a number of worker processes running, and starts them again when code changes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from warren.handlers.run import FINISHING, LEFT, PARENT_PIPE, READY_PIPE, Say

#: How long a child may take to end, beyond the drain time that it told, before it is killed.
STOP_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
#: A child that lived this long was well: the next pause is the first one again.
WELL_S = 30.0
LOOK_EVERY_S = 0.5
#: argparse's and our own code for "you got something wrong": trying again won't help, unless the
#: same command has worked before. And ours for "the broker did not answer", Python's for a
#: traceback: no use as long as no process has worked.
USER_ERROR, FAILURE = 2, 1
INTERRUPTED = 130


class Supervisor:
    """One process a command, restarted when it dies, stopped with the parent.

    The children have their own process groups, so that a Ctrl-C reaches the parent alone and each
    child is asked once. A parent that is killed outright takes its end of a pipe with it: the
    children see that and stop by themselves.

    A child says through a pipe of its own that it works. What ends one that has worked, such as a
    broker that is away, may pass: it is started again, and the others are left alone.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        *,
        watch: bool = False,
        say: Say = lambda text: None,
    ) -> None:
        self._commands = commands
        self._watch, self._say = watch, say
        self._stop, self._leave = asyncio.Event(), asyncio.Event()
        self._worked: set[int] = set()
        self._drain_s = 0.0
        self._restart: list[asyncio.Event] = []
        self._code = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked, number)
        mine, theirs = os.pipe()
        try:
            keepers = [
                asyncio.create_task(self._keep(number, each, mine))
                for number, each in enumerate(self._commands)
            ]
            looker = asyncio.create_task(self._look()) if self._watch else None
            await asyncio.gather(*keepers)
            if looker is not None:
                looker.cancel()
        finally:
            os.close(mine)
            os.close(theirs)
        return INTERRUPTED if self._leave.is_set() else self._code

    def _asked(self, number: int) -> None:
        if number == signal.SIGINT:
            if self._stop.is_set():
                self._say(LEFT)
                self._leave.set()
            else:
                self._say(FINISHING)
        self._stop.set()

    async def _keep(self, number: int, command: Sequence[str], pipe: int) -> None:
        hear, speak = os.pipe()
        loop = asyncio.get_running_loop()
        loop.add_reader(hear, self._works, number, hear)
        try:
            await self._keep_running(number, command, pipe, speak)
        finally:
            loop.remove_reader(hear)
            os.close(hear)
            os.close(speak)

    def _works(self, number: int, pipe: int) -> None:
        self._worked.add(number)
        with contextlib.suppress(ValueError):
            self._drain_s = max(self._drain_s, float(os.read(pipe, 1024).split()[-1]))

    def _is_hopeless(self, number: int, code: int) -> bool:
        if self._watch:
            return False
        return (code == USER_ERROR and number not in self._worked) or (
            code == FAILURE and not self._worked
        )

    async def _keep_running(
        self, number: int, command: Sequence[str], pipe: int, ready: int
    ) -> None:
        pause_s = FIRST_PAUSE_S
        loop = asyncio.get_running_loop()
        restart = asyncio.Event()
        self._restart.append(restart)
        while not self._stop.is_set():
            began = loop.time()
            restart.clear()
            child = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, PARENT_PIPE: str(pipe), READY_PIPE: str(ready)},
                pass_fds=(pipe, ready),
                process_group=0,
            )
            code = await self._until_it_ends(child, restart)
            if self._stop.is_set():
                self._code = self._code or (max(0, code))
                return
            if restart.is_set():
                continue
            if self._is_hopeless(number, code):
                self._code = code
                self._stop.set()
                return
            if loop.time() - began > WELL_S:
                pause_s = FIRST_PAUSE_S
            print(
                f"warren work: process {child.pid} ended with {code}; another in {pause_s:g} s",
                file=sys.stderr,
                flush=True,
            )
            await self._pause(restart, pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _until_it_ends(
        self, child: asyncio.subprocess.Process, restart: asyncio.Event
    ) -> int:
        waits: list[asyncio.Task[Any]] = [
            asyncio.create_task(each) for each in (child.wait(), self._stop.wait(), restart.wait())
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.terminate()
                waits.append(asyncio.create_task(self._leave.wait()))
                await asyncio.wait(
                    (waits[0], waits[-1]),
                    timeout=self._drain_s + STOP_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not waits[0].done():
                    with contextlib.suppress(ProcessLookupError):
                        child.kill()
            return int(await waits[0])
        finally:
            for each in waits[1:]:
                each.cancel()

    async def _pause(self, restart: asyncio.Event, pause_s: float) -> None:
        waits = [asyncio.create_task(each.wait()) for each in (self._stop, restart)]
        await asyncio.wait(waits, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()

    async def _look(self) -> None:
        before = await asyncio.to_thread(seen, Path.cwd())
        while not self._stop.is_set():
            await asyncio.sleep(LOOK_EVERY_S)
            now = await asyncio.to_thread(seen, Path.cwd())
            changed = sorted(
                path for path in before.keys() | now.keys() if before.get(path) != now.get(path)
            )
            before = now
            if changed:
                _forget_compiled(changed)
                print(f"warren work: {changed[0]} changed, starting again", flush=True)
                for each in self._restart:
                    each.set()


def _forget_compiled(files: Sequence[str]) -> None:
    """Python's cache tells files apart by second and length: too coarse for a quick save."""
    for file in files:
        with contextlib.suppress(OSError, NotImplementedError):
            compiled = importlib.util.cache_from_source(os.path.abspath(file), optimization="")
            os.unlink(compiled)


def seen(folder: Path) -> dict[str, int]:
    """The Python files below a folder and when each was written."""
    found = {}
    for path in _files(folder):
        with contextlib.suppress(OSError):
            found[str(path.relative_to(folder))] = path.stat().st_mtime_ns
    return found


def _files(folder: Path) -> Iterator[Path]:
    for above, folders, names in os.walk(folder):
        folders[:] = [
            each
            for each in folders
            if not each.startswith((".", "__"))
            and each != "node_modules"
            and not (Path(above) / each / "pyvenv.cfg").exists()
        ]
        yield from (Path(above) / name for name in names if name.endswith(".py"))
