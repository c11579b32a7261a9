"""What people and pipes see."""

from __future__ import annotations

from typing import Any

import pytest

from warren.cli import output
from warren.cli.output import Column, clean, duration, fitting, ordered, shown, size
from warren.errors import ConfigError

COLUMNS = [Column("name", "name"), Column("messages_ready", "ready", "number", spare=1)]
ROWS = [{"name": "b", "messages_ready": 1200}, {"name": "a"}, {"name": "c", "messages_ready": 7}]


@pytest.mark.parametrize(
    ("value", "kind", "plain", "people"),
    [
        (None, "text", "", ""),
        (True, "text", "yes", "yes"),
        (1234567, "number", "1234567", "1,234,567"),
        (1234567, "text", "1234567", "1234567"),
        (1234.56, "rate", "1234.6", "1,234.6/s"),
        (1536, "bytes", "1536", "1.5 KiB"),
        (1794779475211, "time", "2026-11-15 21:51:15", "2026-11-15 21:51:15"),
        ({"a": 1, "b": [True, "x"]}, "text", "a=1, b=yes, x", "a=1, b=yes, x"),
        ("\x1b[31mred\n", "text", "\\x1b[31mred\\n", "\\x1b[31mred\\n"),
        ("größe", "text", "größe", "größe"),
    ],
)
def test_a_value_is_shown(value: Any, kind: str, plain: str, people: str) -> None:
    assert (shown(value, kind), shown(value, kind, plain=False)) == (plain, people)


def test_a_body_keeps_its_lines_and_loses_its_escapes() -> None:
    assert clean("a\n\tb\x07\x9b", lines=True) == "a\n\tb\\x07\\x9b"


def test_sizes_and_durations_are_short() -> None:
    assert [size(n) for n in (0, 1023, 1024, 5 << 30, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 GiB",
        "3.0 TiB",
    ]
    assert [duration(ms) for ms in (999, 61_000, 90_061_000)] == ["0 s", "1 min 1 s", "1 d 1 h"]


def test_a_pipe_gets_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(ROWS, COLUMNS)
    assert capsys.readouterr().out == "NAME  READY\nb      1200\na         -\nc         7\n"


def test_a_long_table_looks_as_a_short_one_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.cli.output._PART", 2)
    output.long_table(iter([*ROWS, *ROWS]), COLUMNS)
    long = capsys.readouterr().out
    output.table([*ROWS, *ROWS], COLUMNS)
    assert long == capsys.readouterr().out

    for rows in ([], ROWS):
        output.long_table(iter(rows), COLUMNS)
        output.table(rows, COLUMNS)
        said = capsys.readouterr().out
        assert said == said[: len(said) // 2] * 2


@pytest.mark.parametrize("rows", [[], [{"a": [1, "x\n"], "b": {}}], [1, {"a": None}]])
def test_json_of_a_long_list_is_that_of_a_short_one(
    rows: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    output.say_json_rows(iter(rows))
    long = capsys.readouterr().out
    output.say_json(rows)
    assert long == capsys.readouterr().out


def test_columns_go_by_title_or_by_field() -> None:
    for name in ("ready", "messages_ready"):
        assert output.chosen(ROWS, COLUMNS, f"name, {name}") == COLUMNS
    (column,) = output.chosen([{"stats": {"publish": 5}}], COLUMNS, "stats.publish")
    assert (column.value({"stats": {"publish": 5}}), column.kind) == (5, "number")


def test_a_column_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="there is no column 'redy'; did you mean ready"):
        output.chosen(ROWS, COLUMNS, "name,redy")


@pytest.mark.parametrize(("reverse", "names"), [(False, "cba"), (True, "bca")])
def test_rows_without_a_value_come_last(reverse: bool, names: str) -> None:
    found = ordered(ROWS, COLUMNS[1], reverse=reverse)
    assert "".join(row["name"] for row in found) == names


def test_a_narrow_terminal_loses_columns_not_names() -> None:
    cells = [["a" * 20, "5", ""]]
    columns = [*COLUMNS, Column("policy", "policy")]
    assert fitting(cells, columns, 40) == ([0, 1], [])  # the empty one never shows
    assert fitting(cells, columns, 25) == ([0], ["ready"])
    assert fitting(cells, columns, 5) == ([0], ["ready"])
