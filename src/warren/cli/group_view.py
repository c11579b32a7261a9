"""A consumer group as people see it: the same whether it meets at the broker or in etcd."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from warren.cli import output
from warren.cli.output import Column, Row
from warren.groups.coordination.base import GroupState

#: How many rebalances of the past ``describe`` shows; --json has all that are known.
REBALANCES = 5

GROUPS = (
    Column("group", "group"),
    Column("dispatcher", "dispatcher", spare=4),
    Column("members", "members", "number"),
    Column("queues", "queues", "number"),
    Column("idle", "idle", "number", spare=1),
    Column("backlog", "backlog", "number"),
    Column("rate", "rate", "rate", spare=2),
    Column("generation", "generation", "number", spare=5),
    Column("last_rebalance", "last rebalance", spare=6),
)
MEMBERS = (
    Column("member", "member"),
    Column("quota", "quota", "number"),
    Column("held", "holds", "number"),
    Column("backlog", "backlog", "number"),
    Column("rate", "rate", "rate", spare=2),
    Column("weight", "weight", "number", spare=5),
    Column("is", "is", spare=1),
    Column("where", "where", spare=6),
)
QUEUES = (
    Column("queue", "queue"),
    Column("member", "member"),
    Column("messages", "backlog", "number"),
    Column("lag_s", "lag s", "number", spare=2),
    Column("rate", "rate", "rate", spare=2),
    Column("consumers", "consumers", "number", spare=5),
    Column("is", "is"),
)
PAST = (
    Column("at_ms", "at", "time"),
    Column("generation", "generation", "number", spare=5),
    Column("moved", "moved", "number"),
    Column("reason", "reason"),
)


def summary(state: GroupState) -> dict[str, Any]:
    """A group in one row."""
    idle = [queue for queue in state.queues if queue.problem or queue.member is None]
    last = state.rebalances[-1] if state.rebalances else None
    return {
        "group": state.group,
        "dispatcher": state.dispatcher,
        "members": sum(member.present for member in state.members),
        "queues": len(state.queues),
        "idle": len(idle),
        "backlog": _sum(queue.messages for queue in state.queues),
        "rate": round(sum(member.rate for member in state.members), 1),
        "generation": state.generation,
        "last_rebalance": last.reason if last else None,
    }


def members_of(state: GroupState) -> list[Row]:
    backlog: dict[str, list[int | None]] = {}
    for queue in state.queues:
        backlog.setdefault(queue.member or "", []).append(queue.messages)
    return [
        {
            "member": each.member,
            "quota": each.quota,
            "held": len(each.queues) if each.present else 0,
            "backlog": _sum(backlog.get(each.member, [])),
            "rate": round(each.rate, 1),
            "weight": each.weight,
            "is": _words(
                dispatcher=each.member == state.dispatcher,
                static=each.static,
                drained=each.drained,
                away=not each.present,
            ),
            "where": each.where,
        }
        for each in state.members
    ]


def queues_of(state: GroupState) -> list[Row]:
    now = time.time()
    return [
        {
            "queue": each.queue,
            # Nobody works on a paused one; it keeps its place with the member in brackets.
            "member": f"({each.member})" if each.paused and each.member else each.member,
            "messages": each.messages,
            "lag_s": None if each.oldest is None else max(0, round(now - each.oldest)),
            "rate": round(each.rate, 1),
            # The broker's figure may be from before the pause.
            "consumers": None if each.paused else each.consumers,
            "is": "; ".join(filter(None, ["paused" if each.paused else "", each.problem])),
        }
        for each in state.queues
    ]


def past_of(state: GroupState) -> list[Row]:
    """Rebalances, the newest first."""
    return [{**each._asdict(), "at_ms": each.at * 1000} for each in reversed(state.rebalances)]


def as_json(state: GroupState) -> dict[str, Any]:
    """All of it, with what ``describe`` adds up."""
    lags = {row["queue"]: row["lag_s"] for row in queues_of(state)}
    plain = state.as_dict()
    for queue in plain["queues"]:
        queue["lag_s"] = lags[queue["queue"]]
    added = summary(state)
    return {**plain, "backlog": added["backlog"], "rate": added["rate"], "idle": added["idle"]}


def describe(state: GroupState, parts: frozenset[str]) -> None:
    """Print a group: of ``parts`` (state, members, queues, rebalances) those that are wanted."""
    tables = {
        "members": (members_of(state), MEMBERS),
        "queues": (queues_of(state), QUEUES),
        "rebalances": (past_of(state)[:REBALANCES], PAST),
    }
    first = True
    if "state" in parts:
        output.facts(_facts(state), title=f"group {output.clean(state.group)}")
        first = False
    for name, (rows, columns) in tables.items():
        if name in parts and (rows or len(parts) == 1):
            if not first:
                output.say("")
            output.table(rows, columns, none=f"no {name}")
            first = False


def _facts(state: GroupState) -> Iterator[tuple[str, str]]:
    added = summary(state)
    yield "dispatcher", output.clean(state.dispatcher or "none at the moment")
    yield "generation", f"{state.generation:,}"
    yield "members", f"{added['members']:,}"
    yield "queues", f"{added['queues']:,}" + (f" ({added['idle']:,} idle)" if added["idle"] else "")
    yield "backlog", "" if added["backlog"] is None else f"{added['backlog']:,}"
    yield "rate", f"{added['rate']:,.1f}/s"
    yield "last rebalance", output.clean(added["last_rebalance"] or "")


def line(state: GroupState) -> str:
    """A group in one line, for ``watch`` in a pipe."""
    added = summary(state)
    at = time.strftime("%H:%M:%S")
    return (
        f"{at} generation={state.generation} members={added['members']} queues={added['queues']} "
        f"idle={added['idle']} backlog={'-' if added['backlog'] is None else added['backlog']} "
        f"rate={added['rate']:.1f} dispatcher={output.clean(state.dispatcher or '-')}"
    )


def _sum(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _words(**flags: bool) -> str:
    return " ".join(word for word, is_so in flags.items() if is_so)
