"""A member of a group that writes down what it does: ``python -m tests.e2e.groups.worker``.

Its options are the fields of ``WorkerOptions`` as JSON, its only argument. It says ``ready`` when
it is in the group, and leaves on SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warren.client import Delivery
from warren.errors import ConnectError
from warren.groups.group import Group
from warren.handlers.app import App
from warren.handlers.message import Message
from warren.testing.group_log import GroupLog

Handle = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True)
class WorkerOptions:
    label: str
    url: str
    group: str
    queues: list[str]
    log: str
    coordinator: str = "amqp"
    management: str | None = None
    member_name: str | None = None
    work_s: float = 0.001
    heartbeat_s: float = 2.0
    prefetch: int = 20
    min_interval_s: float = 0.5
    #: Handlers of an ``App`` instead of a listener of a ``Group``.
    app: bool = False


async def run(options: WorkerOptions) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with GroupLog(Path(options.log), options.label) as log:

        async def handle(one: Delivery | Message) -> None:
            with log.working(one.queue, int(one.body), redelivered=one.redelivered):
                await asyncio.sleep(options.work_s)

        member = app(options, handle) if options.app else group(options, handle)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, tell, member)
        while not stop.is_set():
            try:
                await member.__aenter__()
            except ConnectError:  # the broker is being restarted
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), 0.2)
            else:
                print("ready", flush=True)
                await stop.wait()
        await member.__aexit__(None, None, None)


def group(options: WorkerOptions, handle: Handle) -> Group:
    settings = common(options)
    prefetch = options.prefetch
    return Group(
        options.url, options.group, options.queues, listener=handle, prefetch=prefetch, **settings
    )


def app(options: WorkerOptions, handle: Handle) -> App:
    made = App(options.url, group=options.group, **common(options))
    made.handler(*options.queues, prefetch=options.prefetch)(handle)
    return made


def common(options: WorkerOptions) -> dict[str, Any]:
    return {
        "coordinator": options.coordinator,
        "management": options.management,
        "member_name": options.member_name,
        "heartbeat_s": options.heartbeat_s,
        "min_interval_s": options.min_interval_s,
        "discover_s": 1.0,
        "drain_s": 10.0,
    }


def tell(member: Group | App) -> None:
    """For a scenario that failed: what this member believes of each of its queues."""
    group = member if isinstance(member, Group) else member.member
    session, lanes = group._session, getattr(group.listener, "_lanes", {})
    holdings = {} if session is None else session._claims._holdings
    connection = "none" if session is None else session._connection.state
    print(f"member {group.member_name}, connection {connection}", file=sys.stderr)
    for queue, claim in sorted(group._seat.member._queues.items()):
        holding, lane = holdings.get(queue), lanes.get(queue)
        told = [f"{claim.state.name} {claim.reason!r} due {claim.due}"]
        if holding is not None and holding._channel is not None:
            told.append(f"ended {holding._ended}, channel closed: {holding._channel.closed}")
        if lane is not None:
            told.append(f"lane: {vars(lane)}")
        print(f"  {queue}: {'; '.join(told)}", file=sys.stderr, flush=True)


def main() -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s %(message)s")
    asyncio.run(run(WorkerOptions(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
