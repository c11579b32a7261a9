"""Tells in the log of queues that nobody works on: a name is misspelt now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from warren.groups.coordination.base import GroupState
from warren.groups.discovery import is_pattern, matches

log = logging.getLogger(__name__)

#: How often to look; a little less often if there are very many queues.
LOOK_S = 5.0
#: How many queues are named at a time.
MOST = 5


async def tell_loop(queues: Sequence[str], look: Callable[[], GroupState | None]) -> None:
    """``look`` gives the group where this member is the dispatcher: one tells, not all."""
    patterns = [each for each in queues if is_pattern(each)]
    told: set[str] = set()
    pause_s = LOOK_S
    while True:
        await asyncio.sleep(pause_s)
        state = look()
        if state is None:
            continue
        pause_s = LOOK_S + len(state.queues) / 1_000
        for pattern in patterns:
            if not any(matches(pattern, each.queue) for each in state.queues):
                log.warning("no queue matches %s yet", pattern)
        patterns = []
        told = tell(state, told)


def tell(state: GroupState, told: set[str]) -> set[str]:
    """Tell of what was not told before; returns what need not be told next time."""
    away = {each.member for each in state.members if not each.present}
    idle = {
        each.queue: each.problem
        for each in state.queues
        if each.problem is not None and each.member not in away
    }
    new = sorted(idle.keys() - told)
    for queue in new[:MOST]:
        log.warning("nobody works on queue %s: %s", queue, idle[queue])
    if len(new) > MOST:
        more = len(new) - MOST
        log.warning("nor on %d more: warren group describe %s has them", more, state.group)
    return set(idle)
