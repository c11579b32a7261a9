"""Figures of benchmarks and proofs on a page are those of the kept results that it names."""

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
    kept = bench_pages.named(found)
    for path in kept:
        assert path.is_file(), f"{page} has figures of {path.name}, which is not kept"
    if kept:
        assert found[0] == bench_pages.place(found[1], kept)
    else:
        assert not bench_pages.newest(found[1]), "python -m bench.pages writes them"


def test_the_figures_of_each_benchmark_that_is_kept_are_shown() -> None:
    kept = {kind for kind in bench_pages.SHOW if bench_pages.newest(kind)}
    shown = {found[1] for _, found in PLACES}
    assert kept >= {"groups", "frameworks"}
    assert shown - {found[1] for _, found in PLACES if not found[2]} == kept
