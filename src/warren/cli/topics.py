"""``warren permission set-topic``: which routing keys a user may publish to and bind to."""

from __future__ import annotations

import argparse
from typing import Any

from warren.cli import output
from warren.cli.options import JSON, TABLE, VHOST, add_command, open_api, vhost_of
from warren.cli.output import Column
from warren.cli.resources import print_rows
from warren.errors import ApiMissing

COLUMNS = [
    Column("user", "user"),
    Column("vhost", "vhost"),
    Column("exchange", "exchange"),
    Column("write", "write"),
    Column("read", "read"),
]


def add_parsers(commands: Any) -> None:
    give = add_command(
        commands,
        "set-topic",
        "give a user permissions for routing keys of a topic exchange",
        _set,
        VHOST,
        description="Give a user permissions for routing keys of a topic exchange: two regular "
        "expressions, for the keys that the user may publish with, and for those it may bind with. "
        "Without any, all keys are allowed.",
    )
    give.add_argument("user", metavar="USER", help="name of the user")
    give.add_argument("exchange", metavar="EXCHANGE", help="name of the topic exchange")
    give.add_argument("write", metavar="WRITE", help="may publish with these")
    give.add_argument("read", metavar="READ", help="may bind with these")
    clear = add_command(
        commands, "clear-topic", "take a user's permissions for routing keys", _clear, VHOST
    )
    clear.add_argument("user", metavar="USER", help="name of the user")
    clear.add_argument("exchange", nargs="?", metavar="EXCHANGE", help="of this exchange only")
    show = add_command(
        commands, "list-topics", "list permissions for routing keys", _list, VHOST, TABLE, JSON
    )
    show.add_argument("user", nargs="?", metavar="USER", help="of this user only")


def _set(options: argparse.Namespace) -> int:
    from warren.cli.accounts import check_both

    user, vhost, exchange = options.user, vhost_of(options), options.exchange
    body = {"exchange": exchange, "write": options.write, "read": options.read}
    with open_api(options) as api:
        check_both(api, user, vhost)
        what = f"set topic permissions of user '{user}' in vhost '{vhost}'"
        api.put("topic-permissions", vhost, user, body=body, what=what)
    output.say(f"set topic permissions of user '{user}' for exchange '{exchange}'")
    return 0


def _clear(options: argparse.Namespace) -> int:
    from warren.cli.accounts import check_both

    user, vhost, exchange = options.user, vhost_of(options), options.exchange
    what = f"clear topic permissions of user '{user}' in vhost '{vhost}'"
    with open_api(options) as api:
        check_both(api, user, vhost)
        rows = api.get("topic-permissions", what=what)
        held = [row["exchange"] for row in rows if (row["user"], row["vhost"]) == (user, vhost)]
        if not held or (exchange is not None and exchange not in held):
            have = f"; it has some for {', '.join(held)}" if held else ""
            raise ApiMissing(what, 404, f"it has none{have}")
        path = ("topic-permissions", vhost, user)
        api.delete(*path, *(() if exchange is None else (exchange,)), what=what)
    output.say(f"user '{user}' may use all routing keys of {exchange or 'all exchanges'} now")
    return 0


def _list(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        rows = api.get("topic-permissions", what="list topic permissions")
    for key in ("vhost", "user"):
        wanted = getattr(options, key)
        rows = [row for row in rows if wanted in (None, row[key])]
    print_rows(options, rows, COLUMNS, none="no topic permissions")
    return 0
