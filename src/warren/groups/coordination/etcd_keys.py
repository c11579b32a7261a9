"""Where a group's things are in etcd, and what their values look like: readable with etcdctl.

/warren/billing/dispatcher          {"member": "w1"}
/warren/billing/members/w1          what w1 reports of itself
/warren/billing/quotas/w1           {"quota": 50, "queues": ["orders.eu", …], …}
/warren/billing/assignments/w1      {"generation": 7, "step": 1, "queues": ["orders.eu", …]}
/warren/billing/claims/orders.eu    w1
/warren/billing/queues/orders.eu    {"name": "orders.eu", "messages": 3, "consumers": 1, …}
/warren/billing/state               {"generation": 7, "rebalances": […]}
/warren/billing/commands/…          what people ask of the dispatcher
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from warren.groups.coordination.base import (
    Assignment,
    Command,
    GroupState,
    Report,
    Stamp,
    report_as_dict,
    report_from_dict,
)
from warren.groups.coordination.etcd_values import Entry


class Keys:
    """The names of one group's keys."""

    def __init__(self, prefix: str, group: str) -> None:
        self.top = f"{prefix.rstrip('/')}/"
        # A slash in its name must not put a group inside another.
        self.root = f"{self.top}{quote(group, safe='')}/"
        self.dispatcher = f"{self.root}dispatcher"
        self.state = f"{self.root}state"
        self.members = f"{self.root}members/"
        self.quotas = f"{self.root}quotas/"
        self.assignments = f"{self.root}assignments/"
        self.claims = f"{self.root}claims/"
        self.queues = f"{self.root}queues/"
        self.commands = f"{self.root}commands/"
        digest = hashlib.sha256(self.root.encode()).digest()
        #: Of the lease that holds what outlives its writer; all members keep it alive.
        self.lease = int.from_bytes(digest[:7]) + 1

    def group_of(self, key: str) -> str:
        """The group that a key belongs to."""
        return unquote(key.removeprefix(self.top).partition("/")[0])


# -- members -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Word:
    """What a member says: its report, whether it is its last, and the mark of its will."""

    report: Report
    leaving: bool = False
    life: str = ""


def encode_word(word: Word) -> bytes:
    more = {"leaving": True} if word.leaving else {}
    return _encode({**report_as_dict(word.report), "life": word.life, **more})


def decode_word(value: bytes) -> Word | None:
    """None if it is none: anybody may write to etcd."""
    try:
        plain = json.loads(value)
        return Word(report_from_dict(plain), bool(plain.get("leaving")), plain.get("life", ""))
    except (ValueError, TypeError, AttributeError):
        return None


def encode_dispatcher(member: str, life: str) -> bytes:
    return _encode({"member": member, "life": life})


def decode_dispatcher(value: bytes) -> tuple[str, str]:
    """The member, and the mark of its will."""
    plain = json.loads(value)
    return plain["member"], plain.get("life", "")


# -- assignments and commands --------------------------------------------------------------------
def encode_assignment(assignment: Assignment) -> bytes:
    stamp = assignment.stamp
    return _encode(
        {"generation": stamp.generation, "step": stamp.step, "queues": assignment.queues}
    )


def decode_assignment(member: str, value: bytes) -> Assignment | None:
    try:
        plain = json.loads(value)
        return Assignment(member, Stamp(plain["generation"], plain["step"]), tuple(plain["queues"]))
    except (ValueError, TypeError, KeyError):
        return None


def encode_command(command: Command) -> bytes:
    return _encode({"kind": command.kind, "member": command.member, "queue": command.queue})


def decode_command(value: bytes) -> Command | None:
    try:
        return Command(**json.loads(value))
    except (ValueError, TypeError):
        return None


# -- the state -----------------------------------------------------------------------------------
def encode_state(keys: Keys, state: GroupState) -> dict[str, bytes]:
    """The state as keys and values, one a member and one a queue."""
    plain = state.as_dict()
    members, queues = plain.pop("members"), plain.pop("queues")
    del plain["dispatcher"]  # a key of its own says it
    encoded = {keys.state: _encode(plain)}
    for member in members:
        encoded[keys.quotas + member["member"]] = _encode(member)
    for queue in queues:
        name = queue.pop("queue")
        encoded[keys.queues + name] = _encode({"name": name, **queue})
    return encoded


def decode_state(keys: Keys, entries: Mapping[str, Entry]) -> GroupState | None:
    """Undo ``encode_state``; None if there is none, or it is not what a dispatcher writes."""
    if keys.state not in entries:
        return None
    try:
        return _decode_state(keys, entries)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _decode_state(keys: Keys, entries: Mapping[str, Entry]) -> GroupState:
    plain: dict[str, Any] = json.loads(entries[keys.state].value)
    if keys.dispatcher in entries:
        plain["dispatcher"], _ = decode_dispatcher(entries[keys.dispatcher].value)
    below: dict[str, list[dict[str, Any]]] = {keys.quotas: [], keys.queues: []}
    for key, entry in sorted(entries.items()):
        for prefix, found in below.items():
            if key.startswith(prefix):
                found.append(json.loads(entry.value))
    for queue in below[keys.queues]:
        queue["queue"] = queue.pop("name")
    return GroupState.from_dict(
        {**plain, "members": below[keys.quotas], "queues": below[keys.queues]}
    )


def _encode(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
