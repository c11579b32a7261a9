"""Folders of a pipeline's file: nobody writes where somebody else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.pipeline.test_load import problem
from warren.pipeline.places import place, same

HERE = Path("/jobs")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("out", "/jobs/out"),
        ("/data/out", "/data/out"),
        ("//data/out", "/data/out"),
        ("file:/data/out", "file:///data/out"),
        ("file:///data/out", "file:///data/out"),
        ("file://localhost/data/out", "file:///data/out"),
        ("hdfs:/data", "hdfs:///data"),
        ("s3a://bucket", "s3a://bucket"),
        ("s3a://bucket/out/", "s3a://bucket/out/"),
        ("a:b", "/jobs/a:b"),
        ("./~x", "/jobs/~x"),
        ("~/out", os.path.expanduser("~/out")),
    ],
)
def test_a_folder_is_meant_from_the_file_unless_it_says_where(written: str, meant: str) -> None:
    assert place(written, HERE) == meant


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("file://tmp/x", "file://tmp/x is on no machine; write file:///tmp/x"),
        ("file:tmp/x", "write file:///tmp/x"),
        ("~nobody-has-this/x", "~nobody-has-this is nobody's home; for a folder of this name"),
    ],
)
def test_a_folder_that_nobody_finds_is_refused(written: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        place(written, HERE)
    assert f":2: table 't': path: {written.partition('/')[0]}" in problem(
        f"queues: a\ntables: {{t: {{schema: id INT, path: '{written}'}}}}"
    )


@pytest.mark.parametrize(
    "pair",
    [
        ("/tmp/x", "file:///tmp/x"),
        ("/tmp/x", "file:/tmp/x"),
        ("/tmp/x", "file://localhost/tmp/x"),
        ("/tmp/x", "FILE:///tmp/./y/../x/"),
        ("/tmp/x", "//tmp//x"),
        ("/data/x", "hdfs:///data/x"),
        ("s3a://bucket/x", "s3://Bucket/x/"),
        ("hdfs://name/x", "hdfs://NAME/y/../x"),
        ("s3a://bucket", "s3a://bucket/"),
    ],
)
def test_two_may_not_write_into_one_folder(pair: tuple[str, str]) -> None:
    one, two = (place(each, HERE) for each in pair)

    assert same([("a", one), ("b", two)]) == ("b", "a")


def test_a_link_is_the_folder_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "x")

    assert same([("a", str(tmp_path / "x")), ("b", str(tmp_path / "link"))])


def test_folders_that_differ_are_free() -> None:
    places = ("/x", "/x/y", "s3a://x/x", "s3a://y/x", "hdfs://x/x")

    assert same(zip("abcde", places, strict=True)) is None
