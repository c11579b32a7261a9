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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("brokr", "there is no command 'brokr'; did you mean broker? ('warren --help' shows how)"),
        ("xyzzy", "there is no command 'xyzzy' ('warren --help' shows how)"),
        (
            "queues lst",
            "there is no command 'lst'; did you mean list? ('warren queues --help' shows how)",
        ),
        (
            "connections",
            "command is missing: list, show, close ('warren connections --help' shows how)",
        ),
        ("get", "QUEUE is missing ('warren get --help' shows how)"),
        (
            "broker --prot 5",
            "there is no option --prot; did you mean --port? ('warren broker --help' shows how)",
        ),
        (
            "user add ann --password secret",
            "there is no option --password; did you mean --password-stdin? "
            "('warren user add --help' shows how)",
        ),
        (
            "queues list --jsn",
            "there is no option --jsn; did you mean --json? "
            "('warren queues list --help' shows how)",
        ),
        (
            "queues list --colums=name",
            "there is no option --colums; did you mean --columns? "
            "('warren queues list --help' shows how)",
        ),
        (
            "queues --json list",
            "--json belongs behind 'warren queues list' ('warren queues list --help' shows how)",
        ),
        (
            "queues list --sort",
            "--sort needs a value ('warren queues list --help' shows how)",
        ),
        (
            "queues list a b",
            "'b' is one word too many ('warren queues list --help' shows how)",
        ),
        (
            "get q --count many",
            "--count: 'many' is not a whole number ('warren get --help' shows how)",
        ),
        (
            "get q --timeout-s soon",
            "--timeout-s: 'soon' is not a number of seconds ('warren get --help' shows how)",
        ),
        (
            "queues declare q --type quorm",
            "--type: 'quorm' is not one of classic, quorum, stream; did you mean quorum? "
            "('warren queues declare --help' shows how)",
        ),
        (
            "user limit ann max-conections 5",
            "LIMIT: 'max-conections' is not one of max-connections, max-channels; did you mean "
            "max-connections? ('warren user limit --help' shows how)",
        ),
    ],
)
def test_a_command_line_without_sense_is_told_in_one_line(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr() == ("", f"warren: {told}\n")


def test_without_a_word_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert "usage: warren" in capsys.readouterr().out
