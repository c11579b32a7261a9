"""A group as its dispatcher sees it, in the words of ``GroupState``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from warren.groups.coordination.base import GroupState, MemberState, QueueState
from warren.groups.roster import QueueFacts, Seen


def portray(
    state: GroupState,
    *,
    members: Mapping[str, Seen],
    target: Mapping[str, str],
    queues: Mapping[str, QueueFacts],
    paused: Collection[str],
    drained: Collection[str],
) -> GroupState:
    """``state`` with its members and queues."""
    should: dict[str, list[str]] = {name: [] for name in members}
    for queue, member in target.items():
        should[member].append(queue)
    rates = {q: r for seen in members.values() for q, r in seen.report.rates.items()}
    problems = {q: why for seen in members.values() for q, why in seen.report.refused.items()}
    return GroupState(
        state.group,
        state.dispatcher,
        state.generation,
        tuple([_member(members[n], should[n], drained=n in drained) for n in sorted(members)]),
        tuple(
            [
                QueueState(
                    queue,
                    target.get(queue),
                    facts.messages,
                    facts.consumers,
                    rates.get(queue, 0.0),
                    queue in paused,
                    facts.problem or problems.get(queue) or _why_idle(target.get(queue), members),
                )
                for queue, facts in sorted(queues.items())
            ]
        ),
        state.rebalances,
    )


def _member(seen: Seen, should: list[str], *, drained: bool) -> MemberState:
    report = seen.report
    return MemberState(
        report.member,
        len(should),
        report.held if seen.present else tuple(sorted(should)),
        report.weight,
        report.static,
        drained,
        seen.present,
        report.session_s,
        sum(report.rates.values()),
        report.where,
    )


def _why_idle(member: str | None, members: Mapping[str, Seen]) -> str | None:
    if member is None:
        return "no member can take it: all are drained or of weight 0"
    if not members[member].present:
        return f"waits for {member} to come back"
    return None
