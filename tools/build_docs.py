"""Writes the pages of docs/reference that follow from the code: ``make docs``.

cli.md             from the command line's parser
settings.md        from the fields of the settings' dataclasses
same-as-rabbitmq.md  from the names of the contract tests, and differences.toml

``--check`` writes nothing and fails if a page is not what it would write.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
sys.path[:0] = [str(ROOT / "src")]

from warren.config import BrokerConfig  # noqa: E402

NOTE = "<!-- Written by tools/build_docs.py (`make docs`): change what it is made from. -->\n"
TIMES = "\N{MULTIPLICATION SIGN}"
#: Defaults that depend on the machine, in words.
DERIVED = {"memory_limit_bytes": "two fifths of the machine's memory"}


# -- the command line ----------------------------------------------------------------------------
def command_line() -> argparse.ArgumentParser:
    """The parser behind the ``warren`` command."""
    from warren.cli.main import make_parser

    return make_parser()


def commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser and all those below it, with the words that lead there.

    Options that many share come once, as if they were a command, behind all others.
    """
    from warren.cli.options import COMMON

    yield from _with_those_below(parser)
    yield COMMON.prog, COMMON


def _with_those_below(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):  # an alias is no other command
                yield from _with_those_below(below)


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What a user can give, but for --help, the names of commands, and what many share."""
    from warren.cli.options import COMMON

    left_out = (argparse._HelpAction, argparse._SubParsersAction)
    known = [action for action in parser._actions if not isinstance(action, left_out)]
    return [action for action in known if parser is COMMON or action not in COMMON._actions]


def shared_options(parser: argparse.ArgumentParser) -> list[str]:
    """Names of the common options that a command has."""
    from warren.cli.options import COMMON

    if parser is COMMON:
        return []
    return [a.option_strings[0] for a in parser._actions if a in COMMON._actions]


def spelled(action: argparse.Action) -> str:
    """``--port PORT`` or the name of an argument."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    takes = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return ", ".join(action.option_strings) + takes


def cli_page() -> str:
    lines = [NOTE, "# The command line\n"]
    for name, parser in commands(command_line()):
        lines.append(f"## `{name}`\n")
        if parser.description:
            lines.append(f"{parser.description}\n")
        below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if below:
            choices = [(f"`{name} {c.metavar}`", c.help or "") for c in below[0]._choices_actions]
            lines.append(table(("command", ""), choices))
        rows = [(f"`{spelled(a)}`", _help(a)) for a in options(parser)]
        if rows:
            lines.append(table(("option", ""), rows))
        if shared := shared_options(parser):
            told = ", ".join(f"`{each}`" for each in shared)
            lines.append(f"[Common options](#common-options): {told}\n")
    lines.append(
        "A command that fails says why in one line on standard error. Its exit code is 2 if it was "
        "given\nsomething that can't be, 1 if the broker refused or did not answer. Settings of "
        "`warren broker` can\nalso come from a file or the environment: [settings](settings.md)."
    )
    return "\n".join(lines)


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    if action.dest in DERIVED:
        text = re.sub(r"\(default \d+\)", f"(default: {DERIVED[action.dest]})", text)
    return text


# -- settings ------------------------------------------------------------------------------------
def settings_page() -> str:
    rows = []
    for item in dataclasses.fields(BrokerConfig):
        option = "--" + item.name.replace("_", "-")
        rows.append(
            (
                f"`{item.name}`",
                item.metadata["help"],
                DERIVED.get(item.name, f"`{item.default}`"),
                _range(item.metadata["least"], item.metadata["most"]),
                f"`{option}`",
                f"`WARREN_{item.name.upper()}`",
            )
        )
    return "\n".join(
        (
            NOTE,
            "# Settings\n",
            "How they are given, and which of several wins: [the guide](../guide/settings.md).\n",
            "## `[broker]`\n",
            table(("name", "", "default", "range", "option", "environment"), rows),
        )
    )


def _range(least: int | None, most: int | None) -> str:
    if least is None and most is None:
        return ""
    return f"{least} to {most}" if most is not None else f"{least} or more"


# -- what is the same as RabbitMQ ----------------------------------------------------------------
AREAS = {
    "wire": "The wire",
    "exchanges": "Exchanges",
    "queues": "Queues",
    "publishing": "Publishing",
    "consumers": "Consuming",
    "access": "Access",
    "tls": "TLS",
    "management": "The management API",
    "cli": "The command line",
    "client": "The client",
    "groups": "Groups",
    "handlers": "Handlers",
    "contract": "Other",
}
#: Words of a test's name that are spelled another way, in the order they are looked for.
SPELLING: tuple[tuple[str, str], ...] = (
    (r"\bconnections tls\b", "connection's TLS"),
    (r"\btls\b", "TLS"),
    (r"\bca\b", "CA"),
    (r"\b[Ee]xternal (is offered|without)\b", r"EXTERNAL \1"),
    (r"\b(cancel|close|consume|declare|flow|get|open) ok\b", r"\1-ok"),
    (r"\banswers get empty\b", "answers get-empty"),
    (r"\bno (ack|wait|local)\b", r"no-\1"),
    (r"\bif (empty|unused) (?!queue)", r"if-\1 "),
    (r"\b(frame|channel) max\b", r"\1-max"),
    (r"\bbasic (get|return)\b", r"basic.\1"),
    (r"\bx (death|match)\b", r"x-\1"),
    (r"\bauto delete", "auto-delete"),
    (r"\bserver named\b", "server-named"),
    (r"\bdead letter", "dead-letter"),
    (r"\bupdate secret\b", "update-secret"),
    (r"\b0 9 1\b", "0-9-1"),
    (r"\b0 9\b", "0-9"),
    (r"\bamqp\b", "AMQP"),
    (r"\bb?cc\b", lambda match: match[0].upper()),  # type: ignore[list-item]
    (r"\bdlx\b", "DLX"),
    (r"\bha\b", "HA"),
    (r"\bkib\b", "KiB"),
    (r"\brpc\b", "RPC"),
    (r"\bttl\b", "TTL"),
    (r"\butf8\b", "UTF-8"),
    # "the brokers close": a name has no apostrophes
    (
        r"\b(broker|channel|client|consumer|one|publisher|queue|user)s "
        r"(cancel|channel|close|connection|delivery|last|messages|name|own|window)\b",
        r"\1's \2",
    ),
    (r"\b(the broker|the channel)s is\b", r"\1's is"),
)


def sentence(name: str) -> str:
    """``test_a_tag_is_unknown`` as a sentence."""
    text = name.removeprefix("test_").replace("_", " ")
    for pattern, spelling in SPELLING:
        text = re.sub(pattern, spelling, text)
    return text[:1].upper() + text[1:]


def behaviours() -> dict[ModuleType, dict[tuple[str, str], Counter[str]]]:
    """The contract suite: for each module, for each class and test, cases by broker."""
    import pytest

    class Collector:
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            self.items = session.items

    collector = Collector()
    arguments = ["tests/contract", f"--rootdir={ROOT}", "--collect-only", "-qq"]
    # warren is imported here, before pytest could have rewritten its asserts: no matter.
    options = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with redirect_stdout(io.StringIO()) as said:
        failed = pytest.main([*arguments, *options], plugins=[collector])
    if failed:
        raise RuntimeError(f"tests/contract can't be collected:\n{said.getvalue()}")
    found: dict[ModuleType, dict[tuple[str, str], Counter[str]]] = {}
    for item in collector.items:
        assert isinstance(item, pytest.Function)
        if not hasattr(item, "callspec") or "broker" not in item.callspec.params:
            continue  # a contract, but not of brokers
        group = _spaced(item.cls.__name__) if item.cls else ""
        test = item.originalname
        cases = found.setdefault(item.module, {}).setdefault((group, test), Counter())
        cases[item.callspec.params["broker"]] += 1
    return found


def _spaced(name: str) -> str:
    """``TestEachConsumer`` as words."""
    words = re.findall(r"[A-Z][a-z0-9]*", name.removeprefix("Test"))
    return " ".join(words).capitalize()


def same_page() -> str:
    modules = behaviours()
    total = sum((cases for tests in modules.values() for cases in tests.values()), Counter[str]())
    count = sum(len(tests) for tests in modules.values())
    lines = [
        NOTE,
        "# What is the same as RabbitMQ, and what is not\n",
        "warren behaves as RabbitMQ 3.10.8 with its consistent-hash plugin, but for this:\n",
        *_differences(),
        "## What is the same\n",
        "Each line below is the name of a test in `tests/contract`, which runs on warren and on a "
        "real\n"
        f"RabbitMQ 3.10.8 and must pass on both: {count:,} behaviours, {total['warren']:,} cases "
        f"on warren and\n{total['rabbitmq']:,} on RabbitMQ. `{TIMES}3` behind a line says that it "
        "is tried in three variants on each.\n",
    ]
    for folder, title in AREAS.items():
        here = [m for m in modules if Path(m.__file__ or "").parent.name == folder]
        if here:
            lines.append(f"### {title}\n")
        for module in here:
            lines += _module_section(module, modules[module])
    missing = {Path(module.__file__ or "").parent.name for module in modules} - set(AREAS)
    if missing:
        raise RuntimeError(f"AREAS has no title for {sorted(missing)}")
    return "\n".join(lines)


def _module_section(
    module: ModuleType, tests: dict[tuple[str, str], Counter[str]]
) -> Iterable[str]:
    first_line = (module.__doc__ or "").partition("\n")[0].rstrip(".:").replace("``", "`")
    yield f"#### {first_line}\n"
    last_group = ""
    rows: list[str] = []
    for (group, name), cases in tests.items():
        if group != last_group:
            rows.append(f"\n{group}:\n" if rows else f"{group}:\n")
            last_group = group
        rows.append(f"- {sentence(name)}{_cases(cases)}")
    yield "\n".join(rows) + "\n"


def _cases(cases: Counter[str]) -> str:
    warren, rabbitmq = cases["warren"], cases["rabbitmq"]
    if not rabbitmq or not warren:
        return f" ({'warren' if warren else 'RabbitMQ'} only)"
    if warren != rabbitmq:
        return f" ({TIMES}{warren} on warren, {TIMES}{rabbitmq} on RabbitMQ)"
    return f" {TIMES}{warren}" if warren > 1 else ""


def _differences() -> Iterable[str]:
    yield "## What is not the same\n"
    for item in tomllib.loads((REFERENCE / "differences.toml").read_text())["difference"]:
        parts = (("RabbitMQ", "rabbitmq"), ("warren", "ours"), ("Why", "why"))
        told = [f"- {label}: {' '.join(item[key].split())}" for label, key in parts]
        yield "\n".join((f"### {item['name']}\n", *told)) + "\n"


# -- writing -------------------------------------------------------------------------------------
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "settings.md": settings_page,
    "same-as-rabbitmq.md": same_page,
}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table with an empty line behind it."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [cell.replace("|", "\\|").replace("\n", " ").strip() for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return re.sub(r" +(?=\|)", " ", "\n".join(lines)) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the pages of docs/reference anew.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is stale")
    check = parser.parse_args(arguments).check
    os.chdir(ROOT)
    stale = []
    for name, make in PAGES.items():
        path = REFERENCE / name
        text = make().rstrip("\n") + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text)
    for name in stale:
        print(f"docs/reference/{name} {'is not up to date: make docs' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
