"""Texts that propose a command propose one that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import build_docs

ROOT = Path(__file__).parents[2]
PARSERS = dict(build_docs.commands(build_docs.command_line()))
_COMMAND = re.compile(r"(?<!`)`(warren [^`]+)`(?!`)")


def texts(node: ast.AST) -> Iterator[str]:
    """Texts as they are shown, literals joined; what an f-string fills in is one word."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else "x"
                      for part in node.values)  # fmt: skip
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from texts(child)


def named(source: str) -> list[str]:
    if "`warren " not in source:  # most files: parsing them all is a second of each process
        return []
    return [command for text in texts(ast.parse(source)) for command in _COMMAND.findall(text)]


def problem(command: str) -> str | None:
    """What is wrong with a command: its name, or an option of it."""
    words = command.split()
    count = next(count for count in (3, 2, 1) if " ".join(words[:count]) in PARSERS)
    parser, rest = PARSERS[" ".join(words[:count])], words[count:]
    if parser._subparsers is not None and rest:
        return f"no command {rest[0]}"
    known = {option for action in parser._actions for option in action.option_strings}
    options = [word.partition("=")[0] for word in rest if word.startswith("-")]
    return next((f"no option {word}" for word in options if word not in known), None)


NAMED = sorted(
    {
        (str(file.relative_to(ROOT)), command)
        for file in (ROOT / "src").rglob("*.py")
        for command in named(file.read_text())
    }
)


@pytest.mark.parametrize(("file", "command"), NAMED)
def test_a_command_that_a_text_names_exists(file: str, command: str) -> None:
    assert problem(command) is None, f"{file} names `{command}`"


def test_a_text_over_several_lines_is_read_as_it_is_shown() -> None:
    source = 'print("see (`warren "\n"ledger verify`)", f"`warren get {queue}`", "``warren no``")'
    assert named(source) == ["warren ledger verify", "warren get x"]


@pytest.mark.parametrize(
    "command", ["warren list consumers", "warren consumer list", "warren get --nothing x"]
)
def test_a_command_that_does_not_exist_is_noticed(command: str) -> None:
    assert problem(command) is not None
