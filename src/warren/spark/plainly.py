"""Errors of ours as a user of Spark sees them: what is wrong, not by which ways it came."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from warren.errors import WarrenError

#: Set in the processes that Spark starts for Python, by each way it has to do so.
_WORKER = "PYTHON_WORKER_FACTORY_"
#: Heeded when a worker tells Java of the error that ends it.
_HIDE = "SPARK_HIDE_TRACEBACK"
C = TypeVar("C", bound=type)


def plainly(cls: C) -> C:
    """Have errors that leave a class, or stop its making, told in one line without a traceback."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or name[0] != "_"):
            setattr(cls, name, _plain(method))
    return cls


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _told_plainly():
            result = method(*args, **kwargs)
        return _each(result) if isinstance(result, Iterator) else result

    return call


def _each(items: Iterator[Any]) -> Iterator[Any]:
    with _told_plainly():
        yield from items


@contextmanager
def _told_plainly() -> Iterator[None]:
    try:
        yield
    except WarrenError:
        # A worker ends with the first error that leaves it: nobody else's is hidden.
        if any(name.startswith(_WORKER) for name in os.environ):
            os.environ[_HIDE] = "1"
        raise
