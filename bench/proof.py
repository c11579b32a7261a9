"""Kept runs of the proof of exactly once (``tests.spark.exactly_once --keep``), as a table.

The table has a row for each configuration that has a kept run: the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

KIND = "exactly_once"
#: Configurations that the table shows, in its order, and what it calls them.
CONFIGURATIONS = {
    "warren": "warren",
    "warren-on-cluster": "warren, Spark on a cluster",
    "rabbitmq": "RabbitMQ, classic",
    "rabbitmq-cluster": "RabbitMQ, a cluster of three, quorum",
}
HEADINGS = ("Queues of", "at random moments", "messages", "lost", "doubled", "with")
RULE = ("---", "---", "--:", "--:", "--:", "---")

#: Kinds of faults (``tests.spark.exactly_once_faults``), by what the table says was done.
_DONE = {
    "killed": {
        "task": ["task"],
        "driver": ["driver"],
        "executor": ["executor"],
        "broker": ["broker"],
        "node": ["node"],
        "both at once": ["power"],
        "all connections": ["connection"],
    },
    "stopped for a while": {"task": ["zombie", "oversleep"], "connections": ["freeze"]},
    "disk full": {"": ["disk"]},
}


def configuration(broker: str, *, cluster: bool) -> str:
    """The name of a configuration: a broker, and whether Spark is on a cluster."""
    return f"{broker}-on-cluster" if cluster else broker


def table(results: Iterable[Mapping[str, Any]]) -> list[Sequence[str]]:
    return [HEADINGS, *map(_row, results)]


def _row(result: Mapping[str, Any]) -> Sequence[str]:
    name = CONFIGURATIONS[result["configuration"]] + ("" if result["good"] else ": FAILED")
    numbers = (f"{result[key]:,}" for key in ("messages", "lost", "doubled"))
    arguments = f"`{' '.join(result['arguments'])}`"
    return name, done(result["kills"]), *numbers, arguments


def done(kills: Mapping[str, int]) -> str:
    """``killed: task 2, driver 1; disk full 2``."""
    told = []
    for what, kinds in _DONE.items():
        counts = {word: sum(kills.get(each, 0) for each in names) for word, names in kinds.items()}
        words = ", ".join(f"{word} {count}".strip() for word, count in counts.items() if count)
        if words:
            told.append(f"{what} {words}" if "" in kinds else f"{what}: {words}")
    return "; ".join(told)
