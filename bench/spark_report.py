"""What the two Spark benchmarks found: lines with their bars, for people and as JSON to keep."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import machine
from bench.pages import keep as keep_result
from bench.report import UNITS, as_text

BROKERS = {"warren": "warren", "rabbitmq": "RabbitMQ"}
HEADINGS = ("", *BROKERS.values(), "goal", "")


@dataclass(frozen=True)
class Bar:
    """What a figure must reach, on one broker or on each."""

    at_least: float | None = None
    at_most: float | None = None
    on: Sequence[str] = tuple(BROKERS)

    def missed(self, values: Mapping[str, float]) -> list[str] | None:
        """The brokers on which it is missed; None if it was measured on none."""
        judged = {name: values[name] for name in self.on if name in values}
        return [name for name, value in judged.items() if self._misses(value)] if judged else None

    def _misses(self, value: float) -> bool:
        if self.at_least is not None and value < self.at_least:
            return True
        return self.at_most is not None and value > self.at_most

    def text(self, unit: str) -> str:
        sign, value = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        where = "" if len(self.on) == len(BROKERS) else f" on {BROKERS[self.on[0]]}"
        return "" if value is None else f"{sign} {UNITS[unit](value)}{where}"


@dataclass(frozen=True)
class Line:
    """One figure on each broker."""

    title: str
    unit: str
    values: Mapping[str, float]
    bar: Bar = Bar()

    @property
    def met(self) -> bool | None:
        """None where nothing is asked, or nothing was measured."""
        missed = self.bar.missed(self.values)
        return None if missed is None or not self.bar.text(self.unit) else not missed

    def cells(self) -> tuple[str, ...]:
        show = UNITS[self.unit]
        shown = (show(self.values[name]) if name in self.values else "-" for name in BROKERS)
        missed = ", ".join(BROKERS[name] for name in self.bar.missed(self.values) or ())
        verdict = {True: "pass", False: f"FAIL: {missed}", None: ""}[self.met]
        return self.title, *shown, self.bar.text(self.unit), verdict


class Report:
    """Gathers what is measured, tells how far it is, and keeps the whole."""

    def __init__(self, name: str, **about: Any) -> None:
        self._name, self._began = name, time.monotonic()
        #: Of the brokers that were measured.
        self.versions: dict[str, str] = {}
        self._about = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.describe(),
            "load": [round(each, 2) for each in os.getloadavg()],  # before it begins
            **about,
        }

    def say(self, words: str) -> None:
        print(f"{time.monotonic() - self._began:5.0f} s  {words}", file=sys.stderr, flush=True)

    def end(self, lines: Sequence[Line], *, keep: bool) -> int:
        """Print the lines and keep them; 1 if a bar was missed."""
        print(as_text([HEADINGS, *(line.cells() for line in lines)]))
        if keep:
            self.say(f"kept in {self._keep(lines)}")
        return int(any(line.met is False for line in lines))

    def _keep(self, lines: Sequence[Line]) -> Path:
        when, commit = self._about["when"].replace(":", "")[:17], self._about["machine"]["commit"]
        kept = {
            **self._about,
            "versions": {name: each for name, each in self.versions.items() if each},
            "seconds": round(time.monotonic() - self._began),
            "table": [HEADINGS, *(line.cells() for line in lines)],
            "figures": [
                {
                    "title": line.title,
                    "unit": line.unit,
                    **line.values,
                    "goal": line.bar.text(line.unit),
                    "met": line.met,
                }
                for line in lines
            ],
        }
        return keep_result(self._name, f"{when}-{commit}", kept)
