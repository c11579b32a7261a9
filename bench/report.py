"""The result: as a table for people, as Markdown for the README, as JSON to keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.model import Goal, Metric
from bench.runner import Outcome

RESULTS = Path(__file__).parent / "results"
HEADINGS = ("", "warren", "RabbitMQ", "ahead", "goal", "")

UNITS: dict[str, Callable[[float], str]] = {
    "rate": lambda value: f"{value:,.0f} /s",
    "latency": lambda value: f"{value * 1e6:,.0f} µs",
    "time": lambda value: f"{value:.2f} s",
    "memory": lambda value: f"{value / 1e6:,.0f} MB",
    "bytes": lambda value: f"{value:,.0f} B",
    "ratio": lambda value: f"{value:.2f}",
}


@dataclass(frozen=True)
class Row:
    """One metric's medians and what they mean."""

    metric: Metric
    ours: float | None
    theirs: float | None
    disturbed: bool = False  # others used the machine meanwhile

    @property
    def ahead(self) -> float | None:
        return None if self.ours is None else self.metric.ahead(self.ours, self.theirs)

    @property
    def met(self) -> bool | None:
        goal = self.metric.goal
        return None if goal is None or self.ours is None else goal.met(self.ours, self.ahead)

    def cells(self) -> tuple[str, ...]:
        show = UNITS[self.metric.unit]
        ours, theirs = ("-" if value is None else show(value) for value in (self.ours, self.theirs))
        comparable = self.ahead is not None and self.metric.unit != "ratio"
        ahead = f"{self.ahead:.1f} x" if comparable else ""
        verdict = {True: "pass", False: "FAIL", None: ""}[self.met]
        verdict += " (disturbed)" if self.disturbed else ""
        return self.metric.title, ours, theirs, ahead, _goal_text(self.metric), verdict


def _goal_text(metric: Metric) -> str:
    goal = metric.goal or Goal()
    show = UNITS[metric.unit]
    if goal.times is not None:
        return "ahead" if goal.times == 1.0 else f"≥ {goal.times:g} x"
    if goal.at_most is not None:
        return f"≤ {show(goal.at_most)}"
    return "" if goal.at_least is None else f"≥ {show(goal.at_least)}"


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    return [
        Row(
            metric,
            outcome.median("warren", metric.name),
            outcome.median("rabbitmq", metric.name),
            outcome.disturbed,
        )
        for outcome in outcomes
        for metric in outcome.scenario.metrics
    ]


def as_text(table: Sequence[Sequence[str]]) -> str:
    """Columns aligned: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if 0 < at < 4 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def as_markdown(table: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = "|---|--:|--:|--:|---|---|"
    return "\n".join([line(table[0]), rule, *map(line, table[1:])])


def table(outcomes: Sequence[Outcome]) -> list[Sequence[str]]:
    return [HEADINGS, *(row.cells() for row in rows(outcomes))]


def caption(about: dict[str, Any]) -> str:
    """One line that says what the table was measured on."""
    machine = about["machine"]
    parts = [
        f"{machine['cpu']}, {machine['cores']} cores",
        f"Python {machine['python']}",
        f"RabbitMQ {about['versions'].get('rabbitmq', 'not measured')}",
        f"commit {machine['commit']}",
        f"{about['when'][:10]}",
    ]
    rounds = (
        "a quick run: a tenth of everything, rough figures"
        if about["quick"]
        else f"medians of {about['rounds']} rounds"
    )
    return f"{'; '.join(parts)}; {rounds}"


def keep(outcomes: Sequence[Outcome], about: dict[str, Any]) -> Path:
    """Write the result as JSON; its name says when and of which commit."""
    result = {
        **about,
        "table": table(outcomes),
        "metrics": {row.metric.name: _row_values(row) for row in rows(outcomes)},
        "measured": {outcome.scenario.name: outcome.rounds for outcome in outcomes},
        "failures": [failure for outcome in outcomes for failure in outcome.failures],
    }
    RESULTS.mkdir(exist_ok=True)
    when = about["when"].replace(":", "")
    path = RESULTS / f"{when[:17]}-{about['machine']['commit']}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return path


def last() -> dict[str, Any] | None:
    """The newest kept result."""
    kept = sorted(RESULTS.glob("*.json"))
    if not kept:
        return None
    result: dict[str, Any] = json.loads(kept[-1].read_text())
    return result


def _row_values(row: Row) -> dict[str, Any]:
    return {
        "title": row.metric.title,
        "unit": row.metric.unit,
        "warren": row.ours,
        "rabbitmq": row.theirs,
        "ahead": row.ahead,
        "goal": _goal_text(row.metric),
        "met": row.met,
        "disturbed": row.disturbed,
    }
