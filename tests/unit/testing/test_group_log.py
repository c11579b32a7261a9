"""The checker of groups finds nothing in histories that are right, and every planted fault."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.testing.group_log import (
    Fault,
    GroupFaults,
    GroupLog,
    Line,
    Verdict,
    check_group,
    read_group_log,
)


class History:
    """A group that does everything right, with crashes, stops, and cuts; all drawn by a seed."""

    def __init__(self, seed: int, *, members: int = 3, queues: int = 2, messages: int = 12) -> None:
        self.random = random.Random(seed)
        self.now = 100.0
        self.lines: list[Line] = []
        self.members = [f"m{number}" for number in range(members)]
        for number in range(queues):
            self.work(f"q{number}", messages)
        self.lines.sort(key=lambda line: line.at)

    def tick(self) -> float:
        self.now += self.random.choice([0.001, 0.01, 0.3])
        return self.now

    def work(self, queue: str, messages: int) -> None:
        for number in range(messages):
            self.lines.append(Line(self.tick(), "sent", "", queue, number))
            self.lines.append(Line(self.tick(), "confirmed", "", queue, number))
        owner, next_one, seen, since = self.random.choice(self.members), 0, -1, 0
        while next_one < messages:
            redelivered = next_one <= seen
            self.lines.append(Line(self.tick(), "begin", owner, queue, next_one, redelivered))
            seen = max(seen, next_one)
            what = self.random.random()
            if what < 0.15:  # dies at work: the message comes again
                owner, since = self.disturb(owner), next_one
                continue
            self.lines.append(Line(self.tick(), "end", owner, queue, next_one))
            if what < 0.3:  # dies before the ack arrived, and may take more with it
                next_one = since = self.random.randint(max(since, next_one - 2), next_one)
                owner = self.disturb(owner)
                continue
            next_one += 1
            if what < 0.4:  # a handover
                owner, since = self.random.choice(self.members), next_one

    def disturb(self, owner: str) -> str:
        how = self.random.choice(["killed", "stopped", "cut"])
        hit = self.random.choice([owner, ""])
        self.lines.append(Line(self.tick(), how, hit))  # type: ignore[arg-type]
        self.lines.append(Line(self.tick(), "over", hit))
        return self.random.choice([each for each in self.members if each != owner])


histories = st.integers(0, 1_000_000).map(History)


def kinds(lines: list[Line]) -> set[str]:
    lines.sort(key=lambda line: line.at)
    return {fault.kind for fault in check_group(lines).faults}


@given(history=histories)
def test_a_history_that_is_right_has_no_faults(history: History) -> None:
    verdict = check_group(history.lines)
    verdict.raise_for_faults()
    assert (verdict.messages, verdict.handled) == (24, 24)


def pick(history: History, phase: str, pool: st.DataObject) -> int:
    found = [at for at, line in enumerate(history.lines) if line.phase == phase]
    return pool.draw(st.sampled_from(found))


# -- planted faults ------------------------------------------------------------------------------
@given(history=histories, pool=st.data())
def test_a_message_that_nobody_ended_is_lost(history: History, pool: st.DataObject) -> None:
    lost = history.lines[pick(history, "confirmed", pool)]
    kept = [
        line
        for line in history.lines
        if (line.queue, line.number) != (lost.queue, lost.number)
        or line.phase in ("sent", "confirmed")
    ]
    assert "lost" in kinds(kept)


@given(history=histories, pool=st.data())
def test_an_end_that_is_missing_is_told(history: History, pool: st.DataObject) -> None:
    gone = history.lines[pick(history, "end", pool)]
    kept = [
        line
        for line in history.lines
        if line.phase != "end" or (line.queue, line.number) != (gone.queue, gone.number)
    ]
    assert "lost" in kinds(kept)


@given(history=histories, pool=st.data())
def test_a_second_member_at_the_same_queue_is_told(history: History, pool: st.DataObject) -> None:
    at = pick(history, "end", pool)
    end = history.lines[at]
    begin = max(
        line.at
        for line in history.lines[:at]
        if (line.phase, line.member, line.queue, line.number)
        == ("begin", end.member, end.queue, end.number)
    )
    middle = (begin + end.at) / 2
    intruder = [
        Line(middle, "begin", "intruder", end.queue, end.number, True),
        Line(middle, "end", "intruder", end.queue, end.number),
    ]
    assert "together" in kinds([*history.lines, *intruder])


@given(history=histories, pool=st.data())
def test_a_message_that_overtakes_is_told(history: History, pool: st.DataObject) -> None:
    fresh = [line for line in history.lines if line.phase == "begin" and not line.redelivered]
    first = pool.draw(st.sampled_from(fresh))
    later = 1 + max(line.number for line in history.lines if line.queue == first.queue)
    # A later message, on its own and at once, in the pause before another one.
    moment = first.at - 0.0004
    planted = [
        Line(100.0, "sent", "", first.queue, later),
        Line(100.0, "confirmed", "", first.queue, later),
        Line(moment, "begin", first.member, first.queue, later),
        Line(moment + 0.0001, "end", first.member, first.queue, later),
    ]
    assert "order" in kinds([*history.lines, *planted])


@given(history=histories, pool=st.data())
def test_a_message_again_without_its_flag_is_told(history: History, pool: st.DataObject) -> None:
    again = [at for at, line in enumerate(history.lines) if line.redelivered]
    if not again:
        return
    at = pool.draw(st.sampled_from(again))
    lines = list(history.lines)
    lines[at] = replace(lines[at], redelivered=False)
    assert "twice" in kinds(lines)


@given(history=histories)
def test_a_message_again_for_no_reason_is_told(history: History) -> None:
    last = max(history.lines, key=lambda line: line.at)
    again = [
        Line(last.at + 1, "begin", last.member, last.queue, last.number, True),
        Line(last.at + 2, "end", last.member, last.queue, last.number),
    ]
    assert kinds([*history.lines, *again]) == {"twice"}


@given(history=histories)
def test_a_message_that_nobody_published_is_told(history: History) -> None:
    last = max(line.at for line in history.lines)
    stranger = [
        Line(last + 1, "begin", "m0", "q0", 99),
        Line(last + 2, "end", "m0", "q0", 99),
    ]
    assert kinds([*history.lines, *stranger]) == {"stranger"}


# -- what is no fault ----------------------------------------------------------------------------
def lines_of(*texts: str) -> list[Line]:
    """``begin a q 1 r``: one line a second."""
    lines = []
    for at, text in enumerate(texts):
        phase, *rest = text.split()
        member = rest[0] if rest and rest[0] != "-" else ""
        queue = rest[1] if len(rest) > 1 else ""
        number = int(rest[2]) if len(rest) > 2 else -1
        lines.append(Line(float(at), phase, member, queue, number, len(rest) > 3))  # type: ignore[arg-type]
    return lines


def judged(*texts: str) -> Verdict:
    return check_group(lines_of("sent - q 1", "confirmed - q 1", *texts))


def test_what_a_stopped_member_ends_when_it_goes_on_is_no_fault_of_the_group() -> None:
    told = ("begin a q 1", "stopped a", "begin b q 1 r", "continued a", "end a q 1", "end b q 1")
    verdict = judged(*told)
    assert verdict.faults == ()
    assert verdict.doubled == 1


def test_what_a_stopped_member_begins_when_it_goes_on_is_a_fault() -> None:
    told = ("begin a q 1", "stopped a", "begin b q 1 r", "continued a", "end a q 1")
    verdict = judged("sent - q 2", "confirmed - q 2", *told, "begin a q 2", "end a q 2")
    assert verdict.count("together") == 0  # nobody saw b end
    verdict = judged(
        "sent - q 2", "confirmed - q 2", *told, "begin a q 2", "end a q 2", "end b q 1"
    )
    assert verdict.count("together") == 1


def test_what_is_begun_between_the_word_and_the_deed_is_no_fault() -> None:
    """The line comes before the kill, and the member may begin something in between."""
    told = ("killed a", "begin a q 1", "over a", "begin b q 1 r", "end b q 1")
    assert judged(*told).faults == ()


def test_who_is_being_cut_off_can_not_know_it() -> None:
    told = ("begin a q 1", "cut a", "begin b q 1 r", "end a q 1", "begin a q 2", "end b q 1")
    verdict = judged("sent - q 2", *told, "over a", "end a q 2")
    assert verdict.count("together") == 0


def test_who_was_cut_off_and_has_noticed_must_know_it() -> None:
    told = ("begin a q 1", "cut a", "over a", "begin b q 1 r", "end a q 1")
    verdict = judged("sent - q 2", *told, "begin a q 2", "end b q 1", "end a q 2")
    assert verdict.count("together") == 1


def test_a_message_that_was_never_confirmed_may_be_missing() -> None:
    assert judged("sent - q 2", "begin a q 1", "end a q 1").faults == ()


def test_a_message_that_was_never_confirmed_keeps_its_place() -> None:
    verdict = judged(
        *("sent - q 2", "sent - q 3", "confirmed - q 3", "begin a q 1", "end a q 1"),
        *("begin a q 3", "end a q 3", "begin a q 2", "end a q 2"),
    )
    assert [fault.kind for fault in verdict.faults] == ["order"]


def test_the_longest_gap_is_that_of_a_message_at_its_turn() -> None:
    told = ("begin a q 1", "killed a", "cut b", "cut b", "begin b q 1 r", "end b q 1")
    verdict = judged(*told)
    assert (verdict.longest_gap_s, verdict.handovers, verdict.unfinished) == (4.0, 1, 1)


# -- files ---------------------------------------------------------------------------------------
def test_what_was_written_is_read_and_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    with GroupLog(tmp_path / "publisher.log") as publisher:
        publisher.sent("q", [0, 2])
        publisher.confirmed("q", [0])
    with GroupLog(tmp_path / "w1.log", "w1") as log:
        with log.working("q", 0, redelivered=False):
            pass
        with pytest.raises(ValueError), log.working("q", 2, redelivered=True):
            raise ValueError
        with log.disturbing("killed", "w1"):
            pass
    with open(tmp_path / "w1.log", "ab") as file:
        file.write(b'[1.0,"end","w1","q",')
    told = [(line.phase, line.member, line.number) for line in read_group_log(tmp_path)]
    assert told == [
        *(("sent", "", 0), ("sent", "", 2), ("confirmed", "", 0)),
        *(("begin", "w1", 0), ("end", "w1", 0), ("begin", "w1", 2), ("killed", "w1", -1)),
        ("over", "w1", -1),
    ]


def test_faults_are_raised_with_their_place() -> None:
    with pytest.raises(GroupFaults, match="lost: q #1: confirmed, and never worked on to the end"):
        judged().raise_for_faults()


def test_many_faults_are_counted_not_all_shown() -> None:
    faults = [Fault("lost", "q", number, "gone") for number in range(25)]
    assert str(GroupFaults(faults)).endswith("\nand 5 more")
