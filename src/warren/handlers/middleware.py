"""What runs round every handler: before it, after it, and when it failed."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warren.handlers.message import Message


class Middleware:
    """Override what you need; each may be a plain method or an async one.

    ``before`` runs in the order the middlewares were given, ``after`` and ``error`` the other way
    round. An exception raised in ``before`` or ``after`` counts as the handler's own; one raised
    in ``error`` is logged and changes nothing.
    """

    def before(self, message: Message) -> Any:
        """The message is about to be handled."""

    def after(self, message: Message, result: Any) -> Any:
        """The handler returned ``result``; the message is not acknowledged yet."""

    def error(self, message: Message, error: Exception) -> Any:
        """An attempt failed with ``error``; what follows is the retry policy's business."""


class Stack:
    """The middlewares of an app in the order they are called."""

    def __init__(self, middlewares: Iterable[Middleware] = ()) -> None:
        self._all: list[Middleware] = []
        self._before: list[Any] = []
        self._after: list[Any] = []
        self._error: list[Any] = []
        for each in middlewares:
            self.add(each)

    def add(self, middleware: Middleware) -> None:
        self._all.append(middleware)
        # Only what is overridden is called: an empty stack costs nothing a message.
        kind = type(middleware)
        if kind.before is not Middleware.before:
            self._before.append(middleware.before)
        if kind.after is not Middleware.after:
            self._after.insert(0, middleware.after)
        if kind.error is not Middleware.error:
            self._error.insert(0, middleware.error)

    @property
    def empty(self) -> bool:
        return not (self._before or self._after)

    async def before(self, message: Message) -> None:
        for call in self._before:
            await _settled(call(message))

    async def after(self, message: Message, result: Any) -> None:
        for call in self._after:
            await _settled(call(message, result))

    async def error(self, message: Message, error: Exception) -> None:
        for call in self._error:
            await _settled(call(message, error))


async def _settled(value: Any) -> None:
    if inspect.isawaitable(value):
        await value
