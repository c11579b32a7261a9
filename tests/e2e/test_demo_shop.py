"""``warren demo`` with Spark, as a stranger runs it, and as a stranger ends it."""

from __future__ import annotations

import re
import signal

import pytest

from tests.e2e.demos import Marked, read_until, running
from tests.support.eventually import eventually

SHOP = re.compile(
    r"reconciliation: (\d+) published = (\d+) in orders \+ (\d+) in payments \+ (\d+) in "
    r"shipments \+ (\d+) quarantined; (\d+) lost, (\d+) doubled, (\d) worker killed: it adds up"
)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(420)
def test_the_shop_adds_up_although_a_worker_is_killed(marked: Marked) -> None:
    with running(marked, "--fast") as demo:
        said = demo.communicate(timeout=400)[0]

    assert demo.returncode == 0, said
    found = SHOP.search(said)
    assert found is not None, said
    published, *tables, lost, doubled, killed = map(int, found.groups())
    assert published == sum(tables)
    assert (lost, doubled, killed) == (0, 0, 1)
    assert min(published, *tables) > 0
    assert "rows/s" in said
    assert "Traceback" not in said
    eventually(lambda: not marked.processes(), within_s=20)


@pytest.mark.spark
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_of_the_shop_outlives_the_demo(marked: Marked, number: signal.Signals) -> None:
    with running(marked, "--fast") as demo:
        read_until(demo, "1 ·")
        eventually(lambda: len(marked.processes()) >= 4, 60)  # demo, publisher, Spark and its JVM
        demo.send_signal(number)
        said = demo.communicate(timeout=30)[0]

    assert "Traceback" not in said
    eventually(lambda: not marked.processes(), within_s=60)
