"""From a topology to a YAML file that ``load`` reads."""

from __future__ import annotations

from typing import Any

import yaml

from warren.topology.model import Binding, Exchange, Policy, Queue, Topology


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Escapes what is not to be seen: YAML takes some of it for the end of a line."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def dump(topology: Topology) -> str:
    """The file; what has its default is left out."""
    parts: dict[str, Any] = {} if topology.vhost is None else {"vhost": topology.vhost}
    parts["exchanges"] = {item.name: _exchange(item) for item in topology.exchanges}
    parts["queues"] = {item.name: _queue(item) for item in topology.queues}
    parts["bindings"] = [_binding(item) for item in topology.bindings]
    parts["policies"] = {item.name: _policy(item) for item in topology.policies}
    sections = []
    for name, part in parts.items():
        if part:
            # leaf mappings on one line
            sections.append(
                yaml.dump(
                    {name: part},
                    Dumper=_Dumper,
                    sort_keys=False,
                    default_flow_style=False if name == "vhost" else None,
                    width=100,
                    allow_unicode=True,
                )
            )
    return "\n".join(sections) or "{}\n"


def _without(parts: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value != defaults.get(name)}


def _exchange(item: Exchange) -> dict[str, Any]:
    parts = {
        "type": item.type,
        "durable": item.durable,
        "auto_delete": item.auto_delete,
        "internal": item.internal,
        "arguments": dict(item.arguments),
    }
    return _without(parts, durable=True, auto_delete=False, internal=False, arguments={})


def _queue(item: Queue) -> dict[str, Any]:
    parts = {
        "type": item.type,
        "durable": item.durable,
        "auto_delete": item.auto_delete,
        "arguments": dict(item.arguments),
    }
    return _without(parts, type="classic", durable=True, auto_delete=False, arguments={})


def _binding(item: Binding) -> dict[str, Any]:
    parts = {
        "source": item.source,
        item.to: item.destination,
        "routing_key": item.routing_key,
        "arguments": dict(item.arguments),
    }
    return _without(parts, routing_key="", arguments={})


def _policy(item: Policy) -> dict[str, Any]:
    parts = {
        "pattern": item.pattern,
        "apply_to": item.apply_to,
        "priority": item.priority,
        "definition": dict(item.definition),
    }
    return _without(parts, apply_to="all", priority=0)
