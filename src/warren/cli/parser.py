"""The command line's parser: a mistake is told in one line, with the nearest word that is known."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from warren.errors import UsageError

_TYPES = {"int": "a whole number", "float": "a number"}


class Parser(argparse.ArgumentParser):
    """As argparse's, and its subparsers are of its own kind."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # No abbreviations: "--password x" must not be taken for "--password-stdin" and a word more.
        super().__init__(*arguments, **{"allow_abbrev": False, **options})
        # Of the parsers of a command and its subcommands, the last one's is left in the options.
        self.set_defaults(parser=self)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, left = self.parse_known_args(args, namespace)
        if left:
            options.parser.refuse(left)
        return options

    # -- mistakes --------------------------------------------------------------------------------
    def error(self, message: str) -> NoReturn:
        missing = re.fullmatch("the following arguments are required: (.*)", message)
        if missing:
            self._fail(f"{missing[1]} is missing{self._commands()}")
        needs = re.fullmatch("argument (.*): expected (?:one|at least one) argument", message)
        if needs:
            self._fail(f"{needs[1].split('/')[-1]} needs a value")
        self._fail(message.removeprefix("argument "))

    def _commands(self) -> str:
        """Those below this one, if there are any."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return f": {', '.join(action.choices)}"
        return ""

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Tell what is wrong with words that nobody wanted."""
        name = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if name is None:
            self._fail(f"{words[0]!r} is one word too many")
        known = [each for action in self._actions for each in action.option_strings]
        if name in known:
            self._fail(f"{name} belongs behind '{self.prog}'")
        self._fail(f"there is no option {name}{_near(name, known)}")

    def _fail(self, problem: str) -> NoReturn:
        raise UsageError(self.prog, problem)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            self._fail(f"there is no command {value!r}{_near(value, action.choices)}")
        name = action.option_strings[-1] if action.option_strings else action.metavar
        known = ", ".join(map(str, action.choices))
        self._fail(f"{name}: {value!r} is not one of {known}{_near(value, action.choices)}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            name = action.option_strings[-1] if action.option_strings else action.metavar
            kind = getattr(action.type, "__name__", "value")
            self._fail(f"{name}: {arg_string!r} is not {_TYPES.get(kind, f'a {kind}')}")


def _near(word: Any, known: Iterable[Any]) -> str:
    near = difflib.get_close_matches(str(word), [str(each) for each in known], 1, 0.5)
    return f"; did you mean {near[0]}?" if near else ""
