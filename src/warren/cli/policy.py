"""``warren policy``: settings of many queues and exchanges at once."""

from __future__ import annotations

import argparse
import difflib
import json
from typing import Any

from warren.cli import output
from warren.cli.options import JSON, TABLE, VHOST, add_command, add_group, open_api, vhost_of
from warren.cli.output import Column
from warren.cli.resources import Resource, print_rows, rows_of
from warren.cli.values import value_of
from warren.errors import ApiMissing, ConfigError

POLICIES = Resource(
    "policies",
    "policy",
    (
        Column("name", "name"),
        Column("pattern", "pattern"),
        Column("apply-to", "apply to"),
        Column("priority", "priority", "number"),
        Column("definition", "definition"),
    ),
)


def add_parser(commands: Any) -> None:
    below = add_group(commands, "policy", "settings of many queues and exchanges at once")
    give = add_command(
        below,
        "set",
        "add a policy or change it",
        _set,
        VHOST,
        description="Add a policy, or put another in place of the one of that name. It holds at "
        "once for all queues and exchanges whose name matches.",
    )
    give.add_argument("name", metavar="NAME", help="name of the policy")
    give.add_argument("pattern", metavar="PATTERN", help="regular expression for names")
    give.add_argument(
        "definition",
        nargs="+",
        metavar="KEY=VALUE",
        help="such as max-length=1000; or all of them as one JSON object",
    )
    give.add_argument(
        "--priority",
        type=int,
        default=0,
        metavar="N",
        help="of the policies that match a name, the one with the highest holds (default 0)",
    )
    give.add_argument(
        "--apply-to",
        choices=("all", "queues", "exchanges"),
        default="all",
        metavar="WHAT",
        help="queues, exchanges or all (the default)",
    )
    delete = add_command(below, "delete", "delete a policy", _delete, VHOST)
    delete.add_argument("name", metavar="NAME", help="name of the policy")
    add_command(below, "list", "list policies", _list, VHOST, TABLE, JSON)


def _set(options: argparse.Namespace) -> int:
    name, vhost = options.name, vhost_of(options)
    body = {
        "pattern": options.pattern,
        "definition": definition_of(options.definition),
        "priority": options.priority,
        "apply-to": options.apply_to,
    }
    with open_api(options) as api:
        rows_of(api, POLICIES, vhost)  # tells if there is no such vhost
        what = f"set policy '{name}' in vhost '{vhost}'"
        api.put("policies", vhost, name, body=body, what=what)
    output.say(f"set policy '{name}' in vhost '{vhost}'")
    return 0


def definition_of(words: list[str]) -> dict[str, Any]:
    """``max-length=5 overflow=drop-head``, or one JSON object."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return dict(json.loads(words[0]))
        except ValueError as error:
            raise ConfigError("KEY=VALUE", f"{words[0]!r} is not JSON: {error}") from None
    definition = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise ConfigError("KEY=VALUE", f"{word!r} is not like max-length=1000")
        definition[key] = value_of(value)
    return definition


def _delete(options: argparse.Namespace) -> int:
    name, vhost = options.name, vhost_of(options)
    what = f"delete policy '{name}' in vhost '{vhost}'"
    with open_api(options) as api:
        try:
            api.delete("policies", vhost, name, what=what)
        except ApiMissing:
            names = [row["name"] for row in rows_of(api, POLICIES, vhost)]
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean '{near[0]}'?" if near else "'warren policy list' shows what is"
            raise ApiMissing(what, 404, f"it is not there; {hint}") from None
    output.say(f"deleted policy '{name}' in vhost '{vhost}'")
    return 0


def _list(options: argparse.Namespace) -> int:
    vhost = vhost_of(options)
    with open_api(options) as api:
        rows = rows_of(api, POLICIES, vhost)
    print_rows(options, rows, list(POLICIES.columns), none=f"no policies in vhost '{vhost}'")
    return 0
