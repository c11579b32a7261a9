"""What a batch read has settled on, kept in its ledger.

Spark plans a DataFrame as often as it likes: once for each side of a join, with filters that it
pushes down once for each action. All of them must read the same, so the first that plans writes the
plan down, under a token that ``load()`` makes, and the others take it from there.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from warren.errors import LedgerDamaged, ReadTooOld
from warren.spark.drain.job import Range
from warren.spark.kept import Kept
from warren.spark.ledger.ledger import Ledger

_PREFIX, _SUFFIX = "plan-", ".json"
#: How long a plan is kept after its ``load()``: after that, nobody knows what was read.
KEPT_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one task drains, and what it begins with."""

    ranges: tuple[Range, ...] = ()
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """All tasks of a read; ``ledger_id`` is "" where there is no ledger."""

    ledger_id: str
    tasks: tuple[ReadTask, ...]


def new_token(now: float | None = None) -> str:
    """Tells one ``load()`` from another, and when it was."""
    return f"{int(time.time() if now is None else now)}-{secrets.token_hex(8)}"


def find_plan(ledger: Ledger, token: str) -> ReadPlan | None:
    """What was settled on; None if nothing was yet.

    Raises LedgerGone, and ReadTooOld if that can't be told any more.
    """
    data = ledger.files.read(_name(token))
    if data is None:
        age_s = time.time() - _loaded_at(token)
        if age_s > KEPT_S:
            raise ReadTooOld(ledger.place, age_s)
        return None
    try:
        plan = _decode(data)
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerDamaged(ledger.place, _name(token), str(error)) from None
    ledger.require(plan.ledger_id)
    return plan


def settle_plan(ledger: Ledger, token: str, plan: ReadPlan) -> ReadPlan:
    """Settle on a plan; another one if that was first."""
    if ledger.files.put_new(_name(token), _encode(plan)):
        return plan
    return find_plan(ledger, token) or plan


def prune_plans(ledger: Ledger) -> None:
    """Forget those that are too old to be used."""
    oldest = time.time() - KEPT_S
    for name in ledger.files.names():
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            token = name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            if 0 < _loaded_at(token) < oldest:
                ledger.files.delete(name)


def _name(token: str) -> str:
    return f"{_PREFIX}{token}{_SUFFIX}"


def _loaded_at(token: str) -> int:
    """When ``load()`` was called; 0: this is no token."""
    digits = token.partition("-")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _encode(plan: ReadPlan) -> bytes:
    return json.dumps(asdict(plan)).encode()


def _decode(data: bytes) -> ReadPlan:
    said = json.loads(data)
    return ReadPlan(said["ledger_id"], tuple(_task(**task) for task in said["tasks"]))


def _task(ranges: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, Any]]) -> ReadTask:
    return ReadTask(
        tuple(Range(**each) for each in ranges),
        tuple(Kept(each["queue"], tuple(each["starts"]), each["since"]) for each in kept),
    )
