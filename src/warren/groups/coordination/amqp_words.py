"""Names and messages of a group that coordinates through the broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warren.client import Properties
from warren.client.delivery import Delivery
from warren.groups.coordination.base import Assignment, Command, GroupState, Stamp

#: Routing keys of the group's exchange; a member's own is ``member.<id>``.
ALL, DISPATCHER = "all", "dispatcher"


@dataclass(frozen=True)
class Names:
    """What a group calls its things on the broker."""

    group: str

    @property
    def exchange(self) -> str:
        return f"warren.{self.group}"

    @property
    def token(self) -> str:
        """The queue whose single active consumer is the dispatcher."""
        return f"warren.{self.group}.dispatcher"

    def inbox(self, member: str) -> str:
        """A member's own queue; exclusive, so the name can't be taken twice."""
        return f"warren.{self.group}.member.{member}"

    def will(self, member: str, life: str) -> str:
        """The queue with the message that the dispatcher gets when the member's connection ends."""
        return f"warren.{self.group}.will.{member}.{life}"


def key_of(member: str) -> str:
    """The routing key of one member."""
    return f"member.{member}"


def queue_options(server: Mapping[str, Any]) -> dict[str, Any]:
    """How to declare the group's shared queues: gone with their last consumer.

    One active consumer, one ready message at most. Always classic: a quorum queue counts
    deliveries and would drop the token one day. Transient ones vanish with their node, so that a
    cluster that lost it can have them elsewhere at once; from RabbitMQ 4.3 on they are refused.
    ``x-expires`` is for a durable one whose broker was killed: no consumer's going deletes it.
    """
    version = str(server.get("version", "")).split(".")
    new = server.get("product") == "RabbitMQ" and _number(version, 0) * 100 + _number(version, 1)
    return {
        "durable": bool(new and new >= 403),
        "auto_delete": True,
        "arguments": {
            "x-queue-type": "classic",
            "x-single-active-consumer": True,
            "x-max-length": 1,
            "x-expires": 60_000,
        },
    }


def _number(parts: list[str], at: int) -> int:
    return int(parts[at]) if at < len(parts) and parts[at].isdigit() else 0


def properties(kind: str, *, reply_to: str | None = None) -> Properties:
    return Properties(
        content_type="application/json", type=kind, reply_to=reply_to, app_id="warren"
    )


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def decode(delivery: Delivery) -> Any:
    return json.loads(delivery.body)


def state_from(body: bytes | None) -> GroupState | None:
    """The state that was shown last; None if there is none, or none that can be read."""
    try:
        return None if body is None else GroupState.from_dict(json.loads(body))
    except (ValueError, TypeError, AttributeError):
        return None


def outline(state: GroupState) -> Any:
    """Of a state, what a new dispatcher needs: all but figures and who holds what so far."""
    members = [(m.member, m.quota, m.static, m.drained, m.present) for m in state.members]
    queues = [(q.queue, q.member, q.paused, q.barred) for q in state.queues]
    return state.generation, members, queues


def assignment_as_dict(assignment: Assignment) -> dict[str, Any]:
    stamp = assignment.stamp
    return {
        "member": assignment.member,
        "stamp": [stamp.generation, stamp.step],
        "queues": assignment.queues,
    }


def assignment_from_dict(plain: Mapping[str, Any]) -> Assignment:
    return Assignment(plain["member"], Stamp(*plain["stamp"]), tuple(plain["queues"]))


def command_from_dict(plain: Mapping[str, Any]) -> Command:
    return Command(plain["kind"], plain.get("member", ""), plain.get("queue", ""))
