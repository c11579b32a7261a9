"""What a client of a broker can run into."""

from __future__ import annotations

from typing import ClassVar

from warren.errors.base import WarrenError


class ClientError(WarrenError):
    """What a client of a broker can run into, apart from refusals."""

    exit_code: ClassVar[int] = 1


class ConnectError(ClientError):
    """No connection could be made."""


class HostUnreachable(ConnectError):
    """Nobody answers at the address."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return (
            f"no broker answers at {self.address} ({self.reason}): start it there, or correct "
            "host and port in the URL"
        )


class LoginRefused(ConnectError):
    """The broker does not know the user, or not this password."""

    def __init__(self, address: str, user: str) -> None:
        super().__init__(address, user)
        self.address, self.user = address, user

    def __str__(self) -> str:
        return (
            f"the broker at {self.address} refused the login of '{self.user}': correct user and "
            "password in the URL (amqp://user:password@host); guest may often log in from the "
            "broker's own machine only"
        )


class MechanismRefused(ConnectError):
    """The broker does not offer the way in which the client wants to log in."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return (
            f"can't log in at {self.address}: {self.reason}. Change auth_mechanism in the URL, or "
            "what the broker allows"
        )


class VhostRefused(ConnectError):
    """The broker has no such virtual host, or not for this user."""

    def __init__(self, address: str, vhost: str, reason: str) -> None:
        super().__init__(address, vhost, reason)
        self.address, self.vhost, self.reason = address, vhost, reason

    def __str__(self) -> str:
        return (
            f"the broker at {self.address} does not open virtual host '{self.vhost}' "
            f"({self.reason}): create it and give the user permissions in it, or correct the path "
            "of the URL (amqp://host/name; amqp://host for '/')"
        )


class TlsFailed(ConnectError):
    """The two sides don't come to an encrypted connection."""

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        super().__init__(address, reason, remedy)
        self.address, self.reason, self.remedy = address, reason, remedy

    def __str__(self) -> str:
        return f"no TLS connection to {self.address} ({self.reason}): {self.remedy}"


class NotAmqp(ConnectError):
    """Something listens at the address, and it is no broker of AMQP 0-9-1."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return f"no AMQP 0-9-1 at {self.address}: {self.reason}"


class ConnectionLost(ClientError):
    """The connection broke while something waited for it."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return f"the connection to {self.address} is lost: {self.reason}"


class ConnectionClosed(ClientError):
    """The connection was closed by its owner."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return f"the connection to {self.address} was closed; open a new one"


class ChannelClosed(ClientError):
    """The channel is closed; ``reason`` says by whom and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the channel is closed ({self.reason}); open a new one"


class NoChannelLeft(ClientError):
    """All channels that the connection may have are in use."""

    def __init__(self, channel_max: int) -> None:
        super().__init__(channel_max)
        self.channel_max = channel_max

    def __str__(self) -> str:
        return (
            f"all {self.channel_max} channels of the connection are in use: close some, open "
            "another connection, or raise the broker's channel_max"
        )


class ConsumerCancelled(ClientError):
    """The broker has ended a consumer: its queue is gone, or has moved."""

    def __init__(self, queue: str, consumer_tag: str) -> None:
        super().__init__(queue, consumer_tag)
        self.queue, self.consumer_tag = queue, consumer_tag

    def __str__(self) -> str:
        return f"the broker cancelled consumer '{self.consumer_tag}' of queue '{self.queue}'"


class PublishFailed(ClientError):
    """A message that the broker has not taken, or not for certain."""


class Nacked(PublishFailed):
    """The broker says that it could not take the message."""

    def __init__(self, exchange: str, routing_key: str) -> None:
        super().__init__(exchange, routing_key)
        self.exchange, self.routing_key = exchange, routing_key

    def __str__(self) -> str:
        return (
            f"the broker did not take a message to exchange {self.exchange!r} with routing key "
            f"{self.routing_key!r}: a queue is full (overflow reject-publish) or failed; publish "
            "it again later"
        )


class Unroutable(PublishFailed):
    """A mandatory message came back: no queue would have got it."""

    def __init__(self, exchange: str, routing_key: str, code: int, text: str) -> None:
        super().__init__(exchange, routing_key, code, text)
        self.exchange, self.routing_key, self.code, self.text = exchange, routing_key, code, text

    def __str__(self) -> str:
        return (
            f"exchange {self.exchange!r} has no queue for routing key {self.routing_key!r} "
            f"({self.code} {self.text})"
        )


class Unconfirmed(PublishFailed):
    """The connection or channel ended before the broker's answer: it may have the message."""

    def __init__(self, exchange: str, routing_key: str, reason: str) -> None:
        super().__init__(exchange, routing_key, reason)
        self.exchange, self.routing_key, self.reason = exchange, routing_key, reason

    def __str__(self) -> str:
        return (
            f"nobody knows whether the broker took a message to exchange {self.exchange!r} with "
            f"routing key {self.routing_key!r}: {self.reason}"
        )


class RowRefused(PublishFailed):
    """A row of a table that can't be a message."""

    def __init__(self, column: str, row: int, problem: str) -> None:
        super().__init__(column, row, problem)
        self.column, self.row, self.problem = column, row, problem

    def __str__(self) -> str:
        return f"column '{self.column}', row {self.row} of its partition: {self.problem}"


class PublisherBlocked(PublishFailed):
    """The broker takes no messages: it is short of memory or disk."""

    def __init__(self, reason: str, waited_s: float) -> None:
        super().__init__(reason, waited_s)
        self.reason, self.waited_s = reason, waited_s

    def __str__(self) -> str:
        return (
            f"the broker has taken no messages for {self.waited_s:.0f} s ({self.reason}): free "
            "its memory or disk, by consuming for example, and publish again"
        )


class ReplayStopped(PublishFailed):
    """Publishing what a ledger holds ended before its last message.

    ``reached``: each message before this offset is confirmed; None if nothing was published.
    """

    def __init__(self, queue: str, reason: str, confirmed: int, reached: int | None) -> None:
        super().__init__(queue, reason, confirmed, reached)
        self.queue, self.reason = queue, reason
        self.confirmed, self.reached = confirmed, reached

    def __str__(self) -> str:
        if self.reached is None:
            return f"{self.reason}; nothing was published to queue '{self.queue}'"
        return (
            f"{self.reason}; {self.confirmed} messages were published to queue '{self.queue}' and "
            f"confirmed, among them all before offset {self.reached}: go on with --from "
            f"{self.reached} (messages from there on that were on their way, a thousand at most, "
            "may be in the queue as well)"
        )
