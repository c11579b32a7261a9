"""Files that commands write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from warren.cli.definitions import write_file
from warren.errors import ConfigError


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o640)])
def test_a_private_file_is_for_its_owner(tmp_path: Path, private: bool, mode: int) -> None:
    mask = os.umask(0o027)
    try:
        write_file(str(tmp_path / "file"), "text", private=private)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_file(str(link), "new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")


@pytest.mark.parametrize("name", ["absent/file", "."])
def test_what_can_not_be_written_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="can't be written: "):
        write_file(str(tmp_path / name), "text")
