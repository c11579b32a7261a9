from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Iterator
from typing import Any

import pytest

from warren import errors
from warren.errors import ConfigError, ListenError, NotFound, Refusal, ResourceLocked, WarrenError

EXAMPLES = {"str": "some 'text'", "int": 5, "int | None": 5, "float": 2.5, "bool": True}


def family(of: type[WarrenError] = WarrenError) -> Iterator[type[WarrenError]]:
    yield of
    for child in of.__subclasses__():
        if child.__module__.startswith(f"{errors.__name__}."):
            yield from family(child)


each_error = pytest.mark.parametrize("cls", list(family()), ids=lambda cls: cls.__name__)


def made(cls: type[WarrenError]) -> WarrenError:
    """An error of a class, with something for each of its arguments."""
    if cls.__init__ is Exception.__init__:
        return cls("some text")
    parameters = list(inspect.signature(cls).parameters.values())
    return cls(*(EXAMPLES[parameter.annotation] for parameter in parameters))


def facts(error: WarrenError) -> tuple[Any, ...]:
    return type(error), error.args, vars(error), str(error)


@each_error
def test_an_error_survives_pickling(cls: type[WarrenError]) -> None:
    error = made(cls)

    assert facts(pickle.loads(pickle.dumps(error))) == facts(error)
    assert facts(copy.copy(error)) == facts(error)


@each_error
def test_an_error_is_drawn_in_the_tree(cls: type[WarrenError]) -> None:
    assert re.search(rf"\b{cls.__name__}\b", errors.__doc__ or "")


@each_error
def test_an_error_has_something_to_say(cls: type[WarrenError]) -> None:
    assert str(made(cls)).strip()


def test_the_tree_names_nothing_that_is_not_there() -> None:
    drawn = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", errors.__doc__ or ""))

    assert drawn <= {cls.__name__ for cls in family()}


def test_a_reply_code_is_drawn_with_its_error() -> None:
    for name, code in re.findall(r"(\w+) (\d{3})\b", errors.__doc__ or ""):
        assert getattr(errors, name).code == int(code)


@pytest.mark.parametrize("cls", list(family(Refusal)), ids=lambda cls: cls.__name__)
def test_a_refusal_knows_its_code_its_word_and_what_it_closes(cls: type[Refusal]) -> None:
    refusal = made(cls)
    assert isinstance(refusal, Refusal)

    assert 300 <= refusal.code < 600
    assert refusal.scope in ("channel", "connection")
    assert refusal.reply_text.startswith(refusal.word)
    assert re.fullmatch("[A-Z_]+", refusal.word)


def test_facts_are_attributes_and_the_sentence_is_made_of_them() -> None:
    missing = NotFound("queue", "orders", "/")
    assert (missing.kind, missing.name, missing.vhost) == ("queue", "orders", "/")
    assert missing.reply_text == "NOT_FOUND - no queue 'orders' in vhost '/'"

    assert str(ConfigError("port", "is taken", "WARREN_PORT")) == "port (WARREN_PORT): is taken"
    assert str(ListenError("localhost", 5672, "why")) == "can't listen on localhost:5672: why"
    assert ResourceLocked("q", "/").queue == "q"
