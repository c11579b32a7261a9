"""``warren demo`` with Spark, as a stranger runs it, and as a stranger ends it."""

from __future__ import annotations

import re
import signal
from collections import Counter

import pytest

from tests.e2e.demos import Marked, read_until, running
from tests.support.eventually import eventually
from warren.cli.scenes.shop_events import COUNTRIES, EXCHANGE, TABLES, event

N = r"([\d,]+)"
SHOP = re.compile(
    rf"(?m)^✓ reconciliation: {N} published = {N} in orders \+ {N} in payments \+ {N} in "
    rf"shipments \+ {N} quarantined; (\d+) lost, (\d+) doubled, (\d) worker killed: it adds up$"
)
PUBLISHER = re.compile(rf"(?m)^publisher (\w+), pid (\d+): events {N} to {N}$")
BATCH = re.compile(rf"(?m)^batch (\d+): {N} rows in \d+\.\d s \({N} rows/s\), backlog {N}$")
SUMMARY = re.compile(rf"(?m)^ ({'|'.join(COUNTRIES)}) +{N} +{N} +{N} +([\d,.]+) +([\d,.]+) *$")
RIGHT = (
    "✓ summary table, made by Spark of the other three: every number is right",
    rf"✓ published back to the exchange {EXCHANGE}\.results, with each batch: {N} messages"
    r"( \(\d+ of them twice, with the same id: counted once\))?, which come to the same",
    rf"✓ quarantine, with body and reason: {N} \w.+",
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
    published, *tables, lost, doubled, killed = map(number, found.groups())
    assert published == sum(tables)
    assert (lost, doubled, killed) == (0, 0, 1)
    assert min(published, *tables) > 0
    publishers_share_the_events(said, published)
    batches = BATCH.findall(said)
    assert sum(number(rows) for _, rows, _, _ in batches) == published, said
    assert min(number(rate) for *_, rate, _ in batches) > 0
    the_summary_is_what_was_published(said, published)
    for line in RIGHT:
        assert re.search(f"(?m)^{line}$", said), said
    assert "Traceback" not in said
    eventually(lambda: not marked.processes(), within_s=20)


def number(said: str) -> int:
    return int(said.replace(",", ""))


def publishers_share_the_events(said: str, published: int) -> None:
    """Processes of their own, each with the numbers behind the last one's."""
    found = PUBLISHER.findall(said)
    assert len({name for name, *_ in found}) == len({pid for _, pid, *_ in found}) == 3, said
    behind = 0
    for _, _, first, last in found:
        assert number(first) == behind
        behind = number(last) + 1
    assert behind == published


def the_summary_is_what_was_published(said: str, published: int) -> None:
    """By country: rows of each table, what the orders are worth, the same from the results."""
    due: dict[str, Counter[str]] = {country: Counter() for country in COUNTRIES}
    for made in map(event, range(published)):
        due[made.country].update({made.table: 1, "cents": made.cents})
    told = {country: numbers for country, *numbers in SUMMARY.findall(said)}
    assert told == {
        country: [
            *(f"{counts[table]:,}" for table in TABLES),
            *[f"{counts['cents'] / 100:,.2f}"] * 2,
        ]
        for country, counts in due.items()
    }


@pytest.mark.spark
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_of_the_shop_outlives_the_demo(marked: Marked, number: signal.Signals) -> None:
    with running(marked, "--fast") as demo:
        read_until(demo, "publisher partners")  # the group's workers are gone
        eventually(lambda: len(marked.processes()) >= 6, 60)  # demo, publishers, Spark, its JVM
        demo.send_signal(number)
        said = demo.communicate(timeout=30)[0]

    assert "Traceback" not in said
    eventually(lambda: not marked.processes(), within_s=60)
