"""``warren definitions``: all that a broker knows but its messages, as one JSON file."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from warren.cli import output
from warren.cli.messages import read_file
from warren.cli.options import VHOST, add_command, add_group, open_api
from warren.client.management import Management
from warren.errors import ApiMissing, ApiRefused, ConfigError


def add_parser(commands: Any) -> None:
    below = add_group(
        commands, "definitions", "all that a broker knows but its messages, as a file"
    )
    export = add_command(
        below,
        "export",
        "write definitions to a file",
        _export,
        VHOST,
        description="Write users, virtual hosts, permissions, policies, exchanges, queues and "
        "bindings as JSON, in RabbitMQ's format; with --vhost, what is in that virtual host. A "
        "file of everything holds password hashes: only you may read it.",
    )
    export.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="standard output if there is none"
    )
    load = add_command(
        below,
        "import",
        "take definitions from a file",
        _import,
        VHOST,
        description="Add what the file holds to what is there: a file of everything, or with "
        "--vhost one of a virtual host. It may come from RabbitMQ or from warren.",
    )
    load.add_argument("file", metavar="FILE", help="- for standard input")


def _path(options: argparse.Namespace) -> tuple[str, ...]:
    return ("definitions",) if options.vhost is None else ("definitions", options.vhost)


def _export(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        try:
            found = api.get(*_path(options), what="export definitions")
        except ApiRefused as refusal:
            raise _explained(refusal, options.vhost) from None
    if options.file == "-":
        output.say_json(found)
        return 0
    write_file(options.file, json.dumps(found, indent=2) + "\n", private=True)
    output.say(f"wrote {_told(found)} to {options.file}")
    return 0


def _import(options: argparse.Namespace) -> int:
    try:
        found = json.loads(read_file(options.file, "FILE"))
    except json.JSONDecodeError as error:
        raise ConfigError("FILE", f"{options.file}:{error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise ConfigError("FILE", f"{options.file} holds no definitions: it must be a JSON object")
    if options.vhost is not None and ("users" in found or "vhosts" in found):
        raise ConfigError(
            "--vhost", f"{options.file} holds a whole broker, not one virtual host; go without it"
        )
    with open_api(options) as api:
        _post(api, options, found)
    output.say(f"took {_told(found)} from {options.file}")
    return 0


def _post(api: Management, options: argparse.Namespace, found: dict[str, Any]) -> None:
    try:
        api.post(*_path(options), body=found, what=f"import {options.file}")
    except ApiRefused as refusal:
        raise _explained(refusal, options.vhost) from None


def _explained(refusal: ApiRefused, vhost: str | None) -> ApiRefused:
    """RabbitMQ has two ways to say that a vhost is not there."""
    if vhost is None or (refusal.status != 404 and refusal.reason != "vhost_not_found"):
        return refusal
    hint = f"'warren vhost add {vhost}' makes it"
    return ApiMissing(f"find vhost '{vhost}'", 404, f"it is not there; {hint}")


def _told(found: dict[str, Any]) -> str:
    """``2 users, 12 queues``."""
    kinds = ("users", "vhosts", "policies", "exchanges", "queues", "bindings")
    parts = []
    for kind in kinds:
        count = len(found.get(kind) or ())
        if count:
            one = {"policies": "policy"}.get(kind, kind[:-1])
            parts.append(f"{count} {one if count == 1 else kind}")
    return ", ".join(parts) or "nothing"


def write_file(name: str, text: str, *, private: bool = False) -> None:
    """Write a file, whole or not at all; a private one can be read by its owner only."""
    path = Path(name)
    try:
        if path.exists() and (path.is_symlink() or not path.is_file()):  # such as /dev/stdout
            path.write_text(text, encoding="utf-8")
            return
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            if not private:
                os.umask(mask := os.umask(0))
                os.chmod(made, 0o666 & ~mask)
            os.replace(made, path)
        except BaseException:
            os.unlink(made)
            raise
    except OSError as error:
        raise ConfigError("FILE", f"{name} can't be written: {error.strerror}") from None
