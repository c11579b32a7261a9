"""``warren topology``: exchanges, queues, bindings and policies from one file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from warren.cli import output
from warren.cli.definitions import write_file
from warren.cli.messages import read_file
from warren.cli.options import JSON, VHOST, add_command, add_group, confirmed, open_api, vhost_of
from warren.cli.output import clean
from warren.client.management import Management
from warren.errors import (
    ApiMissing,
    ConfigError,
    ManagementError,
    TopologyHalfDone,
    TopologyRefused,
)
from warren.topology.diff import CHANGE, CREATE, DELETE, REFUSE, SIGNS, Change, Plan, compare
from warren.topology.dump import dump
from warren.topology.load import load
from warren.topology.model import Topology
from warren.topology.remote import carry_out, read

_STYLES = {CREATE: "green", CHANGE: "yellow", DELETE: "red", REFUSE: "bold red"}


def add_parser(commands: Any) -> None:
    below = add_group(commands, "topology", "exchanges, queues, bindings, policies from one file")
    diff = add_command(
        below,
        "diff",
        "show what apply would do",
        _diff,
        VHOST,
        JSON,
        description="Show what apply would do: + make, ~ change, - delete, ! refused by the "
        "broker. Nothing is touched.",
    )
    _add_file(diff)
    diff.add_argument(
        "--exit-code", action="store_true", help="exit with 1 if there is something to do"
    )
    apply = add_command(
        below,
        "apply",
        "make what the file says",
        _apply,
        VHOST,
        JSON,
        description="Make what the file says and is not there yet; a second time there is nothing "
        "to do. If the broker would refuse any of it, nothing is touched.",
    )
    _add_file(apply)
    apply.add_argument("--yes", action="store_true", help="do not ask before deleting")
    export = add_command(
        below,
        "export",
        "write what is there to a file",
        _export,
        VHOST,
        description="Write what is there to a file that apply takes. What belongs to connections "
        "(exclusive queues) or to the broker (names with amq.) is left out.",
    )
    export.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="standard output if there is none"
    )
    export.add_argument("--force", action="store_true", help="write over a file that is there")


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the topology, in YAML; - for standard input")
    parser.add_argument(
        "--prune", action="store_true", help="delete what is there and not in the file"
    )


# -- diff and apply ------------------------------------------------------------------------------
def _plan(api: Management, options: argparse.Namespace) -> Plan:
    wanted = load(read_file(options.file, "FILE"), options.file)
    vhost = options.vhost if options.vhost is not None else wanted.vhost or "/"
    actual = read(api, vhost)
    if not actual.vhost_exists and wanted.vhost != vhost:
        hint = f"'warren vhost add {vhost}' makes it, or 'vhost: {vhost}' in the file"
        raise ApiMissing(f"find vhost '{vhost}'", 404, f"it is not there; {hint}")
    return compare(wanted, actual, vhost=vhost, prune=options.prune)


def _diff(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        plan = _plan(api, options)
        address = api.address
    if options.json:
        output.say_json(as_json(plan))
    else:
        _say_plan(plan, address)
        output.say(_summary(plan), "bold")
    if plan.refused:
        raise TopologyRefused(options.file, len(plan.refused))
    return 1 if options.exit_code and plan.changes else 0


def _apply(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        plan = _plan(api, options)
        if not options.json:
            _say_plan(plan, api.address)
        if plan.refused:
            if options.json:
                output.say_json(as_json(plan))
            raise TopologyRefused(options.file, len(plan.refused))
        losses = plan.count(DELETE)
        question = f"delete {_things(losses)} from vhost '{plan.vhost}'?"
        if losses and not confirmed(options, question):
            return 1
        _carry_out(api, plan)
    if options.json:
        output.say_json(as_json(plan))
    else:
        output.say(_summary(plan, done=True), "bold")
    return 0


def _carry_out(api: Management, plan: Plan) -> None:
    for done, change in enumerate(plan.changes):
        try:
            carry_out(api, plan.vhost, change)
        except ManagementError as error:
            left = f"{done} of {len(plan.changes)} changes were made before"
            raise TopologyHalfDone(str(error), left) from error


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan for programs."""

    def entry(change: Change) -> dict[str, Any]:
        return {
            "action": change.action,
            "kind": change.kind,
            "name": change.title.partition(" ")[2],
            "details": list(change.details),
            "doubts": list(change.doubts),
            "line": change.line or None,
        }

    return {
        "vhost": plan.vhost,
        "changes": [entry(change) for change in plan.changes],
        "refused": [entry(change) for change in plan.refused],
        "not_in_file": [entry(change) for change in plan.others],
    }


def _say_plan(plan: Plan, address: str) -> None:
    if plan.changes or plan.refused:
        output.say(f"vhost '{plan.vhost}' at {address}", "bold")
    for change in (*plan.changes, *plan.refused):
        _say_change(change)


def _say_change(change: Change) -> None:
    style = _STYLES[change.action]
    where = f" (line {change.line})" if change.action == REFUSE and change.line else ""
    line = f"  {SIGNS[change.action]} {clean(change.title)}{where}"
    if change.action in (CREATE, DELETE):
        details = clean(", ".join(change.details))
        output.say(f"{line} ({details})" if details else line, style)
        for doubt in change.doubts:
            output.say(f"      line {change.line}: {clean(doubt)}", "yellow")
        return
    output.say(line, style)
    for detail in change.details:
        output.say(f"      {clean(detail)}", style)


def _summary(plan: Plan, *, done: bool = False) -> str:
    words = (
        (plan.count(CREATE), "made" if done else "to make"),
        (plan.count(CHANGE), "changed" if done else "to change"),
        (plan.count(DELETE), "deleted" if done else "to delete"),
        (len(plan.refused), "refused"),
    )
    told = ", ".join(f"{count} {word}" for count, word in words if count)
    if not told:
        told = f"nothing to do: vhost '{plan.vhost}' is as the file says"
    if plan.others:
        there = "is" if len(plan.others) == 1 else "are"
        told += f"; {_things(len(plan.others))} {there} not in the file (--prune deletes)"
    return told


def _things(count: int) -> str:
    return "1 thing" if count == 1 else f"{count} things"


# -- export --------------------------------------------------------------------------------------
def _export(options: argparse.Namespace) -> int:
    vhost = vhost_of(options)
    if options.file != "-" and Path(options.file).exists() and not options.force:
        raise ConfigError("FILE", f"{options.file} is there already; --force writes over it")
    with open_api(options) as api:
        actual = read(api, vhost)
        if not actual.vhost_exists:
            hint = "'warren vhost list' shows what is"
            raise ApiMissing(f"find vhost '{vhost}'", 404, f"it is not there; {hint}")
        source = f"# vhost '{clean(vhost)}' at {api.address}; 'warren topology apply' makes it\n"
    topology: Topology = replace(actual.topology, vhost=vhost)
    text = source + dump(topology)
    if options.file == "-":
        print(text, end="")
    else:
        write_file(options.file, text)
        output.say(f"wrote {_things(sum(1 for _ in topology.items()))} to {options.file}")
    return 0
