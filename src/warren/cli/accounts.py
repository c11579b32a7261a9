"""``warren user``, ``warren vhost``, ``warren permission``: who may do what, and where."""

from __future__ import annotations

import argparse
import difflib
from typing import Any

from warren.cli import limits, output, topics
from warren.cli.options import (
    JSON,
    TABLE,
    VHOST,
    add_command,
    add_group,
    confirmed,
    new_password,
    open_api,
    vhost_of,
)
from warren.cli.output import Column
from warren.cli.resources import print_rows
from warren.client.management import Management
from warren.errors import ApiMissing, ApiRefused

USER_COLUMNS = [Column("name", "name"), Column("tags", "tags")]
VHOST_COLUMNS = [
    Column("name", "name"),
    Column("description", "description"),
    Column("messages_ready", "ready", "number"),
    Column("messages_unacknowledged", "unacked", "number"),
    Column("messages", "total", "number"),
]
PERMISSION_COLUMNS = [
    Column("user", "user"),
    Column("vhost", "vhost"),
    Column("configure", "configure"),
    Column("write", "write"),
    Column("read", "read"),
]


def add_parser(commands: Any) -> None:
    _add_user(add_group(commands, "user", "users: add, change, delete, list"))
    _add_vhost(add_group(commands, "vhost", "virtual hosts: add, delete, list"))
    _add_permission(add_group(commands, "permission", "what users may do in a virtual host"))


def _add_user(commands: Any) -> None:
    stdin = "take the password from the first line of standard input instead of asking for it"
    add = add_command(commands, "add", "add a user", _user_add)
    add.add_argument("name", metavar="NAME", help="name of the user")
    add.add_argument("--password-stdin", action="store_true", help=stdin)
    add.add_argument(
        "--tags",
        default="",
        metavar="A,B",
        help="what the user may do in the management API: administrator, monitoring, policymaker, "
        "management; nothing without one",
    )
    passwd = add_command(commands, "passwd", "change a user's password", _user_passwd)
    passwd.add_argument("name", metavar="NAME", help="name of the user")
    passwd.add_argument("--password-stdin", action="store_true", help=stdin)
    tags = add_command(
        commands,
        "tags",
        "give a user other tags",
        _user_tags,
        description="Give a user other tags, which say what it may do in the management API: "
        "administrator, monitoring, policymaker, management. Without any, it may do nothing there.",
    )
    tags.add_argument("name", metavar="NAME", help="name of the user")
    tags.add_argument("tags", nargs="*", metavar="TAG", help="all that it shall have")
    delete = add_command(commands, "delete", "delete a user", _user_delete)
    delete.add_argument("name", metavar="NAME", help="name of the user")
    add_command(commands, "list", "list users", _user_list, TABLE, JSON)
    limits.add_parsers(commands, "user")


def _add_vhost(commands: Any) -> None:
    add = add_command(commands, "add", "add a virtual host", _vhost_add)
    add.add_argument("name", metavar="NAME", help="name of the virtual host")
    add.add_argument("--description", default="", metavar="TEXT", help="what it is for")
    delete = add_command(
        commands, "delete", "delete a virtual host and all that is in it", _vhost_delete
    )
    delete.add_argument("name", metavar="NAME", help="name of the virtual host")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    add_command(commands, "list", "list virtual hosts", _vhost_list, TABLE, JSON)
    limits.add_parsers(commands, "vhost")


def _add_permission(commands: Any) -> None:
    give = add_command(
        commands,
        "set",
        "give a user permissions in a virtual host",
        _permission_set,
        VHOST,
        description="Give a user permissions in a virtual host: three regular expressions, for the "
        "names of queues and exchanges that the user may configure, write to and read from. "
        "'.*' is all of them, '' is none.",
    )
    give.add_argument("user", metavar="USER", help="name of the user")
    give.add_argument("configure", metavar="CONFIGURE", help="may declare and delete these")
    give.add_argument("write", metavar="WRITE", help="may publish to these")
    give.add_argument("read", metavar="READ", help="may consume from these")
    clear = add_command(
        commands, "clear", "take a user's permissions in a virtual host", _permission_clear, VHOST
    )
    clear.add_argument("user", metavar="USER", help="name of the user")
    show = add_command(
        commands,
        "list",
        "list permissions, of all virtual hosts",
        _permission_list,
        VHOST,
        TABLE,
        JSON,
    )
    show.add_argument("user", nargs="?", metavar="USER", help="of this user only")
    topics.add_parsers(commands)


# -- users ---------------------------------------------------------------------------------------
def _user_add(options: argparse.Namespace) -> int:
    name = options.name
    what = f"add user '{name}'"
    with open_api(options) as api:
        # The API would overwrite: a user that is there must not lose password and tags so.
        if any(user["name"] == name for user in api.get("users", what=what)):
            hint = f"there is one; 'warren user passwd {name}' changes the password"
            raise ApiRefused(what, 409, hint)
        body = {"password": new_password(options, name), "tags": _tags(options.tags)}
        api.put("users", name, body=body, what=what)
    output.say(f"added user '{name}'; 'warren permission set {name} ...' says what it may do")
    return 0


def _tags(text: str) -> str:
    return ",".join(tag for tag in text.replace(",", " ").split())


def _user_passwd(options: argparse.Namespace) -> int:
    name = options.name
    what = f"change the password of user '{name}'"
    with open_api(options) as api:
        try:
            user = api.get("users", name, what=what)
        except ApiMissing:
            raise _no_user(api, name) from None
        tags = user["tags"] if isinstance(user["tags"], str) else ",".join(user["tags"])
        body = {"password": new_password(options, name), "tags": tags}
        api.put("users", name, body=body, what=what)
    output.say(f"changed the password of user '{name}'")
    return 0


def _user_tags(options: argparse.Namespace) -> int:
    name, tags = options.name, ",".join(options.tags)
    what = f"change the tags of user '{name}'"
    with open_api(options) as api:
        try:
            user = api.get("users", name, what=what)
        except ApiMissing:
            raise _no_user(api, name) from None
        # The password stays as it is: the API wants it, or its hash, each time.
        body = {key: user[key] for key in ("password_hash", "hashing_algorithm")}
        api.put("users", name, body={**body, "tags": _tags(tags)}, what=what)
    told = f"the tags {_tags(tags)}" if tags else "no tags"
    output.say(f"user '{name}' has {told} now")
    return 0


def _user_delete(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        try:
            api.delete("users", options.name, what=f"delete user '{options.name}'")
        except ApiMissing:
            raise _no_user(api, options.name) from None
    output.say(f"deleted user '{options.name}'")
    return 0


def _user_list(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        users = api.get("users", what="list users")
    secret = ("password_hash", "hashing_algorithm")
    rows = [{key: value for key, value in user.items() if key not in secret} for user in users]
    print_rows(options, rows, USER_COLUMNS, none="no users")
    return 0


def _no_user(api: Management, name: str) -> ApiMissing:
    return _none(f"user '{name}'", name, [user["name"] for user in api.get("users")])


def _none(what: str, name: str, names: list[str]) -> ApiMissing:
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"
    return ApiMissing(f"find {what}", 404, f"it is not there; {hint}")


# -- vhosts --------------------------------------------------------------------------------------
def _vhost_add(options: argparse.Namespace) -> int:
    name = options.name
    with open_api(options) as api:
        there = name in _vhosts(api)
        body = {"description": options.description} if options.description else {}
        if not there or body:
            api.put("vhosts", name, body=body, what=f"add vhost '{name}'")
    output.say(f"vhost '{name}' was there already" if there else f"added vhost '{name}'")
    return 0


def _vhost_delete(options: argparse.Namespace) -> int:
    name = options.name
    with open_api(options) as api:
        names = _vhosts(api)
        if name not in names:
            raise _none(f"vhost '{name}'", name, names)
        if not confirmed(options, f"delete vhost '{name}' with its queues and their messages?"):
            return 1
        api.delete("vhosts", name, what=f"delete vhost '{name}'")
    output.say(f"deleted vhost '{name}'")
    return 0


def _vhosts(api: Management) -> list[str]:
    rows = api.get("vhosts", query={"columns": "name"}, what="list virtual hosts")
    return [row["name"] for row in rows]


def _vhost_list(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        rows = api.get("vhosts", what="list virtual hosts")
    print_rows(options, rows, VHOST_COLUMNS, none="no virtual hosts")
    return 0


# -- permissions ---------------------------------------------------------------------------------
def _permission_set(options: argparse.Namespace) -> int:
    user, vhost = options.user, vhost_of(options)
    body = {key: getattr(options, key) for key in ("configure", "write", "read")}
    with open_api(options) as api:
        check_both(api, user, vhost)
        what = f"set permissions of user '{user}' in vhost '{vhost}'"
        api.put("permissions", vhost, user, body=body, what=what)
    output.say(f"set permissions of user '{user}' in vhost '{vhost}'")
    return 0


def _permission_clear(options: argparse.Namespace) -> int:
    user, vhost = options.user, vhost_of(options)
    what = f"clear permissions of user '{user}' in vhost '{vhost}'"
    with open_api(options) as api:
        try:
            api.delete("permissions", vhost, user, what=what)
        except ApiMissing as refusal:
            check_both(api, user, vhost)
            raise ApiMissing(what, refusal.status, "it has none") from None
    output.say(f"user '{user}' may do nothing in vhost '{vhost}' now")
    return 0


def check_both(api: Management, user: str, vhost: str) -> None:
    """RabbitMQ does not say which of the two is missing."""
    check_vhost(api, vhost)
    check_user(api, user)


def check_vhost(api: Management, name: str) -> None:
    if name not in (names := _vhosts(api)):
        raise _none(f"vhost '{name}'", name, names)


def check_user(api: Management, name: str) -> None:
    if not any(each["name"] == name for each in api.get("users", what="list users")):
        raise _no_user(api, name)


def _permission_list(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        rows = api.get("permissions", what="list permissions")
    if options.vhost is not None:
        rows = [row for row in rows if row["vhost"] == options.vhost]
    if options.user is not None:
        rows = [row for row in rows if row["user"] == options.user]
    print_rows(options, rows, PERMISSION_COLUMNS, none="no permissions")
    return 0
