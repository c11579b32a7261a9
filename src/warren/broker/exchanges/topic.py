"""The topic exchange: binding keys are patterns over the words between the dots.

``*`` stands for one word, ``#`` for any number of them, none included; an empty word is a
word, an empty key has none. Patterns sit in a trie, so a message walks only along those that
can still match, and all at once: each node is visited at most once a word, however many ``#``
a pattern has.
"""

from __future__ import annotations

from sys import intern
from typing import Any, ClassVar

from warren.broker.exchanges.base import Binding, Exchange, RoutedMessage
from warren.broker.exchanges.tally import Tally, join, leave, members


def words_of(key: str) -> list[str]:
    return key.split(".") if key else []


class _Node:
    """The patterns that begin with the words on the way here."""

    __slots__ = ("children", "hash", "here", "star", "word")

    def __init__(self, word: str) -> None:
        # Words of letters come from a small vocabulary and are kept once; numbers don't.
        self.word = intern(word) if word.isalpha() else word
        self.children: Any = None  # None, the only child, or {word: child}
        self.star: _Node | None = None
        self.hash: _Node | None = None
        self.here: Tally = None  # destinations of the pattern that ends here

    @property
    def empty(self) -> bool:
        return (
            self.here is None and self.children is None and self.star is None and self.hash is None
        )

    def child(self, word: str) -> _Node | None:
        if word == "*":
            return self.star
        if word == "#":
            return self.hash
        children = self.children
        if type(children) is dict:
            found: _Node | None = children.get(word)
            return found
        return children if children is not None and children.word == word else None

    def grow(self, word: str) -> _Node:
        node = _Node(word)
        word = node.word
        if word == "*":
            self.star = node
        elif word == "#":
            self.hash = node
        elif self.children is None:
            self.children = node
        elif type(self.children) is dict:
            self.children[word] = node
        else:
            self.children = {self.children.word: self.children, word: node}
        return node

    def prune(self, word: str) -> None:
        if word == "*":
            self.star = None
        elif word == "#":
            self.hash = None
        elif type(self.children) is not dict:
            self.children = None
        else:
            del self.children[word]
            if len(self.children) == 1:
                (self.children,) = self.children.values()


class _Walk:
    """One message on its way down the trie.

    ``found`` holds the tallies of the patterns that matched for certain.
    """

    __slots__ = ("_open", "_seen", "found")

    def __init__(self) -> None:
        self.found: list[Tally] = []
        # Nodes of a "#" that was reached: they take any number of further words.
        self._open: list[_Node] = []
        self._seen: set[_Node] = set()

    def match(self, root: _Node, words: list[str]) -> list[Tally]:
        reached = [root]
        if root.hash is not None:
            self._enter(root.hash)
        for word in words:
            at = reached + self._open if self._open else reached
            if not at:
                return self.found
            reached = []
            for node in at:
                children = node.children
                if type(children) is dict:
                    children = children.get(word)
                elif children is not None and children.word != word:
                    children = None
                if children is not None:
                    reached.append(children)
                    if children.hash is not None:
                        self._enter(children.hash)
                star = node.star
                if star is not None:
                    reached.append(star)
                    if star.hash is not None:
                        self._enter(star.hash)
        self.found.extend([node.here for node in reached if node.here is not None])
        return self.found

    def _enter(self, node: _Node | None) -> None:
        while node is not None and node not in self._seen:
            self._seen.add(node)
            if node.here is not None:
                self.found.append(node.here)
            if node.children is not None or node.star is not None:
                self._open.append(node)
            node = node.hash  # "#.#": the second may stand for nothing, too


class TopicExchange(Exchange):
    """Destinations by pattern."""

    type: ClassVar[str] = "topic"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._root = _Node("")

    def route(self, routing_key: str, message: RoutedMessage) -> tuple[Any, ...]:
        found = _Walk().match(self._root, words_of(routing_key))
        if not found:
            return ()
        if len(found) == 1:
            return members(found[0])
        each: dict[Any, None] = {}
        for tally in found:
            if type(tally) is dict:
                each.update(dict.fromkeys(tally))
            else:
                each[tally] = None
        return tuple(each)

    def _link(self, binding: Binding) -> None:
        node = self._root
        for word in words_of(binding.routing_key):
            node = node.child(word) or node.grow(word)
        node.here = join(node.here, binding.destination)

    def _unlink(self, binding: Binding) -> None:
        path, node = [], self._root
        for word in words_of(binding.routing_key):
            path.append(node)
            child = node.child(word)
            assert child is not None, "a linked binding has its path"
            node = child
        node.here = leave(node.here, binding.destination)
        while path and node.empty:
            path[-1].prune(node.word)
            node = path.pop()
