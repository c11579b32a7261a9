"""Who should hold which queue: pure functions, no clock, no sockets.

``assign`` evens members out by count, ``assign_by_load`` by message rate; both start from who
holds what now and move no more than they must. ``pack`` is the same placing from nothing, for
those who split queues over tasks. The same input gives the same answer, in whatever order it
comes: a dispatcher that takes over decides as the one before would have.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping
from math import floor

# A queue without traffic still costs its holder something; this share of the mean load makes
# idle queues spread by count.
_IDLE_SHARE = 0.05


def quotas(
    total: int, weights: Mapping[str, float], held: Mapping[str, int] | None = None
) -> dict[str, int]:
    """How many of ``total`` queues each member must hold: the largest-remainder method.

    A member of weight 0 gets none. Seats with equal remainders go to those who hold more now
    (``held``), because that spares a move, and then by name.
    """
    held = held or {}
    sum_of_weights = sum(weights.values())
    if sum_of_weights <= 0:
        return dict.fromkeys(weights, 0)
    exact = {member: total * weight / sum_of_weights for member, weight in weights.items()}
    # 1e-9: 0.1 + 0.2 must not cost a member a seat that is its by right.
    quota = {member: floor(share + 1e-9) for member, share in exact.items()}
    rest = total - sum(quota.values())
    if rest == 0:
        return quota
    by_claim = []
    for member, seats in quota.items():
        if weights[member] > 0:
            # In billionths, for the same reason.
            remainder, has = round((exact[member] - seats) * 1e9), held.get(member, 0)
            by_claim.append((-remainder, max(seats - has, -1), -has, member))
    by_claim.sort()
    for *_, member in by_claim[:rest]:
        quota[member] += 1
    return quota


def assign(
    queues: Collection[str],
    weights: Mapping[str, float],
    current: Mapping[str, str] | None = None,
    *,
    keep: Collection[str] = (),
) -> dict[str, str]:
    """Queue → member, every member at its quota, no more queues moved than the quotas force.

    ``current`` says who holds a queue now; those in ``keep`` are the last to be taken away.
    """
    current = current or {}
    wanted = set(queues)
    holdings, free = _holdings(wanted, weights, current)
    quota = quotas(len(wanted), weights, {m: len(names) for m, names in holdings.items()})
    kept = set(keep)
    result: dict[str, str] = {}
    for member in sorted(holdings):
        names, seats = holdings[member], quota[member]
        if kept:
            names.sort(key=lambda name: name not in kept)
        result.update(dict.fromkeys(names[:seats], member))
        free.extend(names[seats:])
        quota[member] = max(seats - len(names), 0)
    if free:
        result.update(zip(free, _round_robin(quota), strict=False))
    return result


def assign_by_load(
    loads: Mapping[str, float],
    weights: Mapping[str, float],
    current: Mapping[str, str] | None = None,
    *,
    worth: float = 0.1,
    keep: Collection[str] = (),
) -> dict[str, str]:
    """Queue → member, every member with about the same load for its weight.

    Queues without a holder are placed first, largest load on the emptiest member. After that a
    queue moves only if it brings the two members closer by more than ``worth`` times the mean
    load of a member. Those in ``keep`` stay where they are.
    """
    able = {member: weight for member, weight in weights.items() if weight > 0}
    if not able or not loads:
        return {}
    real = _with_idle_share(loads)
    placing = _Placing(able)
    holdings, free = _holdings(loads, able, current or {})
    for member, names in holdings.items():
        for name in names:
            if name in keep:
                placing.fix(name, real[name], member)
            else:
                placing.put(name, real[name], member)
    placing.place_all({name: real[name] for name in free})
    placing.even_out(worth * sum(real.values()) / sum(able.values()))
    return placing.owners()


def pack(loads: Mapping[str, float], bins: int) -> list[list[str]]:
    """Split queues over ``bins`` so that their loads are about even; heaviest first in each."""
    names = [f"{number:09d}" for number in range(bins)]
    owners = assign_by_load(loads, dict.fromkeys(names, 1.0))
    packed: dict[str, list[str]] = {name: [] for name in names}
    for queue in sorted(owners, key=lambda name: (-loads[name], name)):
        packed[owners[queue]].append(queue)
    return list(packed.values())


def moves(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Queues that change from one holder to another (not those that had none)."""
    return {queue for queue, member in before.items() if after.get(queue, member) != member}


def _holdings(
    queues: Iterable[str], members: Collection[str], current: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Member → which of ``queues`` it holds now, and those that nobody holds; all by name."""
    holdings: dict[str, list[str]] = {member: [] for member in members}
    free = []
    for queue in sorted(queues):
        member = current.get(queue)
        if member is not None and member in holdings:
            holdings[member].append(queue)
        else:
            free.append(queue)
    return holdings, free


def _round_robin(quota: Mapping[str, int]) -> list[str]:
    """Members in the order in which they take the free queues: those that lack most go first."""
    waiting = [(-count, member) for member, count in quota.items() if count > 0]
    heapq.heapify(waiting)
    seats = []
    while waiting:
        count, member = heapq.heappop(waiting)
        seats.append(member)
        if count < -1:
            heapq.heappush(waiting, (count + 1, member))
    return seats


def _with_idle_share(loads: Mapping[str, float]) -> dict[str, float]:
    idle = sum(loads.values()) / len(loads) * _IDLE_SHARE or 1.0
    return {name: max(load, 0.0) + idle for name, load in loads.items()}


class _Placing:
    """Members with the loads they carry, a unit of weight; knows the fullest and the emptiest."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._carried = dict.fromkeys(weights, 0.0)
        self._held: dict[str, list[tuple[float, str]]] = {member: [] for member in weights}
        self._fixed: dict[str, str] = {}

    def put(self, queue: str, load: float, member: str) -> None:
        insort(self._held[member], (load, queue))
        self._carried[member] += load / self._weights[member]

    def fix(self, queue: str, load: float, member: str) -> None:
        """As ``put``, and it is not to be moved."""
        self._fixed[queue] = member
        self._carried[member] += load / self._weights[member]

    def place_all(self, loads: Mapping[str, float]) -> None:
        """Heaviest queue first, each to the member that is emptiest with it."""
        heap = [(carried, member) for member, carried in self._carried.items()]
        heapq.heapify(heap)
        for queue in sorted(loads, key=lambda name: (-loads[name], name)):
            member = heap[0][1]
            self.put(queue, loads[queue], member)
            heapq.heapreplace(heap, (self._carried[member], member))

    def even_out(self, least_gain: float) -> None:
        """Move queues from the fullest to the emptiest while a move gains enough."""
        heap = [(carried, member) for member, carried in self._carried.items()]
        heapq.heapify(heap)
        fullest = [(-carried, member) for carried, member in heap]
        heapq.heapify(fullest)
        for _ in range(sum(map(len, self._held.values()))):
            high, low = self._top(fullest, -1), self._top(heap, 1)
            if not self._move_one(high, low, least_gain):
                return
            for member in (high, low):
                heapq.heappush(heap, (self._carried[member], member))
                heapq.heappush(fullest, (-self._carried[member], member))

    def _top(self, heap: list[tuple[float, str]], sign: int) -> str:
        """The heap's first entry that still holds; older ones of the same member are dropped."""
        while heap[0][0] != sign * self._carried[heap[0][1]]:
            heapq.heappop(heap)
        return heap[0][1]

    def _move_one(self, high: str, low: str, least_gain: float) -> bool:
        gap = self._carried[high] - self._carried[low]
        unit = 1 / self._weights[high] + 1 / self._weights[low]
        held = self._held[high]
        # A load of gap/unit would make the two even; look at the nearest on both sides of it.
        at = bisect_left(held, (gap / unit, ""))
        near = held[max(at - 1, 0) : at + 1]
        best = max(near, key=lambda each: gap - abs(gap - each[0] * unit), default=None)
        if best is None or gap - abs(gap - best[0] * unit) <= least_gain:
            return False
        held.remove(best)
        self._carried[high] -= best[0] / self._weights[high]
        self.put(best[1], best[0], low)
        return True

    def owners(self) -> dict[str, str]:
        placed = {queue: member for member, held in self._held.items() for _, queue in held}
        return placed | self._fixed
