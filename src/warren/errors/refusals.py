"""Refusals: an AMQP reply code, RabbitMQ's words, and what it closes."""

from __future__ import annotations

from typing import ClassVar

from warren.errors.base import WarrenError


class Refusal(WarrenError):
    """An operation that the broker refuses, with its AMQP reply code.

    ``scope`` says what the refusal closes: the channel, or the whole connection.
    """

    code: ClassVar[int] = 541
    word: ClassVar[str] = "INTERNAL_ERROR"
    scope: ClassVar[str] = "connection"
    #: True if the close method names no class and method.
    anonymous: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text

    @property
    def reply_text(self) -> str:
        """The text that goes over the wire, RabbitMQ's way."""
        return f"{self.word} - {self}"


class ConnectionForced(Refusal):
    code, word = 320, "CONNECTION_FORCED"


class AccessRefused(Refusal):
    code, word, scope = 403, "ACCESS_REFUSED", "channel"


def is_no_permission(refusal: object) -> bool:
    """The user lacks a permission; a queue that somebody else holds is refused by 403 as well."""
    return isinstance(refusal, AccessRefused) and "refused for user" in refusal.text


class NotFound(Refusal):
    """A queue, exchange or vhost that is not there."""

    code, word, scope = 404, "NOT_FOUND", "channel"

    def __init__(self, kind: str, name: str, vhost: str) -> None:
        super().__init__(f"no {kind} '{name}' in vhost '{vhost}'")
        self.args = (kind, name, vhost)
        self.kind, self.name, self.vhost = kind, name, vhost


class Unavailable(NotFound):
    """A 404 in other words, such as a queue whose node is down."""

    def __init__(self, text: str) -> None:
        super().__init__("", "", "")
        self.args = (text,)
        self.text = text


class NothingDeclared(Refusal):
    """An empty queue name, and no queue was declared on the channel before."""

    code, word, scope = 404, "NOT_FOUND", "channel"

    def __init__(self) -> None:
        super().__init__("no previously declared queue")
        self.args = ()


class ResourceLocked(Refusal):
    """An exclusive queue of another connection."""

    code, word, scope = 405, "RESOURCE_LOCKED", "channel"

    def __init__(self, queue: str, vhost: str) -> None:
        super().__init__(
            f"cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'. "
            "It could be originally declared on another connection or the exclusive property "
            "value does not match that of the original declaration."
        )
        self.args = (queue, vhost)
        self.queue, self.vhost = queue, vhost


class Locked(ResourceLocked):
    """A 405 in other words."""

    def __init__(self, text: str) -> None:
        super().__init__("", "")
        self.args = (text,)
        self.text = text


class SingleActiveOnly(Refusal):
    """basic.get on a quorum queue with a single active consumer."""

    code, word, scope = 405, "RESOURCE_LOCKED", "channel"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"cannot obtain access to locked {where}. basic.get operations are not supported by "
            "quorum queues with single active consumer"
        )
        self.args = (where,)
        self.where = where


class PreconditionFailed(Refusal):
    code, word, scope = 406, "PRECONDITION_FAILED", "channel"


class FrameError(Refusal):
    code, word = 501, "FRAME_ERROR"


class MalformedText(FrameError):
    """A short string that is not UTF-8."""

    anonymous = True

    def __init__(self) -> None:
        super().__init__("Malformed UTF-8 in shortstr")
        self.args = ()


class SyntaxRefused(Refusal):
    code, word = 502, "SYNTAX_ERROR"


class CommandInvalid(Refusal):
    code, word = 503, "COMMAND_INVALID"


class ChannelError(Refusal):
    code, word = 504, "CHANNEL_ERROR"


class UnexpectedFrame(Refusal):
    code, word = 505, "UNEXPECTED_FRAME"


class ResourceError(Refusal):
    code, word = 506, "RESOURCE_ERROR"


class NotAllowed(Refusal):
    code, word = 530, "NOT_ALLOWED"


class TooManyChannels(NotAllowed):
    """A user's channels, over all of its connections, have reached their limit."""

    anonymous = True

    def __init__(self, user: str, limit: int) -> None:
        super().__init__(
            f"number of channels opened for user '{user}' has reached the maximum allowed user "
            f"limit of ({limit})"
        )
        self.args = (user, limit)
        self.user, self.limit = user, limit


class NotImplementedByBroker(Refusal):
    code, word = 540, "NOT_IMPLEMENTED"


class OtherRefusal(Refusal):
    """A reply code that has no class of its own."""

    def __init__(self, reply_code: int, text: str) -> None:
        super().__init__(text)
        self.args = (reply_code, text)
        self.reply_code = reply_code

    def __str__(self) -> str:
        return f"{self.reply_code} {self.text}"


class InternalError(Refusal):
    """Something RabbitMQ dies of: the peer is told the code, and nothing else."""

    code, word, anonymous = 541, "INTERNAL_ERROR", True

    @property
    def reply_text(self) -> str:
        return self.word
