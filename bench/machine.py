"""What a result was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from bench.load.process import ROOT


def describe(*more: str) -> dict[str, str | int]:
    """``more``: folders that the result depends on, too."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit(*more),
    }


def commit(*more: str) -> str:
    """The short commit, with ``-dirty`` when the sources differ from it; kept results are none."""
    head = _git("rev-parse", "--short", "HEAD")
    if not head:
        return "uncommitted"
    sources = ("src", "bench", *more, ":!bench/results")
    return f"{head}-dirty" if _git("status", "--porcelain", "--", *sources) else head


def _git(*command: str) -> str:
    done = subprocess.run(
        ["git", *command], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
