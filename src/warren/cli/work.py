"""``warren work module:app``: run an app's handlers, in one process or several."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import importlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

from warren.cli.supervise import Supervisor, seen
from warren.errors import ConfigError
from warren.handlers.app import App
from warren.handlers.run import PARENT_PIPE, run


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "work",
        help="run the handlers of an app",
        description="Join the app's group and run its handlers until it is stopped (Ctrl-C, "
        "SIGTERM): messages that are being handled are finished first.",
    )
    parser.add_argument("app", metavar="MODULE:APP", help="where the App is, as in shop.work:app")
    parser.add_argument("--url", help="broker to use instead of the one the app names")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="members to run")
    parser.add_argument("--reload", action="store_true", help="start again when a .py file changes")
    parser.add_argument(
        "--health-port",
        type=int,
        metavar="PORT",
        help="answer /health, /ready and /metrics here (the second process: PORT + 1, ...)",
    )
    parser.add_argument(
        "--health-host",
        default="127.0.0.1",
        metavar="HOST",
        help="address for --health-port (default 127.0.0.1; 0.0.0.0 for probes from outside)",
    )
    parser.add_argument("--verbose", action="store_true", help="log what happens")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.processes < 1:
        raise ConfigError("--processes", "must be 1 or more")
    if (options.processes > 1 or options.reload) and PARENT_PIPE not in os.environ:
        return asyncio.run(Supervisor(_commands(options), watch=options.reload, say=_say).run())
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    app = find_app(options.app)
    if options.url:
        app.url = options.url
    if options.health_port is not None:
        app.health(port=options.health_port, host=options.health_host)
    run(app, _say)
    return 0


def _commands(options: argparse.Namespace) -> list[list[str]]:
    base = [sys.executable, "-m", "warren", "work", options.app]
    base += ["--health-host", options.health_host]
    base += ["--url", options.url] if options.url else []
    base += ["--verbose"] if options.verbose else []
    port = options.health_port
    return [
        base + (["--health-port", str(port and port + n)] if port is not None else [])
        for n in range(options.processes)
    ]


def find_app(name: str) -> App:
    """The App that ``module:attribute`` names; the folder one is in is looked in first."""
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise ConfigError("app", f"'{name}' must be MODULE:APP, as in shop.work:app")
    if module_name.endswith(".py") or "/" in module_name or module_name.startswith("."):
        meant = _as_module(module_name)
        raise ConfigError("app", f"'{name}' names a file, not a module: write {meant}:{attribute}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # An import that fails inside the user's module is shown to them as it is.
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        hint = _near(module_name, attribute)
        raise ConfigError("app", f"no module '{error.name}' in {os.getcwd()}{hint}") from None
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            there = [key for key, value in vars(module).items() if isinstance(value, App)]
            hint = f"; there is {module_name}:{there[0]}" if there else ""
            raise ConfigError("app", f"no '{attribute}' in module '{module_name}'{hint}")
        found = getattr(found, part)
    if not isinstance(found, App):
        raise ConfigError("app", f"'{name}' is a {type(found).__name__}, not a warren.App")
    return found


def _as_module(file: str) -> str:
    """``./shop/work.py`` as Python names it."""
    path = os.path.relpath(file) if os.path.isabs(file) else os.path.normpath(file)
    parts = [each for each in path.removesuffix(".py").split(os.sep) if each not in (".", "..", "")]
    return ".".join(parts).strip(".") or "shop"


def _near(module_name: str, attribute: str) -> str:
    """A module below this folder whose name is nearly the one that was given."""
    names = [_as_module(path).removesuffix(".__init__") for path in seen(Path.cwd())]
    found = difflib.get_close_matches(module_name, names, 1)
    return f"; did you mean {found[0]}:{attribute}?" if found else ""


def _say(text: str) -> None:
    print(f"warren work: {text}", flush=True)
