"""The command line as a whole."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from warren.cli import main as module
from warren.cli.main import MODULES, main, make_parser


def names(parser: argparse.ArgumentParser) -> set[str]:
    (below,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return set(below.choices)


def test_the_table_of_modules_has_every_command() -> None:
    assert names(make_parser()) == set(MODULES)


@pytest.mark.parametrize("command", MODULES)
def test_a_command_needs_its_own_module_only(command: str) -> None:
    assert command in names(make_parser(command))


def test_looking_at_queues_needs_neither_the_broker_nor_rich() -> None:
    code = "import sys, warren.cli.main as m; m.make_parser('queues'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    assert not {"asyncio", "rich", "yaml", "warren.server"} & set(done.stdout.split())


def test_ctrl_c_while_commands_are_imported_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(command: str | None = None) -> argparse.ArgumentParser:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "make_parser", interrupted)
    assert main(["queues", "list"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("words", [[], ["nonsense"], ["queues"], ["queues", "list", "--sort"]])
def test_a_command_that_is_none_ends_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: warren" in capsys.readouterr().err
