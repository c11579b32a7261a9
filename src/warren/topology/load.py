"""From a YAML file to a topology; every complaint names the line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from warren.errors import TopologyError
from warren.topology.model import Binding, Exchange, Policy, Queue, Topology


def load(text: str, file: str = "topology") -> Topology:
    """The topology that a file describes.

    Raises:
        TopologyError: not YAML, an unknown key (with the nearest that is known), a value of the
            wrong type, something said twice.
    """
    reader = yaml.SafeLoader(text)
    try:
        return _Reader(reader, file).read()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise TopologyError(file, line, f"not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise TopologyError(file, 0, f"not YAML: {' '.join(str(error).split())}") from None
    finally:
        reader.dispose()


_TYPES = {str: "text", bool: "true or false", int: "a whole number", dict: "a mapping"}
_QUEUE_TYPES = ("classic", "quorum", "stream")


@dataclass(frozen=True)
class _Entry:
    """A key of a mapping: where it stands and what is behind it."""

    line: int
    node: yaml.Node


class _Reader:
    def __init__(self, yaml_reader: Any, file: str) -> None:
        self._yaml, self._file = yaml_reader, file

    def read(self) -> Topology:
        root = self._yaml.get_single_node()
        if root is None:
            raise TopologyError(self._file, 0, "the file is empty")
        known = ("vhost", "exchanges", "queues", "bindings", "policies")
        parts = self._mapping(root, "the file", known)
        vhost = self._value(parts, "vhost", str, "the file") if "vhost" in parts else None
        if vhost == "":
            raise self._error(parts["vhost"].node, "vhost must not be empty")
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
        self, parts: dict[str, _Entry], section: str, make: Callable[[str, _Entry], Any]
    ) -> Iterable[Any]:
        if section not in parts or self._is_null(parts[section].node):
            return
        for name, entry in self._mapping(parts[section].node, section).items():
            yield make(name, entry)

    def _exchange(self, name: str, entry: _Entry) -> Exchange:
        what = f"exchange '{name}'"
        known = ("type", "durable", "auto_delete", "internal", "arguments")
        keys = self._settings(entry, what, known)
        return Exchange(
            name,
            type=self._value(keys, "type", str, what, "direct"),
            durable=self._value(keys, "durable", bool, what, True),
            auto_delete=self._value(keys, "auto_delete", bool, what, False),
            internal=self._value(keys, "internal", bool, what, False),
            arguments=self._arguments(keys, "arguments", what),
            line=entry.line,
        )

    def _queue(self, name: str, entry: _Entry) -> Queue:
        what = f"queue '{name}'"
        keys = self._settings(entry, what, ("type", "durable", "auto_delete", "arguments"))
        arguments = self._arguments(keys, "arguments", what)
        in_arguments = arguments.pop("x-queue-type", None)
        kind = self._value(keys, "type", str, what, in_arguments or "classic")
        at = keys["type"].node if "type" in keys else entry.node
        if kind not in _QUEUE_TYPES:
            raise self._error(at, f"{what}: {_unknown('type', str(kind), _QUEUE_TYPES)}")
        if in_arguments not in (None, kind):
            raise self._error(at, f"{what}: type is {kind}, x-queue-type is {in_arguments}")
        return Queue(
            name,
            type=kind,
            durable=self._value(keys, "durable", bool, what, True),
            auto_delete=self._value(keys, "auto_delete", bool, what, False),
            arguments=arguments,
            line=entry.line,
        )

    def _policy(self, name: str, entry: _Entry) -> Policy:
        what = f"policy '{name}'"
        known = ("pattern", "apply_to", "priority", "definition")
        keys = self._settings(entry, what, known)
        for needed in ("pattern", "definition"):
            if needed not in keys:
                raise TopologyError(self._file, entry.line, f"{what} needs a {needed}")
        apply_to = self._value(keys, "apply_to", str, what, "all")
        choices = ("all", "queues", "exchanges")
        if apply_to not in choices:
            problem = f"{what}: {_unknown('apply_to', apply_to, choices)}"
            raise self._error(keys["apply_to"].node, problem)
        return Policy(
            name,
            pattern=self._value(keys, "pattern", str, what),
            definition=self._arguments(keys, "definition", what),
            apply_to=apply_to,
            priority=self._value(keys, "priority", int, what, 0),
            line=entry.line,
        )

    def _bindings(self, parts: dict[str, _Entry]) -> Iterable[Binding]:
        if "bindings" not in parts or self._is_null(node := parts["bindings"].node):
            return
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, "bindings must be a list: a line with '- ' for each")
        for each in node.value:
            yield self._binding(each)

    def _binding(self, node: yaml.Node) -> Binding:
        known = ("source", "queue", "exchange", "routing_key", "arguments")
        keys = self._mapping(node, "a binding", known)
        if "source" not in keys:
            raise self._error(node, "a binding needs a source: the exchange it leads from")
        ends = [name for name in ("queue", "exchange") if name in keys]
        if len(ends) != 1:
            raise self._error(node, "a binding needs either a queue or an exchange to lead to")
        return Binding(
            source=self._value(keys, "source", str, "a binding"),
            destination=self._value(keys, ends[0], str, "a binding"),
            to=ends[0],
            routing_key=self._value(keys, "routing_key", str, "a binding", ""),
            arguments=self._arguments(keys, "arguments", "a binding"),
            line=node.start_mark.line + 1,
        )

    # -- values --------------------------------------------------------------------------------
    def _settings(self, entry: _Entry, what: str, known: tuple[str, ...]) -> dict[str, _Entry]:
        # ``orders:`` with nothing behind it has all the defaults
        return {} if self._is_null(entry.node) else self._mapping(entry.node, what, known)

    def _mapping(
        self, node: yaml.Node, what: str, known: tuple[str, ...] | None = None
    ) -> dict[str, _Entry]:
        """The keys of a mapping; each once, and each known if it matters."""
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"{what} must be a mapping: lines like 'name: value'")
        own: dict[str, int] = {}
        for key, _ in node.value:
            name = self._key(key, what)
            if name in own and name != "<<":
                raise self._error(key, f"{what}: '{name}' stands on line {own[name]} already")
            own[name] = key.start_mark.line + 1
        self._yaml.flatten_mapping(node)  # what ``<<: *other`` brings
        found = {}
        for key, value in node.value:
            name = self._key(key, what)
            if known is not None and name not in known:
                raise self._error(key, f"{what}: {_unknown('key', name, known)}")
            found[name] = _Entry(key.start_mark.line + 1, value)
        return found

    def _key(self, key: yaml.Node, what: str) -> str:
        if not isinstance(key, yaml.ScalarNode):
            raise self._error(key, f"{what}: a name must be text")
        if not key.tag.endswith((":str", ":merge")):
            raise self._error(key, f"{what}: {key.value} is no text in YAML; write '{key.value}'")
        return str(key.value)

    def _value(
        self, keys: dict[str, _Entry], name: str, kind: type, what: str, default: Any = None
    ) -> Any:
        if name not in keys:
            return default
        node = keys[name].node
        value = self._plain(node)
        if type(value) is kind:
            return value
        hint = ""
        if kind is str and isinstance(node, yaml.ScalarNode):
            hint = f"; write '{node.value}'"
        raise self._error(node, f"{what}: {name} must be {_TYPES[kind]}{hint}")

    def _arguments(self, keys: dict[str, _Entry], name: str, what: str) -> dict[str, Any]:
        if name not in keys or self._is_null(keys[name].node):
            return {}
        found = {}
        for key, entry in self._mapping(keys[name].node, f"{name} of {what}").items():
            found[key] = self._plain(entry.node)
            try:
                usable = found[key] is not None and json.dumps(found[key], allow_nan=False)
            except (TypeError, ValueError):  # such as a date
                usable = False
            if not usable:
                problem = "must be text, a number, true, false, a list or a mapping"
                raise self._error(entry.node, f"{what}: {key} {problem}")
        return found

    def _plain(self, node: yaml.Node) -> Any:
        return self._yaml.construct_object(node, deep=True)

    def _is_null(self, node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")

    def _error(self, node: yaml.Node, problem: str) -> TopologyError:
        return TopologyError(self._file, node.start_mark.line + 1, problem)


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"
    return f"unknown {what} '{name}'; {hint}"
