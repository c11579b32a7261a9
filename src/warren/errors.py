"""Every error that warren raises.

::

    WarrenError
      ConfigError                     a bad option; names the option and where it came from
      UsageError                      a command line that makes no sense
      ListenError                     the port is taken, or not ours to take
      NotStarted                      a broker was asked for what it knows only while it runs
      AdminError                      users, permissions, limits: a change that can't be made
      ClientError                     what a client of a broker can run into
        ConnectError                  no connection: HostUnreachable  LoginRefused  VhostRefused
                                      MechanismRefused  TlsFailed  NotAmqp
        ConnectionLost  ConnectionClosed  ChannelClosed  NoChannelLeft  ConsumerCancelled
        PublishFailed                 Nacked  Unroutable  Unconfirmed  PublisherBlocked
                                      RowRefused
      ManagementError                 a call to a management API that came to nothing
        ApiUnreachable  ApiTimedOut  ApiUntrusted  NotManagement  ApiLoginRefused
        ApiRefused (ApiMissing)  TopologyHalfDone
      TopologyError                   a topology file that can't be read; names the line
      TopologyRefused                 a topology file that the broker would refuse
      ProtocolError                   the peer's bytes are not AMQP
      StoreError                      the data folder can't be used; nothing in it was touched
        StoreDamaged  StoreInUse  StoreTooNew  StoreUnusable
      SourceError                     a Spark source can't go on
        LedgerError                   LedgerUnusable  LedgerDamaged  LedgerTooNew  LedgerGone
                                      LedgerInUse  LedgerMismatch
        QueueMissing  QueueBusy  NotSingleActive  OffsetGone
      DecodeFailed                    a body that is not what its properties say
      HandlerSignal                   raised by a handler to say what becomes of its message
        Reject  Retry
      SparkMissing  JavaMissing       what a Spark session needs is not there
      GroupError                      a consumer group can't do what it was asked
        Fenced  NoSuchGroup
      Refusal                         an AMQP reply code, and what it closes
        AccessRefused 403  NotFound 404 (Unavailable)  NothingDeclared 404
        ResourceLocked 405 (Locked)  OtherRefusal
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


class UsageError(WarrenError):
    """A command line that makes no sense."""

    def __init__(self, command: str, problem: str) -> None:
        super().__init__(command, problem)
        self.command, self.problem = command, problem

    def __str__(self) -> str:
        return f"{self.problem} ('{self.command} --help' shows how)"


class ListenError(WarrenError):
    """The broker could not listen where it was told to.

    ``remedy`` has a place for the name of the ``setting`` to change.
    """

    def __init__(
        self, host: str, port: int, reason: str, setting: str = "", remedy: str = ""
    ) -> None:
        super().__init__(host, port, reason, setting, remedy)
        self.host, self.port, self.reason = host, port, reason
        self.setting, self.remedy = setting, remedy

    def __str__(self) -> str:
        remedy = f" ({self.remedy.format(self.setting)})" if self.remedy else ""
        return f"can't listen on {self.host}:{self.port}: {self.reason}{remedy}"


class NotStarted(WarrenError):
    """A broker was asked for what it knows only while it runs."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"the broker has not started, so its {self.what} is not known yet: ask inside "
            "'async with Broker(port=0) as broker', or 'with Broker.in_thread() as broker'"
        )


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


class DecodeFailed(WarrenError):
    """A body can't be decoded as its content-type or content-encoding says."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind, self.reason = kind, reason

    def __str__(self) -> str:
        return f"not decodable as {self.kind}: {self.reason}"


class HandlerSignal(WarrenError):
    """Raised by a handler to say what becomes of its message."""


class Reject(HandlerSignal):
    """No attempt will ever work: dead-letter the message now."""

    def __init__(self, reason: str = "rejected by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Retry(HandlerSignal):
    """Try again after this time, whatever the backoff says. It counts as an attempt."""

    def __init__(self, after_s: float, reason: str = "the handler asked for a retry") -> None:
        super().__init__(after_s, reason)
        self.after_s, self.reason = after_s, reason

    def __str__(self) -> str:
        return self.reason


class ManagementError(WarrenError):
    """The management API did not do what was asked."""

    #: Of a command that ends with it: the command was right, and it failed.
    exit_code: ClassVar[int] = 1


class ApiUnreachable(ManagementError):
    """Nobody answers at the address."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return (
            f"nothing answers at {self.address} ({self.reason}): start the broker there, or say "
            "where its management API is with --url or WARREN_URL"
        )


class ApiTimedOut(ManagementError):
    """The server took the call, or the connection, and did not answer."""

    def __init__(self, address: str, timeout_s: float) -> None:
        super().__init__(address, timeout_s)
        self.address, self.timeout_s = address, timeout_s

    def __str__(self) -> str:
        return (
            f"{self.address} has not answered within {self.timeout_s:g} s: "
            "--timeout-s gives it longer"
        )


class ApiUntrusted(ManagementError):
    """The server's certificate is signed by nobody we know."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return (
            f"the certificate of {self.address} is not to be trusted ({self.reason}): --ca-file "
            "names the file with the certificate of its authority"
        )


class NotManagement(ManagementError):
    """Something answers, but not a management API."""

    def __init__(self, address: str, what: str) -> None:
        super().__init__(address, what)
        self.address, self.what = address, what

    def __str__(self) -> str:
        return (
            f"{self.address} is no management API ({self.what}): give its address with --url or "
            "WARREN_URL; its port is usually 15672, or 15671 with https"
        )


class ApiLoginRefused(ManagementError):
    """Wrong name or password, or a user who may not use the management API."""

    def __init__(self, address: str, user: str, reason: str) -> None:
        super().__init__(address, user, reason)
        self.address, self.user, self.reason = address, user, reason

    def __str__(self) -> str:
        if self.reason.lower() == "login failed":
            scheme = self.address.partition(":")[0]
            return (
                f"{self.address} does not let user '{self.user}' in: wrong name or password; give "
                f"them with --url {scheme}://NAME@HOST:PORT and WARREN_PASSWORD"
            )
        return f"{self.address} does not let user '{self.user}' in: {self.reason}"


class ApiRefused(ManagementError):
    """The server understood and said no."""

    def __init__(self, what: str, status: int, reason: str) -> None:
        super().__init__(what, status, reason)
        self.what, self.status, self.reason = what, status, reason

    def __str__(self) -> str:
        return f"can't {self.what}: {self.reason}"


class ApiMissing(ApiRefused):
    """What the call is about is not there."""


class TopologyError(WarrenError):
    """A topology file that can't be taken as it is."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(file, line, problem)
        self.file, self.line, self.problem = file, line, problem

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.problem}"


class TopologyRefused(WarrenError):
    """The broker would refuse a part of the file; nothing was done."""

    exit_code: ClassVar[int] = 1

    def __init__(self, file: str, count: int) -> None:
        super().__init__(file, count)
        self.file, self.count = file, count

    def __str__(self) -> str:
        parts = "one thing" if self.count == 1 else f"{self.count} things"
        return f"the broker would refuse {parts} in {self.file} (see !): nothing was changed"


class TopologyHalfDone(ManagementError):
    """The broker refused something that could not be foreseen."""

    def __init__(self, problem: str, left: str) -> None:
        super().__init__(problem, left)
        self.problem, self.left = problem, left

    def __str__(self) -> str:
        return f"{self.problem} ({self.left}; apply again does the rest)"


class GroupError(WarrenError):
    """A consumer group can't do what it was asked."""


class Fenced(GroupError):
    """Another process is in the group under this member's name."""

    def __init__(self, group: str, member: str) -> None:
        super().__init__(group, member)
        self.group, self.member = group, member

    def __str__(self) -> str:
        return (
            f"another process is in group '{self.group}' as '{self.member}'; give each process "
            "a member_name of its own"
        )


class NoSuchGroup(GroupError):
    """Nobody is in the group, so nobody can answer."""

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self.group = group

    def __str__(self) -> str:
        return f"nobody is in group '{self.group}'; start a member first"


class SourceError(WarrenError):
    """A Spark source can't go on."""


class LedgerError(SourceError):
    """A ledger that can't be used; nothing was acknowledged that is not safe in it."""


class LedgerUnusable(LedgerError):
    """The ledger's files can't be read or written."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} can't be used ({self.reason}); what could not be written "
            "there was not acknowledged, so nothing is lost: make room or repair access, and "
            "start the query again"
        )


class LedgerDamaged(LedgerError):
    """A file of the ledger is not what was written."""

    def __init__(self, place: str, file: str, reason: str) -> None:
        super().__init__(place, file, reason)
        self.place, self.file, self.reason = place, file, reason

    def __str__(self) -> str:
        return (
            f"{self.file} in the ledger {self.place} is damaged ({self.reason}); the messages in "
            "it were acknowledged and are nowhere else: restore the file from a backup (`warren "
            "ledger verify` lists what is wrong), or give its rows up by deleting it"
        )


class LedgerTooNew(LedgerError):
    """The ledger was written in a format this version does not know."""

    def __init__(self, place: str, found: str, known: int) -> None:
        super().__init__(place, found, known)
        self.place, self.found, self.known = place, found, known

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} has format {self.found}, this warren knows format "
            f"{self.known}; nothing was changed. Use the version of warren that wrote it."
        )


class LedgerGone(LedgerError):
    """The ledger is not the one the query began with."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} is not the one this query began with ({self.reason}): "
            "messages that were acknowledged may be in that one only. Put it back; or, if it is "
            "lost for good, start with a new checkpoint"
        )


class LedgerInUse(LedgerError):
    """The ledger belongs to another query."""

    def __init__(self, place: str, owner: str, asking: str) -> None:
        super().__init__(place, owner, asking)
        self.place, self.owner, self.asking = place, owner, asking

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} belongs to {self.owner}, not to {self.asking}: give this "
            "query a ledger of its own. If the other is gone for good and this one is to go on "
            "from what is kept, delete the ledger's file 'owner.json'"
        )


class LedgerMismatch(LedgerError):
    """A segment does not fit the offsets that Spark asks for."""

    def __init__(self, place: str, queue: str, reason: str) -> None:
        super().__init__(place, queue, reason)
        self.place, self.queue, self.reason = place, queue, reason

    def __str__(self) -> str:
        return (
            f"the ledger {self.place} and the checkpoint don't belong together: of queue "
            f"'{self.queue}', {self.reason}"
        )


class QueueMissing(SourceError):
    """A queue that is to be read is not there."""

    def __init__(self, queue: str, vhost: str) -> None:
        super().__init__(queue, vhost)
        self.queue, self.vhost = queue, vhost

    def __str__(self) -> str:
        return (
            f"no queue '{self.queue}' in vhost '{self.vhost}': declare it, correct the option "
            "'queues', or wait for it with option onMissingQueue=wait"
        )


class QueueBusy(SourceError):
    """Somebody else consumes from the queue."""

    def __init__(self, queue: str, waited_s: float) -> None:
        super().__init__(queue, waited_s)
        self.queue, self.waited_s = queue, waited_s

    def __str__(self) -> str:
        return (
            f"queue '{self.queue}' has had another consumer for {self.waited_s:g} s, and order "
            "and exactly-once need it alone: stop the other one (`warren list consumers` or the "
            "management page shows it), or give Spark a queue of its own bound to the same exchange"
        )


class OffsetGone(SourceError):
    """A stream no longer holds what is to be read next."""

    def __init__(self, queue: str, wanted: int, found: int) -> None:
        super().__init__(queue, wanted, found)
        self.queue, self.wanted, self.found = queue, wanted, found

    def __str__(self) -> str:
        return (
            f"stream '{self.queue}' was to be read from offset {self.wanted}, and begins at "
            f"{self.found}: its retention has dropped what lies between. Keep more (x-max-age, "
            "x-max-length-bytes), or go on without it with a new checkpoint"
        )


class NotSingleActive(SourceError):
    """A quorum queue without a single active consumer."""

    def __init__(self, queue: str) -> None:
        super().__init__(queue)
        self.queue = queue

    def __str__(self) -> str:
        return (
            f"quorum queue '{self.queue}' lets several consumers in at once, so a task that is "
            "thought dead could take messages beside its successor: declare the queue with the "
            "argument x-single-active-consumer=true (it can't be added later: move the messages "
            "to a new queue)"
        )


class SparkMissing(WarrenError):
    """PySpark can't be imported."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"PySpark is not installed ({self.reason}): pip install 'warren[spark]'"


class JavaMissing(WarrenError):
    """There is no Java that Spark runs on."""

    def __init__(self, oldest: int, found: str = "") -> None:
        super().__init__(oldest, found)
        self.oldest, self.found = oldest, found

    def __str__(self) -> str:
        found = f"{self.found}, which is too old" if self.found else "there is none"
        return (
            f"Spark needs Java {self.oldest} or newer, and neither JAVA_HOME nor PATH nor "
            f"/usr/lib/jvm has it ({found}): install one, as with "
            f"apt-get install openjdk-{self.oldest}-jre-headless, or set JAVA_HOME"
        )


class ClientError(WarrenError):
    """What a client of a broker can run into, apart from refusals."""


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
            f"the broker did not take a message to exchange '{self.exchange}' with routing key "
            f"'{self.routing_key}': a queue is full (overflow reject-publish) or failed; publish "
            "it again later"
        )


class Unroutable(PublishFailed):
    """A mandatory message came back: no queue would have got it."""

    def __init__(self, exchange: str, routing_key: str, code: int, text: str) -> None:
        super().__init__(exchange, routing_key, code, text)
        self.exchange, self.routing_key, self.code, self.text = exchange, routing_key, code, text

    def __str__(self) -> str:
        return (
            f"exchange '{self.exchange}' has no queue for routing key '{self.routing_key}' "
            f"({self.code} {self.text})"
        )


class Unconfirmed(PublishFailed):
    """The connection or channel ended before the broker's answer: it may have the message."""

    def __init__(self, exchange: str, routing_key: str, reason: str) -> None:
        super().__init__(exchange, routing_key, reason)
        self.exchange, self.routing_key, self.reason = exchange, routing_key, reason

    def __str__(self) -> str:
        return (
            f"nobody knows whether the broker took a message to exchange '{self.exchange}' with "
            f"routing key '{self.routing_key}': {self.reason}"
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
