"""``warren group``: look at consumer groups, and ask things of them."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from warren.cli import group_meeting as meeting
from warren.cli import group_view, output
from warren.cli.group_meeting import GroupCommandFailed
from warren.cli.options import JSON, SERVER, TABLE, add_group
from warren.cli.resources import print_rows
from warren.errors import ConfigError
from warren.groups.coordination.base import Command, GroupState

#: How often to look whether what was asked for has happened.
_LOOK_S = 0.1
_PARTS = ("state", "members", "queues", "rebalances")


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
            f"WARREN_COORDINATOR, or {meeting.DEFAULT})",
        )
        parser.set_defaults(run=run)
        return parser


# -- looking -------------------------------------------------------------------------------------
def _list(options: argparse.Namespace) -> int:
    names = meeting.names_of(options)
    states = [meeting.run(options, meeting.read(options, name)) for name in names]
    rows = [group_view.summary(state) for state in states if state is not None]
    print_rows(options, rows, group_view.GROUPS, none=f"no groups meet at {meeting.shown(options)}")
    return 0


def _describe(options: argparse.Namespace) -> int:
    state = meeting.fresh(options, meeting.state_of(options))
    if options.json:
        output.say_json(group_view.as_json(state))
        return 0
    wanted = frozenset(part for part in _PARTS if getattr(options, part))
    group_view.describe(state, wanted or frozenset(_PARTS))
    return 0


def _watch(options: argparse.Namespace) -> int:
    if not 0.05 <= options.every_s <= 3600:
        raise ConfigError("--every-s", f"{options.every_s:g}: 0.05 to 3600 seconds are possible")
    shown = 0
    state = meeting.state_of(options)
    while True:
        state = meeting.fresh(options, state)
        if options.json:
            print(json.dumps(group_view.as_json(state)), flush=True)
        elif output.is_terminal():
            print("\x1b[H\x1b[J", end="")
            group_view.describe(state, frozenset(_PARTS))
        else:
            print(group_view.line(state), flush=True)
        shown += 1
        if options.count is not None and shown >= options.count:
            return 0
        time.sleep(options.every_s)
        # It was there, and may come back: all its members may be stopped for a moment.
        state = meeting.run(options, meeting.read(options, options.group)) or GroupState(
            options.group
        )


# -- asking --------------------------------------------------------------------------------------
def _drain(options: argparse.Namespace) -> int:
    member = options.member
    _known(meeting.state_of(options), "member", member)
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
    _known(meeting.state_of(options), "queue", queue)
    command = Command("pause", queue=queue)
    done = _ask(
        options, command, lambda state: _paused(state, queue) and _holder(state, queue) is None
    )
    return _tell(options, command, f"nobody works on {queue}; messages wait in it", done)


def _resume(options: argparse.Namespace) -> int:
    queue = options.queue
    _known(meeting.state_of(options), "queue", queue)
    command = Command("resume", queue=queue)
    done = _ask(options, command, lambda state: not _paused(state, queue))
    return _tell(options, command, f"{queue} is worked on again", done)


def _move(options: argparse.Namespace) -> int:
    queue, member = options.queue, options.member
    state = meeting.state_of(options)
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
        coordinator = meeting.open_at(options, options.group)
        try:
            await coordinator.command(command)
        finally:
            await coordinator.close()

    meeting.run(options, ask())
    if options.no_wait:
        return False
    deadline = time.monotonic() + options.timeout_s
    while True:
        state = meeting.run(options, meeting.read(options, options.group))
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
            f"group '{state.group}' has no {kind} '{name}'{meeting.near(name, known)}"
        )


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
