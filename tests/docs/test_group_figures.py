"""Figures of groups and frameworks on a page are those of the kept result that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import group_report
from tests.docs import pages

PLACES = [
    (page, found)
    for page in group_report.PAGES
    for found in group_report.PLACE.finditer(page.read_text())
]


@pytest.mark.parametrize(
    ("page", "found"), PLACES, ids=[f"{pages.name_of(page)}-{found[1]}" for page, found in PLACES]
)
def test_a_table_has_the_figures_of_a_kept_result(page: Path, found: re.Match[str]) -> None:
    kind, name = found[1], found[2]
    kept = group_report.RESULTS / kind / name
    assert kept.is_file(), f"{page} has figures of {name}, which is not kept"
    assert found[0] == group_report.place(kind, kept)


def test_the_figures_of_groups_and_of_frameworks_are_shown() -> None:
    assert {found[1] for _, found in PLACES} == set(group_report.SHOW)
