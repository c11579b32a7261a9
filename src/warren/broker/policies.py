"""Policies: settings for all queues and exchanges whose name matches a pattern, applied live.

Of the policies that match, the one with the highest priority holds; the same goes, on its own, for
operator policies. Where both set a limit the smaller one counts, and so it does between a policy
and an argument; of names and words, the argument's wins.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from warren.broker.policy import Policy
from warren.broker.queues.arguments import QueueSettings, parse_age_s

if TYPE_CHECKING:
    from warren.broker.core import BrokerCore
    from warren.broker.exchanges import Exchange
    from warren.broker.vhost import AnyQueue

#: Settings of queues: the policy's name of each, ours, and whether the smaller value counts.
_QUEUE_FIELDS = (
    ("message-ttl", "message_ttl_ms", True),
    ("expires", "expires_ms", True),
    ("max-length", "max_length", True),
    ("max-length-bytes", "max_length_bytes", True),
    ("delivery-limit", "delivery_limit", True),
    ("dead-letter-exchange", "dead_letter_exchange", False),
    ("dead-letter-routing-key", "dead_letter_routing_key", False),
)


class Policies:
    """All policies of a broker, and what follows from them."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._policies: dict[tuple[bool, str, str], Policy] = {}

    def put(self, policy: Policy) -> bool:
        """Set a policy, and let it take effect; True if there was none of that name."""
        policy.check()
        key = (policy.operator, policy.vhost, policy.name)
        new = key not in self._policies
        self._policies[key] = policy
        self._write_down(policy, dataclasses.asdict(policy))
        self.apply(policy.vhost)
        return new

    def delete(self, vhost: str, name: str, *, operator: bool = False) -> bool:
        policy = self._policies.pop((operator, vhost, name), None)
        if policy is None:
            return False
        self._write_down(policy, None)
        self.apply(vhost)
        return True

    def get(self, vhost: str, name: str, *, operator: bool = False) -> Policy | None:
        return self._policies.get((operator, vhost, name))

    def all(self, vhost: str | None = None, *, operator: bool = False) -> list[Policy]:
        return [
            policy
            for (its_operator, its_vhost, _), policy in self._policies.items()
            if its_operator == operator and vhost in (None, its_vhost)
        ]

    def vhost_gone(self, vhost: str) -> None:
        for operator in (False, True):
            for policy in self.all(vhost, operator=operator):
                del self._policies[operator, vhost, policy.name]
                self._write_down(policy, None)

    def _write_down(self, policy: Policy, value: dict[str, Any] | None) -> None:
        if self._core.journal is not None:
            self._core.journal.define(policy.kind, [policy.vhost, policy.name], value)

    def restore(self, definitions: list[tuple[str, list[Any], dict[str, Any]]]) -> None:
        """Take up what the store has."""
        for kind, _, value in definitions:
            if kind in ("policy", "operator_policy") and value["vhost"] in self._core.vhosts:
                policy = Policy(**value)
                self._policies[policy.operator, policy.vhost, policy.name] = policy
        for vhost in {key[1] for key in self._policies}:
            self.apply(vhost)

    # -- what follows ----------------------------------------------------------------------------
    def match(
        self, vhost: str, kind: str, name: str, queue_type: str = "", *, operator: bool = False
    ) -> Policy | None:
        """The policy that holds for a queue or an exchange."""
        if not self._policies:
            return None
        covering = [
            p for p in self.all(vhost, operator=operator) if p.covers(kind, name, queue_type)
        ]
        return max(covering, key=lambda policy: policy.priority, default=None)

    def effective(self, vhost: str, kind: str, name: str, queue_type: str = "") -> dict[str, Any]:
        """What the policy and the operator policy set together."""
        if not self._policies:
            return {}
        policy = self.match(vhost, kind, name, queue_type)
        operator = self.match(vhost, kind, name, queue_type, operator=True)
        merged = dict(policy.definition) if policy is not None else {}
        for key, value in (operator.definition if operator is not None else {}).items():
            merged[key] = min(merged[key], value) if key in merged else value
        return dict(sorted(merged.items()))

    def settings_for(self, queue: AnyQueue) -> QueueSettings:
        """A queue's settings: its arguments, and what policies add to them."""
        settings = QueueSettings.from_arguments(queue.arguments)
        policy = self.effective(queue.vhost.name, "queue", queue.name, settings.kind)
        if not policy:
            return settings
        changes: dict[str, Any] = {}
        for name, ours, smaller in _QUEUE_FIELDS:
            if name in policy:
                own, value = getattr(settings, ours), policy[name]
                if own is None:
                    changes[ours] = value
                elif smaller:
                    changes[ours] = min(own, value)
        if "overflow" in policy and "x-overflow" not in queue.arguments:
            changes["overflow"] = policy["overflow"]
        if "max-age" in policy:
            ages = [age for age in (settings.max_age_s, parse_age_s(policy["max-age"])) if age]
            changes["max_age_s"] = min(ages)
        return dataclasses.replace(settings, **changes)

    def alternate_for(self, vhost: str, exchange: Exchange) -> str | None:
        own = exchange.arguments.get("alternate-exchange")
        if own is not None:
            return str(own)
        value = self.effective(vhost, "exchange", exchange.name).get("alternate-exchange")
        return None if value is None else str(value)

    def apply(self, vhost_name: str) -> None:
        """Bring every queue and exchange of a virtual host in line."""
        vhost = self._core.vhosts.get(vhost_name)
        if vhost is None:
            return
        for queue in list(vhost.queues.values()):
            settings = self.settings_for(queue)
            if settings != queue.settings:
                queue.apply_settings(settings)
        for exchange in vhost.exchanges.values():
            exchange.alternate = self.alternate_for(vhost_name, exchange)
        vhost.version += 1
