"""Where the scenes play: how wide it is, and who breaks the lines."""

from __future__ import annotations

import io

import pytest

from warren.cli.scenes.stage import NARROWEST_LINES, WIDTH, Stage

WORDS = "queues and workers " * 10


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("columns", "width"), [(50, 50), (64, 64), (200, WIDTH), (20, NARROWEST_LINES)]
)
def test_lines_on_a_terminal_are_broken_between_words(
    columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    said = Terminal()

    stage = Stage.open(plain=columns == 200, fast=True, file=said)
    stage.say(WORDS)

    lines = said.getvalue().splitlines()
    assert stage.plain
    assert stage.width == width >= max(len(line.rstrip()) for line in lines) > width - 8
    assert " ".join(line.strip() for line in lines) == WORDS.strip()


def test_a_line_in_a_log_is_whole() -> None:
    said = io.StringIO()

    Stage.open(plain=False, fast=True, file=said).say(WORDS)

    assert said.getvalue().strip() == WORDS.strip()
