"""Every error that warren raises.

::

    WarrenError
      ConfigError                     a bad option; names the option and where it came from
      UsageError                      a command line that makes no sense
      ListenError                     the port is taken, or not ours to take
      NotStarted                      a broker was asked for what it knows only while it runs
      BrokerStopped                   a broker was told to do something after its end
      AdminError                      users, permissions, limits: a change that can't be made
      ClientError                     what a client of a broker can run into
        ConnectError                  no connection: HostUnreachable  LoginRefused  VhostRefused
                                      MechanismRefused  TlsFailed  NotAmqp
        ConnectionLost  ConnectionClosed  ChannelClosed  NoChannelLeft  ConsumerCancelled
        PublishFailed                 Nacked  Unroutable  Unconfirmed  PublisherBlocked
                                      RowRefused  ReplayStopped
      ManagementError                 a call to a management API that came to nothing
        ApiUnreachable  ApiTimedOut  ApiUntrusted  NotManagement  ApiLoginRefused
        OtherBroker  ApiRefused (ApiMissing)  TopologyHalfDone
      FileError                       a file that people write: names the line
        TopologyError  PipelineError
      TopologyRefused                 a topology file that the broker would refuse
      ProtocolError                   the peer's bytes are not AMQP
      StoreError                      the data folder can't be used; nothing in it was touched
        StoreDamaged  StoreInUse  StoreTooNew  StoreUnusable
      SourceError                     a Spark source can't go on
        LedgerError                   LedgerUnusable  LedgerDamaged  LedgerTooNew
                                      LedgerGone (LedgerNotSeen)
                                      LedgerInUse  LedgerMismatch  LedgerPruned  LedgerGap
                                      ReadTooOld  ReadByAnother  LoadedTwice
        QueueMissing  QueueUnavailable  QueueBusy  QueueAutoDeletes  QueueExclusive
        NotSingleActive  KindUnknown  OffsetGone  StreamReplaced  ReadRefused
      RowsNotTaken                    a Spark sink publishes where nothing is there
      PipelineStopped                 a pipeline could not go on
      DecodeFailed                    a body that is not what its properties say
      HandlerSignal                   raised by a handler to say what becomes of its message
        Reject  Retry
      SparkMissing  JavaMissing       what a Spark session needs is not there
      NotPrepared                     what would let Spark start sooner could not be made
      PackageMissing                  a package that reads some bodies is not there
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

from warren.errors.base import (
    AdminError,
    BrokerStopped,
    ConfigError,
    FileError,
    ListenError,
    NotStarted,
    ProtocolError,
    UsageError,
    WarrenError,
)
from warren.errors.client import (
    ChannelClosed,
    ClientError,
    ConnectError,
    ConnectionClosed,
    ConnectionLost,
    ConsumerCancelled,
    HostUnreachable,
    LoginRefused,
    MechanismRefused,
    Nacked,
    NoChannelLeft,
    NotAmqp,
    PublisherBlocked,
    PublishFailed,
    ReplayStopped,
    RowRefused,
    TlsFailed,
    Unconfirmed,
    Unroutable,
    VhostRefused,
)
from warren.errors.groups import (
    DecodeFailed,
    Fenced,
    GroupError,
    HandlerSignal,
    NoSuchGroup,
    Reject,
    Retry,
)
from warren.errors.management import (
    ApiLoginRefused,
    ApiMissing,
    ApiRefused,
    ApiTimedOut,
    ApiUnreachable,
    ApiUntrusted,
    ManagementError,
    NotManagement,
    OtherBroker,
    TopologyError,
    TopologyHalfDone,
    TopologyRefused,
)
from warren.errors.pipeline import PipelineError, PipelineStopped
from warren.errors.refusals import (
    AccessRefused,
    ChannelError,
    CommandInvalid,
    ConnectionForced,
    FrameError,
    InternalError,
    Locked,
    MalformedText,
    NotAllowed,
    NotFound,
    NothingDeclared,
    NotImplementedByBroker,
    OtherRefusal,
    PreconditionFailed,
    Refusal,
    ResourceError,
    ResourceLocked,
    SingleActiveOnly,
    SyntaxRefused,
    TooManyChannels,
    Unavailable,
    UnexpectedFrame,
)
from warren.errors.spark import (
    JavaMissing,
    KindUnknown,
    LedgerDamaged,
    LedgerError,
    LedgerGap,
    LedgerGone,
    LedgerInUse,
    LedgerMismatch,
    LedgerNotSeen,
    LedgerPruned,
    LedgerTooNew,
    LedgerUnusable,
    LoadedTwice,
    NotPrepared,
    NotSingleActive,
    OffsetGone,
    PackageMissing,
    QueueAutoDeletes,
    QueueBusy,
    QueueExclusive,
    QueueMissing,
    QueueUnavailable,
    ReadByAnother,
    ReadRefused,
    ReadTooOld,
    RowsNotTaken,
    SourceError,
    SparkMissing,
    StreamReplaced,
)
from warren.errors.store import (
    StoreDamaged,
    StoreError,
    StoreInUse,
    StoreTooNew,
    StoreUnusable,
)

__all__ = [
    "AccessRefused",
    "AdminError",
    "ApiLoginRefused",
    "ApiMissing",
    "ApiRefused",
    "ApiTimedOut",
    "ApiUnreachable",
    "ApiUntrusted",
    "BrokerStopped",
    "ChannelClosed",
    "ChannelError",
    "ClientError",
    "CommandInvalid",
    "ConfigError",
    "ConnectError",
    "ConnectionClosed",
    "ConnectionForced",
    "ConnectionLost",
    "ConsumerCancelled",
    "DecodeFailed",
    "Fenced",
    "FileError",
    "FrameError",
    "GroupError",
    "HandlerSignal",
    "HostUnreachable",
    "InternalError",
    "JavaMissing",
    "KindUnknown",
    "LedgerDamaged",
    "LedgerError",
    "LedgerGap",
    "LedgerGone",
    "LedgerInUse",
    "LedgerMismatch",
    "LedgerNotSeen",
    "LedgerPruned",
    "LedgerTooNew",
    "LedgerUnusable",
    "ListenError",
    "LoadedTwice",
    "Locked",
    "LoginRefused",
    "MalformedText",
    "ManagementError",
    "MechanismRefused",
    "Nacked",
    "NoChannelLeft",
    "NoSuchGroup",
    "NotAllowed",
    "NotAmqp",
    "NotFound",
    "NotImplementedByBroker",
    "NotManagement",
    "NotPrepared",
    "NotSingleActive",
    "NotStarted",
    "NothingDeclared",
    "OffsetGone",
    "OtherBroker",
    "OtherRefusal",
    "PackageMissing",
    "PipelineError",
    "PipelineStopped",
    "PreconditionFailed",
    "ProtocolError",
    "PublishFailed",
    "PublisherBlocked",
    "QueueAutoDeletes",
    "QueueBusy",
    "QueueExclusive",
    "QueueMissing",
    "QueueUnavailable",
    "ReadByAnother",
    "ReadRefused",
    "ReadTooOld",
    "Refusal",
    "Reject",
    "ReplayStopped",
    "ResourceError",
    "ResourceLocked",
    "Retry",
    "RowRefused",
    "RowsNotTaken",
    "SingleActiveOnly",
    "SourceError",
    "SparkMissing",
    "StoreDamaged",
    "StoreError",
    "StoreInUse",
    "StoreTooNew",
    "StoreUnusable",
    "StreamReplaced",
    "SyntaxRefused",
    "TlsFailed",
    "TooManyChannels",
    "TopologyError",
    "TopologyHalfDone",
    "TopologyRefused",
    "Unavailable",
    "Unconfirmed",
    "UnexpectedFrame",
    "Unroutable",
    "UsageError",
    "VhostRefused",
    "WarrenError",
]
