"""What a run of the proof of exactly once has found, to keep: the README's table is made of it."""

from __future__ import annotations

import argparse
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import machine, pages, proof
from bench.brokers import broker_version

if TYPE_CHECKING:
    from tests.spark.exactly_once import Verdict

QUEUES = 5


class Record:
    """Begins with the run; what is said of the machine is of before it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._began = time.monotonic()
        self._configuration = proof.configuration(options.broker, cluster=options.cluster)
        self._about: dict[str, Any] = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.describe("tests"),
            "load": [round(each, 2) for each in os.getloadavg()],
            "configuration": self._configuration,
            "arguments": arguments(options),
            "seed": options.seed,
        }

    def note_version(self, broker: str, url: str) -> None:
        """Which RabbitMQ it is, if it is one."""
        if broker != "warren":
            self._about["versions"] = {"rabbitmq": broker_version(url)}

    def keep(self, verdict: Verdict) -> Path:
        about = self._about
        name = f"{about['when'].replace(':', '')[:17]}-{about['machine']['commit']}"
        found = {
            "seconds": round(time.monotonic() - self._began),
            "good": verdict.good,
            "kills": dict(verdict.kills),
            "messages": verdict.published,
            "in_table": verdict.in_table,
            "lost": verdict.lost,
            "doubled": verdict.doubled,
            "out_of_order": verdict.unordered,
            "altered": verdict.altered,
            "left": verdict.left,
            "in_doubt": verdict.in_doubt,
            "finished": verdict.finished,
            "rules": dict(verdict.used),
        }
        return pages.keep(proof.KIND, f"{name}-{self._configuration}", about | found)


def arguments(options: argparse.Namespace) -> list[str]:
    """The words that make the same choices again."""
    words: list[str] = []
    if options.broker != "warren":
        words += ["--broker", options.broker]
    if options.cluster:
        words.append("--cluster")
    if options.only:
        words += ["--only", options.only]
    if options.queues != QUEUES:
        words += ["--queues", str(options.queues)]
    return [*words, "--kills", str(options.kills), "--seed", str(options.seed)]
