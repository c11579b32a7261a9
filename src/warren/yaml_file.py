"""A YAML file that people write: a complaint names the line, and the nearest word that is known."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.reader import ReaderError

from warren.errors import WarrenError

_TEXT = "tag:yaml.org,2002:str"
_TYPES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    dict: "a mapping",
    list: "a list",
}


@dataclass(frozen=True)
class Entry:
    """A key of a mapping: where it stands and what is behind it."""

    line: int
    node: yaml.Node


Entries = dict[str, Entry]


class YamlFile:
    """The nodes of one file, and the values behind them.

    ``error`` makes the exception from the file's name, the line (0: none) and the problem.
    """

    def __init__(
        self, reader: Any, name: str, error: Callable[[str, int, str], WarrenError]
    ) -> None:
        self._reader, self._name, self._error = reader, name, error
        self._filled: set[int] = set()

    def root(self, known: tuple[str, ...], *, fill: Callable[[str], str] | None = None) -> Entries:
        """The mapping that the file is; ``fill`` may put other text in the place of any.

        What was filled in is text, whatever it looks like, unless something else is asked for. It
        raises ValueError for what it can't fill.
        """
        node = self._reader.get_single_node()
        if node is None:
            raise self._error(self._name, 0, "the file is empty")
        if fill is not None:
            self._fill(node, fill, set())
        return self.mapping(node, "the file", known)

    def _fill(self, node: yaml.Node, fill: Callable[[str], str], seen: set[int]) -> None:
        if id(node) in seen:  # an alias
            return
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            try:
                text = fill(node.value)
            except ValueError as problem:
                raise self.error(node, str(problem)) from None
            if text != node.value and node.style is None:
                node.tag = _TEXT
                self._filled.add(id(node))
            node.value = text
        else:
            for each in node.value:
                for part in each if isinstance(each, tuple) else (each,):
                    self._fill(part, fill, seen)

    def settings(self, entry: Entry, what: str, known: tuple[str, ...] | None) -> Entries:
        """As ``mapping``; ``orders:`` with nothing behind it has all the defaults."""
        return {} if self.is_null(entry.node) else self.mapping(entry.node, what, known)

    def mapping(self, node: yaml.Node, what: str, known: tuple[str, ...] | None = None) -> Entries:
        """The keys of a mapping; each once, and each known if it matters."""
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, f"{what} must be a mapping: lines like 'name: value'")
        own: dict[str, int] = {}
        for key, _ in node.value:
            name = self._key(key, what)
            if name in own and name != "<<":
                raise self.error(key, f"{what}: '{name}' stands on line {own[name]} already")
            own[name] = key.start_mark.line + 1
        self._reader.flatten_mapping(node)  # what ``<<: *other`` brings
        found = {}
        for key, value in node.value:
            name = self._key(key, what)
            if known is not None and name not in known:
                raise self.error(key, f"{what}: {unknown('key', name, known)}")
            found[name] = Entry(key.start_mark.line + 1, value)
        return found

    def _key(self, key: yaml.Node, what: str) -> str:
        if not isinstance(key, yaml.ScalarNode):
            raise self.error(key, f"{what}: a name must be text")
        if not key.tag.endswith((":str", ":merge")):
            raise self.error(key, f"{what}: {key.value} is no text in YAML; write '{key.value}'")
        return str(key.value)

    def value(self, keys: Entries, name: str, kind: type, what: str, default: Any = None) -> Any:
        """What a key says, which must be of this type; without the key, the default."""
        if name not in keys:
            return default
        node = keys[name].node
        if id(node) in self._filled and kind is not str:
            node.tag = self._reader.resolve(yaml.ScalarNode, node.value, (True, False))
        value = self.plain(node)
        if type(value) is kind:
            return value
        hint = ""
        if kind is str and isinstance(node, yaml.ScalarNode):
            hint = f"; write '{node.value}'"
        raise self.error(node, f"{what}: {name} must be {_TYPES[kind]}{hint}")

    def words(self, node: yaml.Node, what: str) -> dict[str, str]:
        """A mapping whose values are taken as they are written: ``1_000`` is no number here."""
        entries = self.mapping(node, what)
        return {name: self.word(entry.node, f"{what}: {name}") for name, entry in entries.items()}

    def word(self, node: yaml.Node, what: str) -> str:
        """The text of a value, as it is written."""
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, f"{what} must be text or a number")
        if self.is_null(node):
            hint = f"write '{node.value}'" if node.value else "nothing is there; write '' for that"
            raise self.error(node, f"{what} must be text or a number; {hint}")
        return str(node.value)

    def plain(self, node: yaml.Node) -> Any:
        try:
            return self._reader.construct_object(node, deep=True)
        except (ValueError, OverflowError) as problem:  # a date in a 13th month
            raise self.error(node, f"can't be read: {problem}; in quotes it is text") from None

    @staticmethod
    def is_null(node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")

    def error(self, where: yaml.Node | int, problem: str) -> WarrenError:
        line = where if isinstance(where, int) else where.start_mark.line + 1
        return self._error(self._name, line, problem)


@contextmanager
def opened(
    text: str, name: str, error: Callable[[str, int, str], WarrenError]
) -> Iterator[YamlFile]:
    """The file while it is read; what is not YAML becomes an error of the same kind."""
    reader = None
    try:
        reader = yaml.SafeLoader(text)
        yield YamlFile(reader, name, error)
    except ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        sign = f"a character that no text has, #x{ord(text[problem.position]):04x}"
        raise error(name, line, f"not YAML: {sign}") from None
    except RecursionError:
        raise error(name, 0, "not YAML that can be read: too many brackets in brackets") from None
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 0
        raise error(name, line, f"not YAML: {problem.problem or problem.context}") from None
    except yaml.YAMLError as problem:
        raise error(name, 0, f"not YAML: {' '.join(str(problem).split())}") from None
    finally:
        if reader is not None:
            reader.dispose()


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"
    return f"unknown {what} '{name}'; {hint}"
