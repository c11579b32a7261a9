"""From a YAML file to a topology; every complaint names the line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from warren.errors import TopologyError
from warren.topology.model import Binding, Exchange, Policy, Queue, Topology
from warren.yaml_file import Entries, Entry, YamlFile, opened, unknown


def load(text: str, file: str = "topology") -> Topology:
    """The topology that a file describes.

    Raises:
        TopologyError: not YAML, an unknown key (with the nearest that is known), a value of the
            wrong type, something said twice.
    """
    with opened(text, file, TopologyError) as yaml_file:
        return _Reader(yaml_file, file).read()


_QUEUE_TYPES = ("classic", "quorum", "stream")


class _Reader:
    def __init__(self, yaml_file: YamlFile, file: str) -> None:
        self._yaml, self._file = yaml_file, file

    def read(self) -> Topology:
        parts = self._yaml.root(("vhost", "exchanges", "queues", "bindings", "policies"))
        vhost = self._yaml.value(parts, "vhost", str, "the file") if "vhost" in parts else None
        if vhost == "":
            raise self._yaml.error(parts["vhost"].node, "vhost must not be empty")
        topology = Topology(
            vhost=vhost,
            exchanges=tuple(self._named(parts, "exchanges", self._exchange)),
            queues=tuple(self._named(parts, "queues", self._queue)),
            bindings=tuple(self._bindings(parts)),
            policies=tuple(self._named(parts, "policies", self._policy)),
        )
        seen: dict[Any, int] = {}
        for binding in topology.bindings:
            if binding.key in seen:
                problem = f"{binding} stands on line {seen[binding.key]} already"
                raise TopologyError(self._file, binding.line, problem)
            seen[binding.key] = binding.line
        return topology

    # -- the kinds -----------------------------------------------------------------------------
    def _named(
        self, parts: Entries, section: str, make: Callable[[str, Entry], Any]
    ) -> Iterable[Any]:
        if section not in parts or self._yaml.is_null(parts[section].node):
            return
        for name, entry in self._yaml.mapping(parts[section].node, section).items():
            yield make(name, entry)

    def _exchange(self, name: str, entry: Entry) -> Exchange:
        what = f"exchange '{name}'"
        known = ("type", "durable", "auto_delete", "internal", "arguments")
        keys = self._yaml.settings(entry, what, known)
        return Exchange(
            name,
            type=self._yaml.value(keys, "type", str, what, "direct"),
            durable=self._yaml.value(keys, "durable", bool, what, True),
            auto_delete=self._yaml.value(keys, "auto_delete", bool, what, False),
            internal=self._yaml.value(keys, "internal", bool, what, False),
            arguments=self._arguments(keys, "arguments", what),
            line=entry.line,
        )

    def _queue(self, name: str, entry: Entry) -> Queue:
        what = f"queue '{name}'"
        keys = self._yaml.settings(entry, what, ("type", "durable", "auto_delete", "arguments"))
        arguments = self._arguments(keys, "arguments", what)
        in_arguments = arguments.pop("x-queue-type", None)
        kind = self._yaml.value(keys, "type", str, what, in_arguments or "classic")
        at = keys["type"].node if "type" in keys else entry.node
        if kind not in _QUEUE_TYPES:
            raise self._yaml.error(at, f"{what}: {unknown('type', str(kind), _QUEUE_TYPES)}")
        if in_arguments not in (None, kind):
            raise self._yaml.error(at, f"{what}: type is {kind}, x-queue-type is {in_arguments}")
        return Queue(
            name,
            type=kind,
            durable=self._yaml.value(keys, "durable", bool, what, True),
            auto_delete=self._yaml.value(keys, "auto_delete", bool, what, False),
            arguments=arguments,
            line=entry.line,
        )

    def _policy(self, name: str, entry: Entry) -> Policy:
        what = f"policy '{name}'"
        known = ("pattern", "apply_to", "priority", "definition")
        keys = self._yaml.settings(entry, what, known)
        for needed in ("pattern", "definition"):
            if needed not in keys:
                raise TopologyError(self._file, entry.line, f"{what} needs a {needed}")
        apply_to = self._yaml.value(keys, "apply_to", str, what, "all")
        choices = ("all", "queues", "exchanges")
        if apply_to not in choices:
            problem = f"{what}: {unknown('apply_to', apply_to, choices)}"
            raise self._yaml.error(keys["apply_to"].node, problem)
        return Policy(
            name,
            pattern=self._yaml.value(keys, "pattern", str, what),
            definition=self._arguments(keys, "definition", what),
            apply_to=apply_to,
            priority=self._yaml.value(keys, "priority", int, what, 0),
            line=entry.line,
        )

    def _bindings(self, parts: Entries) -> Iterable[Binding]:
        if "bindings" not in parts or self._yaml.is_null(node := parts["bindings"].node):
            return
        if not isinstance(node, yaml.SequenceNode):
            raise self._yaml.error(node, "bindings must be a list: a line with '- ' for each")
        for each in node.value:
            yield self._binding(each)

    def _binding(self, node: yaml.Node) -> Binding:
        known = ("source", "queue", "exchange", "routing_key", "arguments")
        keys = self._yaml.mapping(node, "a binding", known)
        if "source" not in keys:
            raise self._yaml.error(node, "a binding needs a source: the exchange it leads from")
        ends = [name for name in ("queue", "exchange") if name in keys]
        if len(ends) != 1:
            raise self._yaml.error(node, "a binding needs either a queue or an exchange to lead to")
        return Binding(
            source=self._yaml.value(keys, "source", str, "a binding"),
            destination=self._yaml.value(keys, ends[0], str, "a binding"),
            to=ends[0],
            routing_key=self._yaml.value(keys, "routing_key", str, "a binding", ""),
            arguments=self._arguments(keys, "arguments", "a binding"),
            line=node.start_mark.line + 1,
        )

    # -- values --------------------------------------------------------------------------------
    def _arguments(self, keys: Entries, name: str, what: str) -> dict[str, Any]:
        if name not in keys or self._yaml.is_null(keys[name].node):
            return {}
        found = {}
        for key, entry in self._yaml.mapping(keys[name].node, f"{name} of {what}").items():
            found[key] = self._yaml.plain(entry.node)
            try:
                usable = found[key] is not None and json.dumps(found[key], allow_nan=False)
            except (TypeError, ValueError):  # such as a date
                usable = False
            if not usable:
                problem = "must be text, a number, true, false, a list or a mapping"
                raise self._yaml.error(entry.node, f"{what}: {key} {problem}")
        return found
