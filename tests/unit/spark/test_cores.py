"""How many tasks a batch has, where nobody says."""

from __future__ import annotations

import os

import pytest

from warren.spark.cores import cores_told, default_tasks


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.spark.cores.machine_cores", lambda: 64)


@pytest.mark.parametrize(
    ("master", "tasks"),
    [
        ("local", 1),
        ("local[2]", 2),
        ("local[3, 2]", 3),
        ("local[0]", 1),
        ("local[*]", 64),
        ("local-cluster[2,4,1024]", 64),
        ("spark://far:7077", 64),
    ],
)
def test_what_is_started_on_so_many_cores_has_so_many_tasks(master: str, tasks: int) -> None:
    before = dict(os.environ)
    with cores_told(master):
        assert default_tasks() == tasks
    assert dict(os.environ) == before
    assert default_tasks() == 64


def test_one_that_is_started_inside_of_another_knows_its_own() -> None:
    with cores_told("local[2]"):
        with cores_told("local[3]"):
            assert default_tasks() == 3
        assert default_tasks() == 2
