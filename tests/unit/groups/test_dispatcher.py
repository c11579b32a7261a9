"""What the elected member decides, and when."""

from __future__ import annotations

from collections import Counter

from warren.groups.coordination.base import Assignment, Command, GroupState, Report, Stamp
from warren.groups.dispatcher import RESEND_S, Dispatcher, Policy
from warren.groups.roster import QueueFacts

QUEUES = tuple(f"q{number}" for number in range(6))


class Table:
    """A dispatcher, and members that do at once what they are told."""

    def __init__(self, *members: str | Report, queues: tuple[str, ...] = QUEUES, **policy) -> None:
        self.now = 100.0
        self.reports = {r.member: r for r in map(_report, members)}
        self.dispatcher = Dispatcher("g", "m1", Policy(**policy))
        self.dispatcher.start(0, list(self.reports.values()), None, queues=queues, now=self.now)

    def sent(self) -> dict[str, Assignment]:
        """What is sent now."""
        assignments = self.dispatcher.take_assignments(self.now)
        return {each.member: each for each in assignments}

    def obey(self) -> int:
        """Let members do as they are told, until nothing is sent any more; how many were sent."""
        count = 0
        while sent := self.sent():
            count += len(sent)
            for name, assignment in sent.items():
                self.say(name, held=assignment.queues, stamp=assignment.stamp)
        return count

    def say(self, name: str, **changes) -> None:
        before = self.reports.get(name, Report(name))
        self.reports[name] = before._replace(**changes)
        self.dispatcher.reported(self.reports[name], self.now)

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.dispatcher.run_due(self.now)

    @property
    def held(self) -> dict[str, tuple[str, ...]]:
        return {name: report.held for name, report in self.reports.items() if report.held}

    def gone(self, name: str, *, died: bool = True) -> None:
        self.reports.pop(name)
        self.dispatcher.left(name, self.now, died=died)


def _report(member: str | Report) -> Report:
    return member if isinstance(member, Report) else Report(member)


def test_all_queues_are_shared_out_at_the_start() -> None:
    table = Table("m1", "m2")
    table.obey()
    assert Counter(map(len, table.held.values())) == {3: 2}
    assert table.dispatcher.settled


def test_rule_4_a_queue_is_given_to_its_new_holder_only_when_the_old_one_let_go() -> None:
    table = Table("m1")
    table.obey()
    table.later(3)
    table.say("m2")
    sent = table.sent()
    assert len(sent["m1"].queues) == 3
    assert sent["m2"].queues == ()  # it is told of the group, and of no queue yet
    table.say("m1", stamp=sent["m1"].stamp)  # has read it, still drains all
    assert table.sent() == {}
    first = min(set(QUEUES) - set(sent["m1"].queues))
    table.say("m1", held=tuple(q for q in QUEUES if q != first))
    assert table.sent()["m2"].queues == (first,)


def test_rule_4_members_that_give_and_get_nothing_are_sent_nothing() -> None:
    table = Table("m1", "m2", "m3", queues=tuple(f"q{n}" for n in range(9)))
    table.obey()
    table.later(3)
    table.dispatcher.queues_are({f"q{n}": QueueFacts() for n in range(10)}, table.now)
    assert len(table.sent()) == 1


def test_rule_5_the_queues_of_a_dead_member_are_given_out_at_once() -> None:
    table = Table("m1", "m2", "m3")
    table.obey()
    kept = {name: held for name, held in table.held.items() if name != "m3"}
    table.gone("m3")  # no time has passed since the last rebalance
    sent = table.sent()
    assert {name: len(each.queues) for name, each in sent.items()} == {"m1": 3, "m2": 3}
    assert all(set(kept[name]) <= set(sent[name].queues) for name in kept)


def test_rule_7_the_first_rebalance_comes_at_once_and_a_burst_makes_one_more() -> None:
    table = Table("m1")
    table.obey()
    for number in range(2, 8):
        table.later(0.1)
        table.say(f"m{number}")
    assert len(table.dispatcher.rebalances) == 1
    deadline = table.dispatcher.next_deadline()
    assert deadline is not None
    assert deadline <= 103.0
    table.later(103.0 - table.now)
    assert len(table.dispatcher.rebalances) == 2
    assert "m2 joined; m3 joined" in table.dispatcher.rebalances[-1].reason


def test_rule_7_queues_that_a_pattern_finds_first_do_not_wait() -> None:
    table = Table("m1", queues=())
    table.obey()
    table.later(0.1)
    table.say("m2")
    table.dispatcher.queues_are(dict.fromkeys(QUEUES, QueueFacts()), table.now)
    table.obey()
    assert sorted(map(len, table.held.values())) == [3, 3]
    # From then on it is as ever.
    table.later(0.1)
    table.dispatcher.queues_are(dict.fromkeys([*QUEUES, "new"], QueueFacts()), table.now)
    table.obey()
    assert "new" not in {queue for held in table.held.values() for queue in held}
    table.later(3)
    table.obey()
    assert sum(map(len, table.held.values())) == 7


def test_rule_7_a_death_does_not_wait_and_takes_the_waiting_reasons_along() -> None:
    table = Table("m1", "m2")
    table.obey()
    table.later(0.5)
    table.say("m3")
    table.gone("m2")
    last = table.dispatcher.rebalances[-1]
    assert last.reason == "m3 joined; m2 died"
    assert last.at == table.now


def test_rule_8_a_queue_that_appears_or_goes_makes_a_rebalance() -> None:
    table = Table("m1", "m2")
    table.obey()
    table.later(3)
    table.dispatcher.queues_are(dict.fromkeys([*QUEUES, "new"], QueueFacts()), table.now)
    table.obey()
    assert sum(map(len, table.held.values())) == 7
    table.later(3)
    table.dispatcher.queues_are(dict.fromkeys(QUEUES[:2], QueueFacts()), table.now)
    table.obey()
    assert sorted(map(len, table.held.values())) == [1, 1]
    assert [each.reason for each in table.dispatcher.rebalances[1:]] == [
        "new appeared",
        "5 queues vanished",
    ]


def test_rule_8_a_name_that_was_never_there_is_not_said_to_have_vanished() -> None:
    table = Table("m1")
    table.obey()
    table.later(3)
    facts = dict.fromkeys(QUEUES[1:], QueueFacts()) | {"q0": QueueFacts(problem="no such queue")}
    table.dispatcher.queues_are(facts, table.now)
    del facts["q0"], facts["q1"]
    table.later(3)
    table.dispatcher.queues_are(facts | {"q2": QueueFacts(problem="it is a stream")}, table.now)
    assert [each.reason for each in table.dispatcher.rebalances[1:]] == [
        "q0 can't be worked on",
        "q1 vanished; q2 can't be worked on",
    ]


def test_rule_8_a_queue_that_nobody_may_have_is_shown_with_the_reason() -> None:
    table = Table("m1")
    facts = {**dict.fromkeys(QUEUES, QueueFacts()), "odd": QueueFacts(problem="it is a stream")}
    table.dispatcher.queues_are(facts, table.now)
    table.obey()
    assert "odd" not in table.held["m1"]
    state = {each.queue: each for each in table.dispatcher.state().queues}
    assert state["odd"].problem == "it is a stream"
    assert state["q0"].problem is None


def test_rule_8_a_refused_claim_is_shown_with_the_brokers_reason() -> None:
    table = Table("m1")
    table.obey()
    table.say("m1", held=QUEUES[1:], refused={"q0": "in exclusive use"})
    state = {each.queue: each for each in table.dispatcher.state().queues}
    assert state["q0"].problem == "in exclusive use"
    assert not table.dispatcher.settled


def test_rule_9_loads_are_looked_at_from_time_to_time_and_moved_if_it_is_worth_it() -> None:
    table = Table("m1", "m2", balance="load")
    table.obey()
    busy = table.held["m1"]
    table.say("m1", rates=dict.fromkeys(busy, 100.0))
    table.say("m2", rates=dict.fromkeys(table.held["m2"], 1.0))
    table.later(10)
    table.obey()
    assert table.dispatcher.rebalances[-1].reason == "loads differ"
    assert sum(1 for queue in busy if queue in table.held["m1"]) == 2
    count = len(table.dispatcher.rebalances)
    table.later(10)
    assert len(table.dispatcher.rebalances) == count


def test_rule_10_a_static_member_that_comes_back_in_time_gets_its_queues_and_nothing_moves() -> (
    None
):
    static = Report("m2", static=True, session_s=20.0)
    table = Table("m1", static)
    table.obey()
    before = dict(table.held)
    table.gone("m2")
    assert table.sent() == {}
    table.later(19)
    assert table.sent() == {}
    table.reports["m2"] = static
    table.dispatcher.reported(static, table.now)
    table.obey()
    assert table.held == before
    assert len(table.dispatcher.rebalances) == 1


def test_rule_10_a_static_member_that_stays_away_loses_its_queues() -> None:
    table = Table("m1", Report("m2", static=True, session_s=20.0))
    table.obey()
    table.gone("m2", died=False)
    assert table.dispatcher.next_deadline() == 120.0
    table.later(20)
    table.obey()
    assert len(table.held["m1"]) == 6


def _one_is_away() -> Table:
    table = Table("m1", "m2", Report("m3", static=True, session_s=30.0))
    table.obey()
    table.gone("m3")
    table.later(5)
    return table


def test_rule_10_a_member_that_is_away_gets_nothing_of_one_that_dies() -> None:
    table = _one_is_away()
    kept = set(QUEUES) - set(table.held["m1"]) - set(table.held["m2"])
    table.gone("m2")
    table.obey()
    assert set(table.held["m1"]) == set(QUEUES) - kept
    table.later(5)
    table.say("m3", static=True, session_s=30.0)
    table.obey()
    assert table.dispatcher.rebalances[-1].reason == "m3 is back"
    assert sorted(map(len, table.held.values())) == [3, 3]
    assert kept < set(table.held["m3"])


def test_rule_10_a_queue_that_appears_is_not_given_to_a_member_that_is_away() -> None:
    table = _one_is_away()
    facts = dict.fromkeys([*QUEUES, "new", "newer", "newest"], QueueFacts())
    table.dispatcher.queues_are(facts, table.now)
    table.obey()
    held = {queue for queues in table.held.values() for queue in queues}
    assert {"new", "newer", "newest"} < held


def test_rule_10_a_new_dispatcher_gives_nothing_to_a_member_that_is_away() -> None:
    table = _one_is_away()
    state = table.dispatcher.state()
    kept = {each.queue for each in state.queues if each.member == "m3"}
    next_one = Dispatcher("g", "m1", Policy())
    reports = [table.reports["m1"]]  # the one before has died
    next_one.start(state.generation, reports, state, queues=QUEUES, now=table.now)
    (assignment,) = next_one.take_assignments(table.now)
    assert set(assignment.queues) == set(QUEUES) - kept


def test_rule_10_by_load_a_member_that_is_away_gets_nothing_either() -> None:
    table = Table("m1", "m2", Report("m3", static=True, session_s=30.0), balance="load")
    table.obey()
    table.gone("m3")
    before = set(table.held["m1"]) | set(table.held["m2"])
    table.gone("m2")
    table.obey()
    assert set(table.held["m1"]) == before


def test_rule_10_a_member_that_is_drained_while_it_is_away_is_not_waited_for() -> None:
    table = _one_is_away()
    table.dispatcher.commanded(Command("drain", member="m3"), table.now)
    table.obey()
    assert sorted(map(len, table.held.values())) == [3, 3]


def test_a_queue_is_not_moved_to_a_member_that_is_away() -> None:
    table = _one_is_away()
    queue = table.held["m1"][0]
    table.dispatcher.commanded(Command("move", member="m3", queue=queue), table.now)
    assert table.sent() == {}


def test_rule_10_a_drained_member_is_emptied_and_gets_nothing_until_it_is_undrained() -> None:
    table = Table("m1", "m2")
    table.obey()
    table.dispatcher.commanded(Command("drain", member="m2"), table.now)
    table.obey()
    assert table.held.keys() == {"m1"}
    table.dispatcher.commanded(Command("undrain", member="m2"), table.now)
    table.obey()
    assert sorted(map(len, table.held.values())) == [3, 3]


def test_rule_10_a_paused_queue_is_worked_on_by_nobody_and_no_other_moves() -> None:
    table = Table("m1", "m2")
    table.obey()
    before = dict(table.held)
    table.dispatcher.commanded(Command("pause", queue="q0"), table.now)
    table.obey()
    assert table.held == {
        name: tuple(q for q in held if q != "q0") for name, held in before.items()
    }
    table.dispatcher.commanded(Command("resume", queue="q0"), table.now)
    table.obey()
    assert table.held == before
    assert len(table.dispatcher.rebalances) == 1


def test_rule_4_a_member_that_leaves_slowly_holds_up_only_what_it_still_works_on() -> None:
    table = Table("m1", "m2")
    table.obey()
    slow, *free = table.held["m2"]
    table.say("m2", weight=0.0)  # leaves
    sent = table.sent()
    assert sent["m2"].queues == ()
    table.say("m2", held=(slow,), stamp=sent["m2"].stamp)
    assert set(table.sent()["m1"].queues) == {*table.held["m1"], *free}
    table.say("m2", held=())
    assert set(table.sent()["m1"].queues) == set(QUEUES)


def test_rule_10_weights_decide_how_many_queues_a_member_gets() -> None:
    table = Table(Report("m1", weight=2.0), "m2")
    table.obey()
    assert {name: len(held) for name, held in table.held.items()} == {"m1": 4, "m2": 2}


def test_a_moved_queue_goes_where_it_was_sent_and_the_balance_is_kept() -> None:
    table = Table("m1", "m2")
    table.obey()
    queue = table.held["m1"][0]
    table.dispatcher.commanded(Command("move", member="m2", queue=queue), table.now)
    table.obey()
    assert queue in table.held["m2"]
    assert sorted(map(len, table.held.values())) == [3, 3]
    assert table.dispatcher.rebalances[-1].moved == 2


def test_a_moved_queue_goes_where_it_was_sent_by_load_too() -> None:
    one = Report("m1", held=("a", "c"), rates={"a": 40.0, "c": 20.0})
    other = Report("m2", held=("b",), rates={"b": 60.0})
    table = Table(one, other, queues=("a", "b", "c"), balance="load")
    table.obey()
    assert table.held == {"m1": ("a", "c"), "m2": ("b",)}
    table.dispatcher.commanded(Command("move", member="m2", queue="a"), table.now)
    table.obey()
    assert table.held == {"m1": ("b",), "m2": ("a", "c")}
    table.later(10)
    table.obey()
    assert table.held == {"m1": ("b",), "m2": ("a", "c")}


def test_an_assignment_that_was_not_taken_up_is_sent_again() -> None:
    table = Table("m1")
    first = table.sent()["m1"]
    assert table.sent() == {}
    table.later(RESEND_S)
    again = table.sent()["m1"]
    assert again.queues == first.queues
    assert again.stamp > first.stamp
    table.say("m1", held=again.queues, stamp=again.stamp)
    table.later(RESEND_S)
    assert table.sent() == {}


def test_rule_6_a_new_dispatcher_begins_where_the_one_before_stopped() -> None:
    table = Table("m1", "m2", Report("m3", static=True, session_s=20.0))
    table.dispatcher.commanded(Command("pause", queue="q0"), table.now)
    table.dispatcher.commanded(Command("drain", member="m2"), table.now)
    table.obey()
    before, state = dict(table.held), table.dispatcher.state()
    next_one = Dispatcher("g", "m2", Policy())
    reports = [table.reports["m2"], table.reports["m1"]]
    next_one.start(state.generation, reports, state, queues=QUEUES, now=0.0)
    assert next_one.take_assignments(0.0) == [] or all(
        each.queues == before.get(each.member, ()) for each in next_one.take_assignments(0.0)
    )
    after = next_one.state()
    assert {each.member for each in after.members if each.drained} == {"m2"}
    assert {each.member for each in after.members if not each.present} == {"m3"}
    assert {each.queue for each in after.queues if each.paused} == {"q0"}
    assert {q.queue: q.member for q in after.queues} == {q.queue: q.member for q in state.queues}
    assert next_one.rebalances[-1].moved == 0


def test_rule_6_a_new_dispatcher_gives_no_queue_out_that_the_one_before_found_unfit() -> None:
    table = Table("m1", "m2")
    facts = dict.fromkeys(QUEUES, QueueFacts()) | {"q0": QueueFacts(problem="two may consume")}
    table.dispatcher.queues_are(facts, table.now)
    table.later(3)
    table.obey()
    table.say("m1", refused={"q1": "in use"})  # by somebody who is just going: no reason to wait
    next_one = Dispatcher("g", "m2", Policy())
    next_one.start(0, [table.reports["m2"]], table.dispatcher.state(), queues=QUEUES, now=0.0)
    (assignment,) = next_one.take_assignments(0.0)
    assert set(assignment.queues) == set(QUEUES) - {"q0"}
    assert next_one.state().queues[0].problem == "two may consume"
    next_one.queues_are(dict.fromkeys(QUEUES, QueueFacts()), 0.1)
    (assignment,) = next_one.take_assignments(0.1)
    assert set(assignment.queues) == set(QUEUES)


def test_rule_6_generations_go_on_growing_under_a_new_dispatcher() -> None:
    reports = [Report("m1", stamp=Stamp(41, 3), held=QUEUES)]
    dispatcher = Dispatcher("g", "m1")
    dispatcher.start(12, reports, GroupState("g", generation=30), queues=QUEUES, now=0.0)
    assert all(each.stamp.generation > 41 for each in dispatcher.take_assignments(0.0))


def test_seed_bug_a_queue_is_never_given_to_two_while_another_has_none() -> None:
    """The seed had queue.2 with two consumers and queue.6 with none."""
    table = Table("m1", "m2", queues=tuple(f"queue.{n}" for n in range(1, 9)))
    table.obey()
    for number in range(3, 7):
        table.later(3)
        table.say(f"m{number}")
        table.obey()
        held = Counter(queue for queues in table.held.values() for queue in queues)
        assert held == {f"queue.{n}": 1 for n in range(1, 9)}


def test_seed_bug_no_queue_rest_more_members_than_queues_is_not_an_error() -> None:
    table = Table("m1", "m2", "m3", queues=("only",))
    table.obey()
    assert list(table.held.values()) == [("only",)]
    assert table.dispatcher.settled
