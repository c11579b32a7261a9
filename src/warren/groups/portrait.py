"""A group as its dispatcher sees it, in the words of ``GroupState``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from warren.groups.coordination.base import MemberState, QueueState
from warren.groups.roster import QueueFacts, Seen


def portray_members(
    members: Mapping[str, Seen], target: Mapping[str, str], drained: Collection[str]
) -> tuple[MemberState, ...]:
    rows = []
    quota = dict.fromkeys(members, 0)
    for member in target.values():
        quota[member] += 1
    for name in sorted(members):
        report, present = members[name].report, members[name].present
        rows.append(
            MemberState(
                name,
                quota[name],
                report.held if present else tuple(sorted(q for q in target if target[q] == name)),
                report.weight,
                report.static,
                name in drained,
                present,
                report.session_s,
                sum(report.rates.values()),
                report.where,
            )
        )
    return tuple(rows)


def portray_queues(
    queues: Mapping[str, QueueFacts],
    members: Mapping[str, Seen],
    target: Mapping[str, str],
    paused: Collection[str],
) -> tuple[QueueState, ...]:
    rates: dict[str, float] = {}
    problems: dict[str, str] = {}
    idle: dict[str | None, str] = {
        None: "no member can take it: all are drained, away or of weight 0"
    }
    for name, seen in members.items():
        rates.update(seen.report.rates)
        problems.update(seen.report.refused)
        if not seen.present:
            idle[name] = f"waits for {name} to come back"
    rows = []
    for queue in sorted(queues):
        facts, member = queues[queue], target.get(queue)
        rows.append(
            QueueState(
                queue,
                member,
                facts.messages,
                facts.consumers,
                rates.get(queue, 0.0),
                queue in paused,
                facts.problem or problems.get(queue) or idle.get(member),
                facts.oldest,
                facts.problem is not None,
            )
        )
    return tuple(rows)
