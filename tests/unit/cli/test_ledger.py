"""``warren ledger`` where something is wrong: it says what, and goes on with the rest."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.unit.spark.ledger.test_ledger import segment
from warren.cli.main import main
from warren.spark.ledger.ledger import Ledger

NOWHERE = "amqp://guest:guest@127.0.0.1:1/"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Nine messages of a queue, in three segments."""
    ledger = Ledger.at(str(tmp_path / "ledger"))
    ledger.create()
    for start in (0, 3, 6):
        ledger.write(segment("q", start))
        ledger.settle("q", start)
    return ledger


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(command: str, *more: str) -> tuple[int, str, str]:
        code = main(["ledger", command, str(tmp_path / "ledger"), *more])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def file_of(ledger: Ledger, start: int) -> Path:
    return Path(ledger.place) / f"q@{start:020}.arrow"


def offsets(shown: str) -> list[int]:
    return [row["offset"] for row in json.loads(shown)]


# -- a file that can't be read -------------------------------------------------------------------
def a_folder(path: Path, _: pytest.MonkeyPatch) -> str:
    path.unlink()
    path.mkdir()
    return "Is a directory"


def a_broken_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    read = Path.read_bytes

    def refuse(each: Path) -> bytes:
        if each == path:
            raise OSError(5, "Input/output error")
        return read(each)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    return "Input/output error"


@pytest.mark.parametrize("spoil", [a_folder, a_broken_disk])
def test_a_segment_that_can_not_be_read_is_damaged_and_the_rest_is_shown(
    ledger: Ledger,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path, pytest.MonkeyPatch], str],
) -> None:
    path = file_of(ledger, 3)
    told = f"{path.name}: {spoil(path, monkeypatch)}"

    code, out, err = run("ls", "--json")
    assert code == 1
    assert [row["state"] for row in json.loads(out)] == ["settled", "damaged", "settled"]
    assert told in err

    code, out, err = run("verify")
    assert code == 1
    assert "2 segments, 6 messages, 0 in doubt, 1 damaged, 0 gaps" in out
    assert told in out

    code, out, err = run("show", "q", "--json")
    assert code == 1
    assert offsets(out) == [0, 1, 2, 6, 7, 8]
    assert told in err


# -- a hole --------------------------------------------------------------------------------------
def test_a_segment_that_is_missing_between_others_is_told(ledger: Ledger, run: Run) -> None:
    file_of(ledger, 3).unlink()
    told = "queue 'q': nothing from offset 3 to 6"

    code, out, _ = run("verify")
    assert code == 1
    assert "2 segments, 6 messages, 0 in doubt, 0 damaged, 1 gap\n" in out
    assert told in out

    code, out, err = run("show", "q", "--json")
    assert code == 1
    assert offsets(out) == [0, 1, 2, 6, 7, 8]
    assert told in err


def test_the_last_segment_that_only_its_mark_tells_of_is_told(ledger: Ledger, run: Run) -> None:
    path = file_of(ledger, 6)
    path.unlink()
    told = f"{path.name}: it is missing"

    code, out, _ = run("verify")
    assert code == 1
    assert "2 segments, 6 messages, 0 in doubt, 1 damaged, 0 gaps" in out
    assert told in out

    code, out, err = run("ls", "--json")
    assert code == 1
    assert [row["state"] for row in json.loads(out)] == ["settled", "settled", "damaged"]

    code, out, err = run("show", "q", "--json")
    assert code == 1
    assert offsets(out) == [0, 1, 2, 3, 4, 5]
    assert told in err


@pytest.mark.parametrize(
    ("asked", "is_told"),
    [
        (["--until", "3"], False),
        (["--until", "4"], True),
        (["--from", "5"], True),
        (["--from", "6"], False),
    ],
)
@pytest.mark.parametrize("missing", [True, False])
def test_what_is_wrong_outside_of_the_range_is_not_told(
    ledger: Ledger, run: Run, asked: list[str], is_told: bool, missing: bool
) -> None:
    if missing:
        file_of(ledger, 3).unlink()
    else:
        file_of(ledger, 3).write_bytes(b"")

    code, _, err = run("show", "q", *asked)

    assert (code, bool(err)) == (is_told, is_told)


def test_segments_that_overlap_are_told(ledger: Ledger, run: Run) -> None:
    ledger.write(segment("q", 7))

    code, out, _ = run("verify")

    assert code == 1
    assert "queue 'q': segments overlap from 7 to 9" in out


def test_what_was_forgotten_at_the_front_is_no_hole(ledger: Ledger, run: Run) -> None:
    ledger.prune({"q": 9}, older_than=float("inf"))

    code, out, _ = run("verify")

    assert code == 0
    assert "1 segment, 3 messages, 0 in doubt, 0 damaged, 0 gaps" in out


def test_replay_publishes_nothing_where_messages_are_missing(ledger: Ledger, run: Run) -> None:
    file_of(ledger, 3).unlink()

    code, _, err = run("replay", "q", "--uri", NOWHERE, "--yes")

    assert code == 2
    assert "nothing from offset 3 to 6" in err
    assert "nothing was published" in err


@pytest.mark.parametrize("asked", [["--incomplete"], ["--from", "6"]])
def test_replay_publishes_what_is_there_if_it_is_told_so(
    ledger: Ledger, run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file_of(ledger, 3).unlink()
    monkeypatch.setattr("warren.spark.ledger.replay.replay", lambda rows, *_: len(list(rows)))

    code, out, _ = run("replay", "q", "--uri", NOWHERE, "--yes", *asked)

    assert code == 0
    assert f"{6 if '--incomplete' in asked else 3} messages published" in out


# -- more than there is memory for ----------------------------------------------------------------
@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where each segment begins that was read."""
    starts: list[int] = []
    read = Ledger.read_stem

    def counted(ledger: Ledger, stem: str, start: int) -> object:
        starts.append(start)
        return read(ledger, stem, start)

    monkeypatch.setattr(Ledger, "read_stem", counted)
    return starts


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_show_prints_a_segment_before_it_reads_the_next(
    ledger: Ledger, run: Run, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    read, stdout, printed = Ledger.read_stem, StringIO(), []

    def watched(ledger: Ledger, stem: str, start: int) -> object:
        told = stdout.getvalue()
        printed.append(sum(str(offset) in told for offset in range(100, 109)))
        return read(ledger, stem, start)

    for start in (100, 103, 106):
        ledger.write(segment("q", start))
    monkeypatch.setattr("warren.cli.output._PART", 1)
    monkeypatch.setattr(Ledger, "read_stem", watched)
    monkeypatch.setattr(sys, "stdout", stdout)

    run("show", "q", "--from", "100", *more)

    assert printed == [0, 3, 6]


def test_replay_counts_first_and_then_reads_each_segment_when_it_is_published(
    ledger: Ledger, run: Run, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[tuple[int, int]] = []

    def replay(rows: Iterator[dict[str, Any]], *_: str) -> int:
        counted = list(reads)
        published.extend((row["offset"], len(reads) - len(counted)) for row in rows)
        assert counted == [0, 3, 6]
        return len(published)

    monkeypatch.setattr("warren.spark.ledger.replay.replay", replay)

    code, out, _ = run("replay", "q", "--uri", NOWHERE, "--yes", "--from", "2", "--until", "7")

    assert code == 0
    assert published == [(2, 1), (3, 2), (4, 2), (5, 2), (6, 3)]
    assert "5 messages published" in out


def test_replay_ends_at_a_segment_that_was_forgotten_since_it_was_counted(
    ledger: Ledger, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[int] = []

    def replay(rows: Iterator[dict[str, Any]], *_: str) -> int:
        ledger.prune({"q": 3}, older_than=float("inf"))
        published.extend(row["offset"] for row in rows)
        return len(published)

    monkeypatch.setattr("warren.spark.ledger.replay.replay", replay)

    code, out, err = run("replay", "q", "--uri", NOWHERE, "--yes")

    assert code == 2
    assert "forgotten the rows from offset 0 on meanwhile" in err
    assert (published, out) == ([], "")


# -- the ledger as a whole -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "shown"),
    [(["ls"], "settled"), (["show", "q", "--json"], '"offset": 8'), (["verify"], "9 messages")],
)
def test_segments_without_ledger_json_are_shown_and_it_is_missed(
    ledger: Ledger, run: Run, command: list[str], shown: str
) -> None:
    ledger.files.delete("ledger.json")

    code, out, err = run(*command)

    assert code == 1
    assert "ledger.json is missing" in out + err
    assert shown in out


@pytest.mark.parametrize("command", [["ls"], ["show", "q"], ["verify"]])
def test_a_ledger_json_that_is_damaged_ends_a_command(
    ledger: Ledger, run: Run, command: list[str]
) -> None:
    (Path(ledger.place) / "ledger.json").write_text("garbage")

    code, out, err = run(*command)

    assert (code, out) == (2, "")
    assert "ledger.json" in err


def test_a_path_that_is_a_file_is_told_in_words_for_who_reads(tmp_path: Path, run: Run) -> None:
    (tmp_path / "ledger").touch()

    code, _, err = run("ls")

    assert code == 2
    assert f"{tmp_path / 'ledger'} can't be read: Not a directory" in err
    assert "start the query" not in err


def test_a_place_that_can_not_be_listed_is_told_in_words_for_who_reads(
    ledger: Ledger, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> list[str]:
        raise OSError(110, "Connection timed out")

    monkeypatch.setattr("warren.spark.ledger.files.os.listdir", refuse)

    code, _, err = run("verify")

    assert code == 2
    assert "can't be read: Connection timed out" in err
    assert "acknowledged" not in err


# -- ranges --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--from", "-5"], "--from (argument): -5 is no offset"),
        (["--from", "5", "--until", "2"], "--until (argument): 2 is not behind 5"),
        (["--from", "5", "--until", "5"], "--until (argument): 5 is not behind 5"),
        (["--until", "-1"], "--until (argument): -1 is not behind 0"),
    ],
)
@pytest.mark.parametrize("command", [["show"], ["replay", "--uri", NOWHERE, "--yes"]])
def test_a_range_that_holds_nothing_is_refused(
    ledger: Ledger, run: Run, command: list[str], asked: list[str], told: str
) -> None:
    code, _, err = run(command[0], "q", *command[1:], *asked)

    assert code == 2
    assert told in err
