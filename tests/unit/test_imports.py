"""Who may import whom: the rules of the house, checked in the source text."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for path in SRC.glob("**/*.py")
)

# Package or module of warren -> what it may import of warren, besides itself and EVERYBODY's.
# A dotted name allows that module only.
EVERYBODY = {"errors", "clock", "_version"}
EVERYTHING = {"*"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "clock": set(),
    "content_encoding": set(),
    "content_type": set(),
    "config": set(),
    "yaml_file": set(),
    "metrics": set(),
    "amqp": set(),
    "store": set(),
    "broker": {"amqp", "store.base", "metrics"},
    "server": {"amqp", "broker", "management", "store", "config", "metrics"},
    "management": {"broker", "config"},
    "client": {"amqp", "config"},
    "topology": {"client", "yaml_file"},
    "groups": {"client", "config", "metrics"},
    "handlers": {
        "client",
        "groups",
        "config",
        "content_encoding",
        "content_type",
        "metrics",
    },
    # app.test() brings its own broker; nothing else there may know of one.
    "handlers.trial": {"server.broker"},
    "spark": {"client", "config", "groups.assign"},
    "pipeline": {"spark", "config", "content_encoding", "content_type", "yaml_file"},
    "services": {"groups", "handlers"},
    "web": {"groups"},
    "cli": EVERYTHING,
    "testing": EVERYTHING,
    "__init__": EVERYTHING,
    "__main__": {"cli"},
}
# Nothing that is shipped may need what only tests use.
NOBODY_IMPORTS = "testing"

# Foreign packages -> who may import them; the others are for the standard library alone.
FOREIGN: dict[str, set[str]] = {
    "uvloop": {"server", "cli", "testing", "handlers.run"},
    "rich": {"cli"},
    "h11": {"server", "handlers.health", "groups.coordination.etcd_link"},
    "yaml": {"topology", "yaml_file", "pipeline"},
    "pytest": {"testing"},
    "httpx": {"services"},
    "google": {"services", "pipeline"},
    "fastavro": {"pipeline"},
    "msgpack": {"pipeline"},
    "zstandard": {"content_encoding"},
    "pyspark": {"spark", "pipeline", "cli.scenes.shop_job"},
    "py4j": {"pipeline"},
    "pyarrow": {"spark", "pipeline", "cli.scenes.shop_job"},
}

# These decide and never wait: bytes and a time in, bytes and a next_deadline() out.
SANS_IO = (
    "amqp",
    "broker",
    "groups.assign",
    "groups.dispatcher",
    "groups.member",
    "groups.portrait",
    "groups.roster",
    "groups.seat",
    "spark.plan",
)
WAITING = {"asyncio", "socket", "time"}


def imported(source: str, module: str, *, is_package: bool = False) -> Iterator[str]:
    """Full names of all that a module imports, wherever in it the import stands."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base]).rstrip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in MODULES else base


def within(name: str, packages: set[str]) -> bool:
    return "*" in packages or any(name == each or name.startswith(f"{each}.") for each in packages)


def complaint(module: str, name: str) -> str | None:
    """Why ``module`` may not import ``name``, or None if it may."""
    here = module.partition(".")[2] or "__init__"
    own = here.partition(".")[0]
    top, _, rest = name.partition(".")
    if within(here, set(SANS_IO)) and top in WAITING:
        return "is sans-IO"
    if top in sys.stdlib_module_names or module == "pyspark_rabbitmq":
        return None
    if top != "warren":
        return None if within(here, FOREIGN.get(top, set())) else "is not among its users"
    there = rest or "__init__"
    if there.partition(".")[0] == own:
        return None
    if within(there, {NOBODY_IMPORTS}):
        return "is shipped, that is for tests"
    if own not in MAY_IMPORT:
        return "is not in the table"
    allowed = MAY_IMPORT[own] | MAY_IMPORT.get(here, set()) | EVERYBODY
    return None if within(there, allowed) else "may not know of it"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_it_may(module: str) -> None:
    path = SRC.joinpath(*module.split("."))
    is_package = path.is_dir()
    source = (path / "__init__.py" if is_package else path.with_suffix(".py")).read_text()
    wrong = [
        f"{module} imports {name}, but {why}"
        for name in sorted(set(imported(source, module, is_package=is_package)))
        if (why := complaint(module, name)) is not None
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("module", "source", "why"),
    [
        ("warren.amqp.frames", "import asyncio.streams", "is sans-IO"),
        ("warren.broker.vhost", "from time import monotonic", "is sans-IO"),
        ("warren.groups.member", "import socket", "is sans-IO"),
        ("warren.groups.app", "from warren.broker import vhost", "may not know of it"),
        ("warren.groups.app", "def f():\n    from ..server import Server", "may not know of it"),
        ("warren.broker.vhost", "import warren.store.sqlite", "may not know of it"),
        ("warren.server.listen", "import warren", "may not know of it"),
        (
            "warren.cli.main",
            "from warren.testing import FakeClock",
            "is shipped, that is for tests",
        ),
        ("warren.client.reader", "import pika", "is not among its users"),
        ("warren.groups.app", "import pyspark.sql", "is not among its users"),
        ("warren.utils", "from warren.amqp import frames", "is not in the table"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str, why: str) -> None:
    assert [complaint(module, name) for name in imported(source, module)] == [why]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("warren.broker.vhost", "from warren.store.base import Store"),
        ("warren.broker.queues.classic", "from ..message import Message"),
        ("warren.server.listen", "import asyncio, socket, uvloop"),
        ("warren.groups.app", "import asyncio"),
        ("warren.amqp.frames", "from warren.errors import ProtocolError"),
        ("warren.cli.main", "from warren import Broker"),
        ("warren.testing.plugin", "import pytest"),
    ],
)
def test_an_allowed_import_is_let_through(module: str, source: str) -> None:
    assert [complaint(module, name) for name in imported(source, module)] == [None] * (
        1 + source.count(",")
    )
