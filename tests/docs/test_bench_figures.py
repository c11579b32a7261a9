"""Figures of groups, frameworks and Spark on a page are those of the kept result that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import pages as bench_pages
from tests.docs import pages

PLACES = [
    (page, found)
    for page in bench_pages.PAGES
    for found in bench_pages.PLACE.finditer(page.read_text())
]


@pytest.mark.parametrize(
    ("page", "found"), PLACES, ids=[f"{pages.name_of(page)}-{found[1]}" for page, found in PLACES]
)
def test_a_table_has_the_figures_of_a_kept_result(page: Path, found: re.Match[str]) -> None:
    kind, name = found[1], found[2]
    kept = bench_pages.RESULTS / kind / name
    assert kept.is_file(), f"{page} has figures of {name}, which is not kept"
    assert found[0] == bench_pages.place(kind, kept)


def test_the_figures_of_each_benchmark_that_is_kept_are_shown() -> None:
    kept = {kind for kind in bench_pages.SHOW if bench_pages.newest(kind) is not None}
    assert {found[1] for _, found in PLACES} == kept >= {"groups", "frameworks"}
