"""Every error that warren raises.

::

    WarrenError
      ConfigError                     a bad option; names the option and where it came from
      ListenError                     the port is taken, or not ours to take
      AdminError                      users, permissions, limits: a change that can't be made
      ProtocolError                   the peer's bytes are not AMQP
      StoreError                      the data folder can't be used; nothing in it was touched
        StoreDamaged  StoreInUse  StoreTooNew  StoreUnusable
      Refusal                         an AMQP reply code, and what it closes
        AccessRefused 403  NotFound 404  NothingDeclared 404  ResourceLocked 405
        SingleActiveOnly 405  PreconditionFailed 406
        ConnectionForced 320  FrameError 501 (MalformedText)  SyntaxRefused 502  CommandInvalid 503
        ChannelError 504  UnexpectedFrame 505  ResourceError 506  NotAllowed 530 (TooManyChannels)
        NotImplementedByBroker 540  InternalError 541

Facts are attributes; the sentence is made in ``__str__``. Positional arguments mirror the
signature, so that every error survives pickling.
"""

from __future__ import annotations

from typing import ClassVar


class WarrenError(Exception):
    """Base of everything below."""


class ConfigError(WarrenError):
    """A setting that can't be used, and what to do about it."""

    def __init__(self, option: str, problem: str, source: str = "argument") -> None:
        super().__init__(option, problem, source)
        self.option, self.problem, self.source = option, problem, source

    def __str__(self) -> str:
        return f"{self.option} ({self.source}): {self.problem}"


class ListenError(WarrenError):
    """The broker could not listen where it was told to."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(host, port, reason)
        self.host, self.port, self.reason = host, port, reason

    def __str__(self) -> str:
        return f"can't listen on {self.host}:{self.port}: {self.reason}"


class StoreError(WarrenError):
    """A data folder that can't be used as it is."""


class StoreDamaged(StoreError):
    """The store's file is not what warren wrote."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file, self.reason = file, reason

    def __str__(self) -> str:
        return (
            f"{self.file} is damaged or not a warren store ({self.reason}); nothing was changed. "
            "Restore it from a backup, or start with another data folder."
        )


class StoreInUse(StoreError):
    """Another broker has the data folder open."""

    def __init__(self, folder: str, holder: str) -> None:
        super().__init__(folder, holder)
        self.folder, self.holder = folder, holder

    def __str__(self) -> str:
        return (
            f"the data folder {self.folder} is in use by {self.holder}; stop it, or give this "
            "broker a folder of its own"
        )


class StoreUnusable(StoreError):
    """The data folder can't be made, read or written."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(folder, reason)
        self.folder, self.reason = folder, reason

    def __str__(self) -> str:
        return f"the data folder {self.folder} can't be used: {self.reason}"


class StoreTooNew(StoreError):
    """The data folder was written by another version."""

    def __init__(self, folder: str, found: int, known: int) -> None:
        super().__init__(folder, found, known)
        self.folder, self.found, self.known = folder, found, known

    def __str__(self) -> str:
        return (
            f"the data folder {self.folder} has format {self.found}, this warren knows format "
            f"{self.known}; nothing was changed. Use the version of warren that wrote it."
        )


class AdminError(WarrenError):
    """A change of users, virtual hosts, permissions or limits that can't be made.

    ``kind`` is ``not_found`` or ``bad_request``, as in RabbitMQ's HTTP API.
    """

    def __init__(self, kind: str, text: str, detail: str = "") -> None:
        super().__init__(kind, text, detail)
        self.kind, self.text, self.detail = kind, text, detail

    @property
    def reason(self) -> str | list[str]:
        """What RabbitMQ's HTTP API gives as its reason."""
        return [self.text, self.detail] if self.detail else self.text

    def __str__(self) -> str:
        return f"{self.text}: {self.detail}" if self.detail else self.text


class ProtocolError(WarrenError):
    """Bytes that can't be read as AMQP 0-9-1."""


class Refusal(WarrenError):
    """An operation that the broker refuses, with its AMQP reply code.

    ``scope`` says what the refusal closes: the channel, or the whole connection.
    """

    code: ClassVar[int] = 541
    word: ClassVar[str] = "INTERNAL_ERROR"
    scope: ClassVar[str] = "connection"
    #: True if the close method names no class and method.
    anonymous: ClassVar[bool] = False

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


class NotFound(Refusal):
    """A queue, exchange or vhost that is not there."""

    code, word, scope = 404, "NOT_FOUND", "channel"

    def __init__(self, kind: str, name: str, vhost: str) -> None:
        super().__init__(f"no {kind} '{name}' in vhost '{vhost}'")
        self.args = (kind, name, vhost)
        self.kind, self.name, self.vhost = kind, name, vhost


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


class InternalError(Refusal):
    """Something RabbitMQ dies of: the peer is told the code, and nothing else."""

    code, word, anonymous = 541, "INTERNAL_ERROR", True

    @property
    def reply_text(self) -> str:
        return self.word
