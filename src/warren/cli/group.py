"""``warren group``: look at consumer groups, and ask things of them."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from warren.cli import group_view, output
from warren.cli.options import JSON, SERVER, TABLE, add_group, open_api
from warren.cli.resources import print_rows
from warren.client.address import parse_urls
from warren.client.management import Management
from warren.errors import ConfigError, ConnectError, GroupError, ManagementError, NoSuchGroup
from warren.groups.coordination.base import Command, Coordinator, GroupState, coordinator_for

DEFAULT = "amqp://localhost"
#: How often to look whether what was asked for has happened.
_LOOK_S = 0.1
_PARTS = ("state", "members", "queues", "rebalances")
T = TypeVar("T")


class GroupCommandFailed(GroupError):
    """The command was right, and it failed."""

    exit_code: ClassVar[int] = 1


def add_parser(commands: Any) -> None:
    below = add_group(commands, "group", "look at consumer groups and steer them")
    add = _Adder(below)
    add("list", "list groups", _list, TABLE, JSON)
    parser = add("describe", "show a group: members, queues, backlog", _describe, JSON, group=True)
    for part in _PARTS:
        parser.add_argument(f"--{part}", action="store_true", help=f"only the {part}")
    parser = add("watch", "show a group again and again", _watch, JSON, group=True)
    parser.add_argument(
        "--every-s", type=float, default=1.0, metavar="S", help="how often (default 1)"
    )
    parser.add_argument("--count", type=int, metavar="N", help="end after so many times")
    parser = add(
        "drain", "empty a member before it is stopped", _drain, JSON, group=True, member=True
    )
    parser.add_argument("--undo", action="store_true", help="give it queues again")
    add("pause", "have nobody work on a queue", _pause, JSON, group=True, queue=True)
    add("resume", "have a paused queue worked on again", _resume, JSON, group=True, queue=True)
    add("move", "give a queue to a member", _move, JSON, group=True, queue=True, member=True)


class _Adder:
    """Adds commands that have to know where a group meets."""

    def __init__(self, commands: Any) -> None:
        self._commands = commands

    def __call__(
        self,
        name: str,
        text: str,
        run: Callable[[argparse.Namespace], int],
        *shared: argparse.ArgumentParser,
        group: bool = False,
        queue: bool = False,
        member: bool = False,
    ) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = self._commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            parents=[SERVER, *shared],
        )
        if group:
            parser.add_argument("group", metavar="GROUP", help="name of the group")
        if queue:
            parser.add_argument("queue", metavar="QUEUE", help="name of the queue")
        if member:
            parser.add_argument("member", metavar="MEMBER", help="name of the member")
        if queue or member:
            parser.add_argument(
                "--no-wait", action="store_true", help="don't wait until it has happened"
            )
        parser.add_argument(
            "--coordinator",
            metavar="URL",
            help="where the group meets: its broker, amqp://host, or etcd://host,host (default: "
            f"WARREN_COORDINATOR, or {DEFAULT})",
        )
        parser.set_defaults(run=run)
        return parser


# -- looking -------------------------------------------------------------------------------------
def _list(options: argparse.Namespace) -> int:
    names = _names(options)
    states = [_run(options, _read(options, name)) for name in names]
    rows = [group_view.summary(state) for state in states if state is not None]
    print_rows(options, rows, group_view.GROUPS, none=f"no groups meet at {_shown(options)}")
    return 0


def _describe(options: argparse.Namespace) -> int:
    state = _state(options)
    oldest = _oldest(options)
    if options.json:
        output.say_json(group_view.as_json(state, oldest))
        return 0
    wanted = frozenset(part for part in _PARTS if getattr(options, part))
    group_view.describe(state, oldest, wanted or frozenset(_PARTS))
    return 0


def _watch(options: argparse.Namespace) -> int:
    if not 0.05 <= options.every_s <= 3600:
        raise ConfigError("--every-s", f"{options.every_s:g}: 0.05 to 3600 seconds are possible")
    shown = 0
    while True:
        state, oldest = _state(options), _oldest(options)
        if options.json:
            print(json.dumps(group_view.as_json(state, oldest)), flush=True)
        elif output.is_terminal():
            print("\x1b[H\x1b[J", end="")
            group_view.describe(state, oldest, frozenset(_PARTS))
        else:
            print(group_view.line(state), flush=True)
        shown += 1
        if options.count is not None and shown >= options.count:
            return 0
        time.sleep(options.every_s)


# -- asking --------------------------------------------------------------------------------------
def _drain(options: argparse.Namespace) -> int:
    member = options.member
    _known(_state(options), "member", member)
    if options.undo:
        command = Command("undrain", member=member)
        done = _ask(options, command, lambda state: not _drained(state, member))
        return _tell(options, command, f"{member} gets queues again", done)
    command = Command("drain", member=member)
    done = _ask(
        options, command, lambda state: _drained(state, member) and not _held(state, member)
    )
    return _tell(options, command, f"{member} is drained and may be stopped", done)


def _pause(options: argparse.Namespace) -> int:
    queue = options.queue
    _known(_state(options), "queue", queue)
    command = Command("pause", queue=queue)
    done = _ask(
        options, command, lambda state: _paused(state, queue) and _holder(state, queue) is None
    )
    return _tell(options, command, f"nobody works on {queue}; messages wait in it", done)


def _resume(options: argparse.Namespace) -> int:
    queue = options.queue
    _known(_state(options), "queue", queue)
    command = Command("resume", queue=queue)
    done = _ask(options, command, lambda state: not _paused(state, queue))
    return _tell(options, command, f"{queue} is worked on again", done)


def _move(options: argparse.Namespace) -> int:
    queue, member = options.queue, options.member
    state = _state(options)
    _known(state, "queue", queue)
    _known(state, "member", member)
    _movable(state, queue, member)
    command = Command("move", queue=queue, member=member)
    done = _ask(options, command, lambda state: _holder(state, queue) == member)
    return _tell(options, command, f"{member} works on {queue}", done)


def _movable(state: GroupState, queue: str, member: str) -> None:
    """Refuse at once what would never happen."""
    group = state.group
    (to,) = (each for each in state.members if each.member == member)
    if _paused(state, queue):
        why = f"'{queue}' is paused: warren group resume {group} {queue} first"
    elif to.drained:
        why = f"'{member}' is drained: warren group drain {group} {member} --undo first"
    elif not to.present:
        why = f"'{member}' is away"
    elif to.weight <= 0:
        why = f"'{member}' has a weight of 0 and takes no queues"
    else:
        return
    raise GroupCommandFailed(f"can't move '{queue}' to '{member}': {why}")


def _ask(
    options: argparse.Namespace, command: Command, is_done: Callable[[GroupState], bool]
) -> bool:
    """Command, and wait until it shows; False if nobody waits for that."""

    async def ask() -> None:
        coordinator = _open(options, options.group)
        try:
            await coordinator.command(command)
        finally:
            await coordinator.close()

    _run(options, ask())
    if options.no_wait:
        return False
    deadline = time.monotonic() + options.timeout_s
    while True:
        state = _run(options, _read(options, options.group))
        if state is not None and is_done(state):
            return True
        if time.monotonic() > deadline:
            raise GroupCommandFailed(
                f"asked, but not done within {options.timeout_s:g} s; it may still happen: "
                f"warren group describe {options.group} shows, --timeout-s waits longer"
            )
        time.sleep(_LOOK_S)


def _tell(options: argparse.Namespace, command: Command, text: str, done: bool) -> int:
    if options.json:
        named = {"member": command.member, "queue": command.queue}
        of = {kind: name for kind, name in named.items() if name}
        output.say_json({"group": options.group, "command": command.kind, **of, "done": done})
        return 0
    output.say(output.clean(text if done else "asked for"))
    return 0


def _known(state: GroupState, kind: str, name: str) -> None:
    known = (
        [each.member for each in state.members]
        if kind == "member"
        else [each.queue for each in state.queues]
    )
    if name not in known:
        raise GroupCommandFailed(
            f"group '{state.group}' has no {kind} '{name}'{_near(name, known)}"
        )


def _near(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if near := difflib.get_close_matches(name, names, 1):
        return f"; did you mean '{near[0]}'?"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"; there are: {', '.join(names[:10])}{more}" if names else "; there are none"


def _drained(state: GroupState, member: str) -> bool:
    return any(each.member == member and each.drained for each in state.members)


def _held(state: GroupState, member: str) -> bool:
    return any(each.member == member and each.present and each.queues for each in state.members)


def _paused(state: GroupState, queue: str) -> bool:
    return any(each.queue == queue and each.paused for each in state.queues)


def _holder(state: GroupState, queue: str) -> str | None:
    for each in state.members:
        if each.present and queue in each.queues:
            return each.member
    return None


# -- where the group meets -----------------------------------------------------------------------
def _url(options: argparse.Namespace) -> str:
    return options.coordinator or os.environ.get("WARREN_COORDINATOR") or DEFAULT


def _shown(options: argparse.Namespace) -> str:
    """Where the group meets, without a password."""
    scheme, _, rest = _url(options).partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def _open(options: argparse.Namespace, group: str) -> Coordinator:
    url = _url(options)
    try:
        return coordinator_for(url, group)
    except ConfigError as error:
        raise ConfigError("--coordinator", error.problem) from None


async def _read(options: argparse.Namespace, group: str) -> GroupState | None:
    coordinator = _open(options, group)
    try:
        return await coordinator.read()
    finally:
        await coordinator.close()


def _state(options: argparse.Namespace) -> GroupState:
    state = _run(options, _read(options, options.group))
    if state is None:
        raise _nobody(options)
    return state


def _nobody(options: argparse.Namespace) -> GroupCommandFailed:
    names: list[str] = []
    with suppress(ManagementError, GroupError):
        names = [name for name in _names(options) if name != options.group]
    hint = _near(options.group, names) if names else "; start a member first"
    return GroupCommandFailed(f"nobody is in group '{options.group}' at {_shown(options)}{hint}")


def _run(options: argparse.Namespace, work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(options.timeout_s):
            return await work

    try:
        return asyncio.run(bounded())
    except NoSuchGroup:
        raise _nobody(options) from None
    except ConnectError as error:
        raise GroupCommandFailed(
            f"{error}: --coordinator or WARREN_COORDINATOR says where the group meets"
        ) from None
    except TimeoutError:
        raise GroupCommandFailed(
            f"{_shown(options)} has not answered within {options.timeout_s:g} s: "
            "--timeout-s gives it longer"
        ) from None


def _names(options: argparse.Namespace) -> list[str]:
    """The groups that there are."""
    url = _url(options)
    if url.startswith("etcd"):
        from warren.groups.coordination.etcd import list_groups

        return sorted(_run(options, list_groups(url)))
    if not url.startswith("amqp"):
        _open(options, "")  # tells what is wrong with it
    with _management(options) as api:
        vhost = parse_urls(url)[0].vhost
        rows = api.get("queues", vhost, query={"columns": "name"}, what="list groups")
    head, tail = "warren.", ".dispatcher"
    names = (str(row["name"]) for row in rows)
    return sorted(
        name.removeprefix(head).removesuffix(tail)
        for name in names
        if name.startswith(head) and name.endswith(tail)
    )


def _management(options: argparse.Namespace) -> Management:
    """The management API: as told, or that of the broker at which the group meets."""
    if not (options.url or os.environ.get("WARREN_URL")):
        address = parse_urls(_url(options))[0]
        login = urlsplit(_url(options)).netloc.rpartition("@")[0] or "guest:guest"
        host = f"[{address.host}]" if ":" in address.host else address.host
        scheme = "https" if address.tls is not None else "http"
        options.url = f"{scheme}://{login}@{host}:{address.port + 10_000}"
    return open_api(options)


def _oldest(options: argparse.Namespace) -> dict[str, float]:
    """When the first message of each queue was published, where messages say it.

    With etcd nobody knows the broker, unless ``--url`` names it.
    """
    is_told = bool(options.url or os.environ.get("WARREN_URL"))
    url = _url(options)
    if not is_told and not url.startswith("amqp"):
        return {}
    vhost = parse_urls(url)[0].vhost if url.startswith("amqp") else "/"
    try:
        with _management(options) as api:
            columns = "name,head_message_timestamp"
            rows = api.get("queues", vhost, query={"columns": columns}, what="ask for lags")
    except ManagementError as error:
        if is_told:
            print(f"warren: no lags in seconds: {error}", file=sys.stderr)
        return {}
    return {
        str(row["name"]): float(row["head_message_timestamp"])
        for row in rows
        if isinstance(row.get("head_message_timestamp"), int | float)
    }
