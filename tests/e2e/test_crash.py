"""The crash loop in its short form; ``make soak`` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.crash import CrashLoop


@pytest.mark.timeout(120)
def test_nothing_confirmed_is_lost_and_nothing_acknowledged_comes_back(tmp_path: Path) -> None:
    loop = CrashLoop(tmp_path / "data", seed=20)
    try:
        tally = loop.run(6)
    finally:
        loop.broker.kill()
    assert tally.clean, tally
    assert tally.confirmed > 1000
    assert tally.acknowledged > 100
