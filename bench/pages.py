"""Kept results of groups, frameworks, Spark and the proof of exactly once, as tables on pages.

    python -m bench.pages       writes the tables into README.md and the guide anew

A page has a place for a table: ``<!-- bench groups FILE -->`` to ``<!-- /bench groups -->``. It
names the kept result that its figures are from; the proof's names one for each of its rows. Where
nothing is kept, a place names none, and what stands there is left as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import proof
from bench.load.process import ROOT
from bench.report import RESULTS, as_text

PAGES = (
    ROOT / "README.md",
    ROOT / "docs/guide/groups.md",
    ROOT / "docs/guide/handlers.md",
    ROOT / "docs/guide/spark.md",
)
KINDS = f"groups|frameworks|source|sink|{proof.KIND}"
PLACE = re.compile(
    rf"<!-- bench ({KINDS}) ((?:\S+ )*)-->\n.*?<!-- /bench \1 -->",
    re.DOTALL,
)
#: A row of the source's results, and what a page calls it.
_DRAIN, _DRAIN_SHOWN = "drain without Spark", "a drain, queues to ledger and Arrow, without Spark"
NAMES = {"rabbitmq": "RabbitMQ", "warren": "warren"}
Result = dict[str, Any]
Table = list[Sequence[str]]


# -- kept results --------------------------------------------------------------------------------
def keep(kind: str, name: str, result: Result) -> Path:
    folder = RESULTS / kind
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def newest(kind: str) -> list[Path]:
    """The kept result that is to be shown; of the proof, that of each configuration."""
    names = [f"*-{each}" for each in proof.CONFIGURATIONS] if kind == proof.KIND else ["*"]
    found = (max((RESULTS / kind).glob(f"{name}.json"), default=None) for name in names)
    return [path for path in found if path is not None]


def named(found: re.Match[str]) -> list[Path]:
    """The kept results that a place names."""
    return [RESULTS / found[1] / name for name in found[2].split()]


def load(path: Path) -> Result:
    result: Result = json.loads(path.read_text())
    return result


# -- groups --------------------------------------------------------------------------------------
def groups_table(result: Result) -> Table:
    measured = [result["groups"][broker] for broker in NAMES]
    kills = measured[0]["failover"]["kills"]

    def row(words: str, goal: str, cell: Callable[[Result], str]) -> Sequence[str]:
        return (words, *(cell(each) for each in measured), goal)

    def ms(percentile: str) -> Callable[[Result], str]:
        return lambda each: f"{each['failover']['ms'][percentile]} ms"

    def joined(key: str, unit: str = "") -> Callable[[Result], str]:
        return lambda each: f"{each['join'][key]}{unit}"

    return [
        ("", *(f"on {name}" for name in NAMES.values()), "goal"),
        row("`kill -9` to the next holder's first message, p50", "", ms("p50")),
        row(f"the same, p99 ({kills} kills, 4 members, 200 queues)", "≤ 250 ms", ms("p99")),
        row("an 11th member joins, 1,000 queues: moved", "90 or 91", joined("moved")),
        row("joined to balanced", "≤ 5 s", joined("seconds_joined_to_balanced", " s")),
        row(
            "queues that stayed and were disturbed",
            "0",
            joined("queues_that_stayed_and_were_touched"),
        ),
    ]


def groups_markdown(path: Path) -> str:
    result = load(path)
    return f"{_markdown(groups_table(result))}\n\n{_caption([path], [result])}"


# -- frameworks ----------------------------------------------------------------------------------
def frameworks_table(result: Result) -> Table:
    """Medians of the rounds, and how many times faster warren is, on each broker."""
    brokers: dict[str, dict[str, list[float]]] = result["frameworks"]
    headings = ["messages/s through a handler that does nothing"]
    for broker in brokers:
        headings += [f"on {NAMES.get(broker, broker)}", "warren is"]
    lines: Table = [headings]
    for name, number in result["versions"].items():
        cells = [name if name == "warren" else f"{name} {number}"]
        for rates in brokers.values():
            cells += _rate_and_ratio(rates, name)
        lines.append(cells)
    return lines


def _rate_and_ratio(rates: dict[str, list[float]], name: str) -> list[str]:
    if name not in rates:
        return ["failed", ""]
    rate = median(rates[name])
    ratio = f"{median(rates['warren']) / rate:.1f} x" if "warren" in rates else ""
    return [f"{rate:,.0f}", "" if name == "warren" else ratio]


def frameworks_text(result: Result) -> str:
    return as_text(frameworks_table(result))


def frameworks_markdown(path: Path) -> str:
    result = load(path)
    return f"{_markdown(frameworks_table(result))}\n\n{_caption([path], [result])}"


# -- Spark ---------------------------------------------------------------------------------------
def spark_markdown(path: Path) -> str:
    """The figures of which something is asked, all shares, and what a drain reaches that has no
    Spark around it; the kept result has the rest."""
    result = load(path)
    headings, *lines = result["table"]
    wanted = (line for line in lines if line[3] or not line[1].endswith("/s") or _DRAIN in line[0])
    shown = [headings, *([line[0].replace(_DRAIN, _DRAIN_SHOWN), *line[1:]] for line in wanted)]
    return f"{_markdown(shown)}\n\n{_caption([path], [result])}"


# -- exactly once --------------------------------------------------------------------------------
def proof_markdown(*paths: Path) -> str:
    results = [load(path) for path in paths]
    lines = _markdown(proof.table(results), proof.RULE)
    return f"{lines}\n\n{_caption(paths, results)}"


# -- pages ---------------------------------------------------------------------------------------
SHOW: dict[str, Callable[..., str]] = {
    "groups": groups_markdown,
    "frameworks": frameworks_markdown,
    "source": spark_markdown,
    "sink": spark_markdown,
    proof.KIND: proof_markdown,
}


def place(kind: str, paths: Sequence[Path]) -> str:
    """A table with the marks around it."""
    names = " ".join(path.name for path in paths)
    return f"<!-- bench {kind} {names} -->\n{SHOW[kind](*paths)}\n<!-- /bench {kind} -->"


def with_newest(text: str) -> str:
    def fill(found: re.Match[str]) -> str:
        paths = newest(found[1])
        return place(found[1], paths) if paths else found[0]

    return PLACE.sub(fill, text)


def _markdown(table: Table, rule: Sequence[str] = ()) -> str:
    rule = rule or ["---", *("--:" for _ in table[0][1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in [table[0], rule, *table[1:]])


def _caption(paths: Sequence[Path], results: Sequence[Result]) -> str:
    """What they were measured on; where they differ in something, all that it was."""
    machines = [result["machine"] for result in results]
    parts = [
        _each("", (f"{about['cpu']}, {about['cores']} cores" for about in machines)),
        _each("Python ", (about["python"] for about in machines)),
        _each("RabbitMQ ", (result.get("versions", {}).get("rabbitmq", "") for result in results)),
        _each("commit ", (about["commit"] for about in machines)),
        _each("", (path.name[:10] for path in paths)),
    ]
    for about, result in zip(machines, results, strict=True):
        if result["load"][0] > 2 * about["cores"]:  # our own processes keep the cores busy, too
            parts.append(f"the machine had other work (load {result['load'][0]:.0f})")
    return "; ".join(part for part in parts if part)


def _each(name: str, values: Iterable[str]) -> str:
    known = [value for value in dict.fromkeys(values) if value]
    return name + ", ".join(known) if known else ""


def main() -> None:
    for page in PAGES:
        text = page.read_text()
        if (new := with_newest(text)) != text:
            page.write_text(new)
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
