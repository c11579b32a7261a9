"""What commands print: tables and facts for people, aligned text for pipes, JSON for programs."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from textwrap import indent
from typing import TYPE_CHECKING, Any

from warren.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, Any]
#: Rows of a long table that are written together.
_PART = 1_000


@dataclass(frozen=True)
class Column:
    """A column of a table: a field of the JSON, and how people see it."""

    key: str
    title: str
    kind: str = "text"
    make: Callable[[Row], Any] | None = None
    #: Where a terminal is too narrow, columns with the highest number go first; 0 stays.
    spare: int = 0

    @property
    def is_right(self) -> bool:
        return self.kind in ("number", "rate", "bytes")

    def value(self, row: Row) -> Any:
        return self.make(row) if self.make is not None else dig(row, self.key)


def dig(row: Any, key: str) -> Any:
    """The field at a dotted path, None if there is none."""
    for part in key.split("."):
        if not isinstance(row, Mapping):
            return None
        row = row.get(part)
    return row


# -- values --------------------------------------------------------------------------------------
def shown(value: Any, kind: str = "text", *, plain: bool = True) -> str:
    """A value for people; empty if there is none."""
    if value is None or value == "" or value == [] or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(value, kind, plain)
    if isinstance(value, Mapping):
        return ", ".join(f"{clean(str(k))}={shown(v)}" for k, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(shown(each) for each in value)
    return clean(str(value))


def _number(value: int | float, kind: str, plain: bool) -> str:
    if kind == "rate":
        return f"{value:.1f}" if plain else f"{value:,.1f}/s"
    if kind == "bytes" and not plain:
        return size(value)
    if kind == "time":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if kind == "number" and not plain else str(value)


def size(octets: float) -> str:
    """``1.2 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if octets < 1024:
            return f"{octets:.0f} {unit}" if unit == "B" else f"{octets:.1f} {unit}"
        octets /= 1024
    return f"{octets:.1f} TiB"


def duration(ms: float) -> str:
    """``3 d 4 h``, ``12 min``: the two largest units."""
    left = int(ms // 1000)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def clean(text: str, *, lines: bool = False) -> str:
    """Text of strangers, so that it can't steer the terminal."""
    kept = "\n\t" if lines else ""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


# -- printing ------------------------------------------------------------------------------------
def is_terminal() -> bool:
    return sys.stdout.isatty()


@cache
def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def say(text: str, style: str = "") -> None:
    """A line."""
    if is_terminal():
        _console().print(text, style=style or None, soft_wrap=True)
    else:
        print(_printable(text))


def say_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def say_json_rows(rows: Iterable[Any]) -> None:
    """The same of a list that may be long: each of its rows when it comes."""
    before = "[\n"
    for row in rows:
        sys.stdout.write(before + indent(json.dumps(row, indent=2), "  "))
        before = ",\n"
    print("\n]" if before == ",\n" else "[]")


def _printable(text: str) -> str:
    """What standard output can take, whatever its encoding is."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def table(
    rows: Iterable[Row], columns: Sequence[Column], *, none: str = "", all_columns: bool = False
) -> None:
    """A table; ``none`` is what people are told if it is empty.

    On a terminal, columns without a value and those for which there is no room are left out,
    unless ``all_columns``.
    """
    plain = not is_terminal()
    cells = [[shown(c.value(row), c.kind, plain=plain) for c in columns] for row in rows]
    if plain:
        _plain_table(cells, columns)
    elif cells:
        _rich_table(cells, columns, list(range(len(columns))) if all_columns else None)
    else:
        say(none, "dim")


def long_table(rows: Iterable[Row], columns: Sequence[Column], *, none: str = "") -> None:
    """A table of rows that may be very many: it is written part by part, as they come.

    Columns are as wide as the parts so far need; on a terminal each part has its heading.
    """
    rows, widths, begins = iter(rows), None, True
    while (part := list(islice(rows, _PART))) or begins:
        begins = False
        if is_terminal():
            table(part, columns, none=none)
        else:
            cells = [[shown(c.value(row), c.kind) for c in columns] for row in part]
            widths = _plain_table(cells, columns, widths)


def _plain_table(
    cells: list[list[str]], columns: Sequence[Column], before: list[int] | None = None
) -> list[int]:
    """``before``: the widths of the part before this one, which had the heading. Says its own."""
    heading = [column.title.replace(" ", "_").upper() for column in columns]
    lines = [[cell or "-" for cell in row] for row in cells]
    if before is None:
        lines.insert(0, heading)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if before is not None:
        widths = list(map(max, widths, before))
    for line in lines:
        parts = (
            cell.rjust(width) if column.is_right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        )
        print(_printable("  ".join(parts).rstrip()))
    return widths


def _rich_table(cells: list[list[str]], columns: Sequence[Column], kept: list[int] | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    left_out: list[str] = []
    if kept is None:
        kept, left_out = fitting(cells, columns, _console().width)
    drawn = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for at in kept:
        column = columns[at]
        drawn.add_column(
            column.title,
            justify="right" if column.is_right else "left",
            style="cyan" if at == 0 else None,
            overflow="fold",
            no_wrap=column.is_right,
        )
    for row in cells:
        drawn.add_row(*(Text(row[at]) for at in kept))
    _console().print(drawn)
    if left_out:
        say(f"(no room for {', '.join(left_out)}: --columns chooses)", "dim")


def fitting(
    cells: list[list[str]], columns: Sequence[Column], width: int
) -> tuple[list[int], list[str]]:
    """Which columns to show in a width, and the titles of those that have no room."""
    widths = [max(len(each) for each in column) for column in zip(*cells, strict=True)]
    kept = [at for at in range(len(columns)) if at == 0 or widths[at]]
    left_out = []
    while sum(max(widths[at], len(columns[at].title)) + 2 for at in kept) > width + 2:
        most = max(kept, key=lambda at: columns[at].spare)
        if not columns[most].spare:
            break
        kept.remove(most)
        left_out.append(columns[most].title)
    return kept, left_out


def facts(pairs: Iterable[tuple[str, str]], *, title: str = "") -> None:
    """Names and values, one a line."""
    known = [(name, value) for name, value in pairs if value]
    if title:
        say(title, "bold")
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        if is_terminal():
            from rich.text import Text

            line = Text.assemble((f"  {name.ljust(width)}  ", "cyan"), value)
            _console().print(line, soft_wrap=True)
        else:
            print(_printable(f"{'  ' if title else ''}{name.ljust(width)}  {value}"))


# -- choosing columns and order ------------------------------------------------------------------
def chosen(rows: Sequence[Row], known: Sequence[Column], wanted: str | None) -> list[Column]:
    """The columns that ``--columns`` names, or all that are known."""
    if wanted is None:
        return list(known)
    return [find(rows, known, name.strip(), "--columns") for name in wanted.split(",")]


def find(rows: Sequence[Row], known: Sequence[Column], name: str, option: str) -> Column:
    for column in known:
        if name in (column.title, column.key, column.title.replace(" ", "_")):
            return column
    if not rows or any(dig(row, name) is not None for row in rows):
        return Column(name, name, _kind(rows, name))
    names = {column.title for column in known} | {key for row in rows for key in row}
    if name in names or (name and name.partition(".")[0] in names and "." in name):
        return Column(name, name)  # a field without a value
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else "--json shows all fields"
    raise ConfigError(option, f"there is no column {name!r}; {hint}")


def _kind(rows: Sequence[Row], name: str) -> str:
    values = [value for row in rows if (value := dig(row, name)) is not None]
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
    return "number" if values and numbers else "text"


def ordered(rows: Sequence[Row], column: Column | None, *, reverse: bool = False) -> list[Row]:
    """Sorted by a column; rows without a value come last, either way."""
    if column is None:
        return list(reversed(rows)) if reverse else list(rows)
    keyed = [(column.value(row), row) for row in rows]
    known = [(value, row) for value, row in keyed if value is not None]
    known.sort(key=lambda pair: _order(pair[0]), reverse=reverse)
    return [row for _, row in known] + [row for value, row in keyed if value is None]


def _order(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, shown(value))
