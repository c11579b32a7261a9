"""How often a quorum queue takes a message back before it drops it.

A drain gives messages back: each attempt at a task that fails does. So a queue with a limit and
nowhere to put what is over it loses messages while a ledger can't be written.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger(__name__)

#: The limit of a quorum queue that nobody has given one, since RabbitMQ 4.0.
_DEFAULT = 20
#: What is said by those who want none.
_UNLIMITED = -1
#: A limit as high as this is reached by hundreds of failed attempts only.
_HIGH = 1000


def said_limit(row: Mapping[str, Any]) -> int | None:
    """What a queue's arguments and policies say, as the management API tells them."""
    policy = row.get("effective_policy_definition") or {}
    said = [(row.get("arguments") or {}).get("x-delivery-limit"), policy.get("delivery-limit")]
    limits = [each for each in said if isinstance(each, int)]
    return min((each for each in limits if each >= 0), default=_UNLIMITED) if limits else None


def dead_letters(row: Mapping[str, Any]) -> bool:
    """Has it a dead-letter exchange, by an argument or a policy?"""
    policy = row.get("effective_policy_definition") or {}
    arguments = row.get("arguments") or {}
    return "x-dead-letter-exchange" in arguments or "dead-letter-exchange" in policy


def warn_of_limit(queue: str, said: int | None, server: Mapping[str, Any]) -> None:
    """Tell of a quorum queue without a dead-letter exchange that drops what came back often."""
    limit = _default_of(server) if said is None else said
    if not 0 <= limit < _HIGH:
        return
    default = "the default since RabbitMQ 4.0, unless a policy says otherwise"
    why = default if said is None else "its delivery limit"
    log.warning(
        "quorum queue '%s' drops a message that came back more than %d times (%s), and every "
        "attempt at a task that fails gives messages back: a query that is started again and again "
        "while its ledger can't be written would lose them. Give the queue a dead-letter exchange, "
        "which a policy can do, or no limit: x-delivery-limit=-1 when it is declared, or a policy "
        "with delivery-limit -1 (before RabbitMQ 4.0: none at all)",
        queue,
        limit,
        why,
    )


def _default_of(server: Mapping[str, Any]) -> int:
    """By the version that the broker has told when we connected."""
    major = str(server.get("version", "")).partition(".")[0]
    is_new = server.get("product") == "RabbitMQ" and major.isdigit() and int(major) >= 4
    return _DEFAULT if is_new else _UNLIMITED
