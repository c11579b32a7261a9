"""Runs a job of load in a process of its own and brings its numbers back."""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMEOUT_S = 600
ROOT = Path(__file__).resolve().parents[2]


class LoadFailed(Exception):
    """The load process ended without an answer."""


def run_load(job: Callable[..., dict[str, float]], **arguments: Any) -> dict[str, float]:
    """Call ``job(**arguments)``, a module-level function, in a new interpreter."""
    order = json.dumps([job.__module__, job.__name__, arguments])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bench.load"],
            input=order,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=ROOT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"{job.__name__} took more than {TIMEOUT_S} s") from None
    if done.returncode:
        raise LoadFailed(f"{job.__name__}: {(done.stderr.strip() or '?').splitlines()[-1]}")
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def main() -> None:
    module, name, arguments = json.load(sys.stdin)
    job = getattr(importlib.import_module(module), name)
    gc.disable()  # a collection in the middle of a loop would be the load's noise, not the broker's
    try:
        numbers = job(**arguments)
    except BlockingIOError:  # what a kernel timeout on a socket looks like
        sys.exit("the broker kept silent for too long")
    json.dump(numbers, sys.stdout)
