"""``warren user limit``, ``warren vhost limit``: how much a user or a virtual host may have."""

from __future__ import annotations

import argparse
from typing import Any

from warren.cli import output
from warren.cli.options import JSON, TABLE, add_command, open_api
from warren.cli.output import Column
from warren.cli.resources import print_rows
from warren.client.management import Management
from warren.errors import ConfigError

LIMITS = {
    "user": ("max-connections", "max-channels"),
    "vhost": ("max-connections", "max-queues"),
}


def add_parsers(commands: Any, one: str) -> None:
    """``limit`` and ``limits`` of users, or of virtual hosts."""
    thing = "user" if one == "user" else "virtual host"
    known = " or ".join(LIMITS[one])
    limit = add_command(
        commands,
        "limit",
        f"set a limit of a {thing}, or take it away",
        _set,
        description=f"Set a limit of a {thing}: {known}. 'none' takes it away, 0 allows nothing.",
    )
    limit.add_argument("name", metavar="NAME", help=f"name of the {thing}")
    limit.add_argument("limit", metavar="LIMIT", choices=LIMITS[one], help=known)
    limit.add_argument("value", metavar="VALUE", help="a number, or none")
    limit.set_defaults(one=one)
    show = add_command(commands, "limits", f"list the limits of {thing}s", _list, TABLE, JSON)
    show.set_defaults(one=one)


def _set(options: argparse.Namespace) -> int:
    one, name, limit = options.one, options.name, options.limit
    value = _number(options.value)
    with open_api(options) as api:
        _check(api, one, name)
        path = (f"{one}-limits", name, limit)
        what = f"set {limit} of {one} '{name}'"
        if value is None:
            api.delete(*path, what=what)
        else:
            api.put(*path, body={"value": value}, what=what)
    told = f"{limit} of {one} '{name}'"
    output.say(f"took away {told}" if value is None else f"set {told} to {value}")
    return 0


def _number(text: str) -> int | None:
    if text == "none":
        return None
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise ConfigError("VALUE", f"{text!r} is neither a number nor none")
    return value


def _check(api: Management, one: str, name: str) -> None:
    from warren.cli.accounts import check_user, check_vhost

    (check_user if one == "user" else check_vhost)(api, name)


def _list(options: argparse.Namespace) -> int:
    one = options.one
    with open_api(options) as api:
        rows = api.get(f"{one}-limits", what=f"list the limits of {one}s")
    columns = [Column(one, one)]
    columns += [Column(f"value.{name}", name, "number") for name in LIMITS[one]]
    print_rows(options, rows, columns, none="no limits")
    return 0
