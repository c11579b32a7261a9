"""The methods of AMQP 0-9-1 with RabbitMQ's extensions, each as a small frozen class.

A field's annotation is its wire type; the codec of a class is derived from its annotations once,
when the class is made. The hot methods (publish, deliver, ack) are read and written by
``hot`` without passing through here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any, ClassVar, TypeVar, dataclass_transform

from warren.amqp.tables import Table, TableError, decode_table, encode_table, raw

Octet = int
Short = int
Long = int
LongLong = int
ShortStr = str
LongStr = bytes
Bit = bool
FieldTable = Table

#: A field's annotation, by its name, to its wire type.
_DOMAINS = {
    "Octet": "octet",
    "Short": "short",
    "Long": "long",
    "LongLong": "longlong",
    "ShortStr": "shortstr",
    "LongStr": "longstr",
    "Bit": "bit",
    "FieldTable": "table",
}
_NO_FIELDS = Table()
_NUMBERS = {
    "octet": Struct(">B"),
    "short": Struct(">H"),
    "long": Struct(">I"),
    "longlong": Struct(">Q"),
}
_LONG = _NUMBERS["long"]
_IDS = Struct(">HH")


class MethodError(ValueError):
    """Arguments that do not fit the method."""


class NotUtf8(MethodError):
    """A short string in a method that is not UTF-8."""


class BadTable(MethodError):
    """A field table of the right length that can't be read."""


class Method:
    """Base of every method: knows its ids and its codec. A value: never changed once made.

    A dataclass would say the same, but making sixty of them takes a third of the time in which
    the broker has to be up.
    """

    class_id: ClassVar[int]
    method_id: ClassVar[int]
    name: ClassVar[str]
    has_content: ClassVar[bool]
    _plan: ClassVar[tuple[tuple[str, str], ...]]
    _head: ClassVar[bytes]

    def __init__(self, *values: Any, **named: Any) -> None:
        plan = self._plan
        given = dict(zip((name for name, _ in plan), values, strict=False))
        given.update(named)
        self.__dict__.update(given)
        if len(given) < len(plan):
            missing = [name for name, _ in plan if not hasattr(self, name)]
            if missing:
                raise TypeError(f"{self.name} needs {', '.join(missing)}")
        elif len(given) > len(plan) or len(values) > len(plan):
            raise TypeError(f"{self.name} has {len(plan)} fields, not {len(given)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self.name} can't be changed")

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name, _ in self._plan}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields().items())
        return f"{type(self).__name__}({fields})"

    def encode(self) -> bytes:
        """The payload of a method frame."""
        parts = [self._head]
        bits: list[bool] = []
        for name, domain in self._plan:
            value = getattr(self, name)
            if domain == "bit":
                bits.append(value)
                continue
            if bits:
                parts.append(_encode_bits(bits))
                bits = []
            parts.append(_encode_field(domain, value))
        if bits:
            parts.append(_encode_bits(bits))
        return b"".join(parts)


M = TypeVar("M", bound=type[Method])

#: (class id, method id) to class.
METHODS: dict[tuple[int, int], type[Method]] = {}


@dataclass_transform(frozen_default=True)
def _method(class_id: int, method_id: int, name: str, content: bool = False) -> Callable[[M], M]:
    def register(cls: M) -> M:
        cls.class_id, cls.method_id, cls.name, cls.has_content = class_id, method_id, name, content
        annotations = inspect.get_annotations(cls)
        cls._plan = tuple((field, _DOMAINS[kind]) for field, kind in annotations.items())
        cls._head = _IDS.pack(class_id, method_id)
        METHODS[class_id, method_id] = cls
        return cls

    return register


def _encode_bits(bits: list[bool]) -> bytes:
    return bytes((sum(1 << place for place, bit in enumerate(bits) if bit),))


def shortstr(value: str) -> bytes:
    """A short string with its length in front."""
    octets = raw(value)
    if len(octets) > 255:
        raise MethodError(f"a short string of {len(octets)} octets; 255 is the most")
    return bytes((len(octets),)) + octets


def _encode_field(domain: str, value: Any) -> bytes:
    if domain == "shortstr":
        return shortstr(value)
    if domain == "longstr":
        return _LONG.pack(len(value)) + bytes(value)
    if domain == "table":
        return encode_table(value)
    return bytes(_NUMBERS[domain].pack(value))


def decode_method(payload: bytes) -> Method:
    """The method in a method frame.

    Raises:
        KeyError: no such method; the argument is (class id, method id).
        MethodError: the arguments can't be read.
    """
    try:
        ids = _IDS.unpack_from(payload)
    except StructError as error:
        raise MethodError("a method frame without a method") from error
    cls = METHODS[ids]
    values: dict[str, Any] = {}
    at, bit = 4, 8
    try:
        for name, domain in cls._plan:
            if domain == "bit":
                if bit == 8:
                    bit, at = 0, at + 1
                values[name] = bool(payload[at - 1] & (1 << bit))
                bit += 1
                continue
            bit = 8
            values[name], at = _decode_field(domain, payload, at)
    except (StructError, IndexError) as error:
        raise MethodError(f"cannot decode {cls.name}") from error
    except TableError as error:
        raise BadTable(f"cannot decode {cls.name}") from error
    if at != len(payload):
        raise MethodError(f"cannot decode {cls.name}")
    return cls(**values)


def _decode_field(domain: str, data: bytes, at: int) -> tuple[Any, int]:
    number = _NUMBERS.get(domain)
    if number is not None:
        return number.unpack_from(data, at)[0], at + number.size
    if domain == "shortstr":
        stop = at + 1 + data[at]
        if stop > len(data):
            raise MethodError("a short string reaches beyond its frame")
        try:
            return data[at + 1 : stop].decode(), stop
        except UnicodeDecodeError:
            raise NotUtf8("Malformed UTF-8 in shortstr") from None
    start = at + 4
    stop = start + _LONG.unpack_from(data, at)[0]
    if stop > len(data):
        raise MethodError("a long string or table reaches beyond its frame")
    if domain == "longstr":
        return data[start:stop], stop
    return decode_table(data, start, stop), stop


# -- connection ----------------------------------------------------------------------------------
@_method(10, 10, "connection.start")
class ConnectionStart(Method):
    version_major: Octet
    version_minor: Octet
    server_properties: FieldTable
    mechanisms: LongStr
    locales: LongStr


@_method(10, 11, "connection.start_ok")
class ConnectionStartOk(Method):
    client_properties: FieldTable
    mechanism: ShortStr
    response: LongStr
    locale: ShortStr


@_method(10, 20, "connection.secure")
class ConnectionSecure(Method):
    challenge: LongStr


@_method(10, 21, "connection.secure_ok")
class ConnectionSecureOk(Method):
    response: LongStr


@_method(10, 30, "connection.tune")
class ConnectionTune(Method):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@_method(10, 31, "connection.tune_ok")
class ConnectionTuneOk(Method):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@_method(10, 40, "connection.open")
class ConnectionOpen(Method):
    virtual_host: ShortStr = "/"
    capabilities: ShortStr = ""
    insist: Bit = False


@_method(10, 41, "connection.open_ok")
class ConnectionOpenOk(Method):
    known_hosts: ShortStr = ""


@_method(10, 50, "connection.close")
class ConnectionClose(Method):
    reply_code: Short
    reply_text: ShortStr
    failed_class_id: Short = 0
    failed_method_id: Short = 0


@_method(10, 51, "connection.close_ok")
class ConnectionCloseOk(Method):
    pass


@_method(10, 60, "connection.blocked")
class ConnectionBlocked(Method):
    reason: ShortStr


@_method(10, 61, "connection.unblocked")
class ConnectionUnblocked(Method):
    pass


@_method(10, 70, "connection.update_secret")
class ConnectionUpdateSecret(Method):
    new_secret: LongStr
    reason: ShortStr


@_method(10, 71, "connection.update_secret_ok")
class ConnectionUpdateSecretOk(Method):
    pass


# -- channel -------------------------------------------------------------------------------------
@_method(20, 10, "channel.open")
class ChannelOpen(Method):
    out_of_band: ShortStr = ""


@_method(20, 11, "channel.open_ok")
class ChannelOpenOk(Method):
    channel_id: LongStr = b""


@_method(20, 20, "channel.flow")
class ChannelFlow(Method):
    active: Bit


@_method(20, 21, "channel.flow_ok")
class ChannelFlowOk(Method):
    active: Bit


@_method(20, 40, "channel.close")
class ChannelClose(Method):
    reply_code: Short
    reply_text: ShortStr
    failed_class_id: Short = 0
    failed_method_id: Short = 0


@_method(20, 41, "channel.close_ok")
class ChannelCloseOk(Method):
    pass


@_method(30, 10, "access.request")
class AccessRequest(Method):
    realm: ShortStr = "/data"
    exclusive: Bit = False
    passive: Bit = True
    active: Bit = True
    write: Bit = True
    read: Bit = True


@_method(30, 11, "access.request_ok")
class AccessRequestOk(Method):
    ticket: Short = 1


# -- exchange ------------------------------------------------------------------------------------
@_method(40, 10, "exchange.declare")
class ExchangeDeclare(Method):
    ticket: Short = 0
    exchange: ShortStr = ""
    type: ShortStr = "direct"
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    internal: Bit = False
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@_method(40, 11, "exchange.declare_ok")
class ExchangeDeclareOk(Method):
    pass


@_method(40, 20, "exchange.delete")
class ExchangeDelete(Method):
    ticket: Short = 0
    exchange: ShortStr = ""
    if_unused: Bit = False
    nowait: Bit = False


@_method(40, 21, "exchange.delete_ok")
class ExchangeDeleteOk(Method):
    pass


@_method(40, 30, "exchange.bind")
class ExchangeBind(Method):
    ticket: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@_method(40, 31, "exchange.bind_ok")
class ExchangeBindOk(Method):
    pass


@_method(40, 40, "exchange.unbind")
class ExchangeUnbind(Method):
    ticket: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@_method(40, 51, "exchange.unbind_ok")
class ExchangeUnbindOk(Method):
    pass


# -- queue ---------------------------------------------------------------------------------------
@_method(50, 10, "queue.declare")
class QueueDeclare(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@_method(50, 11, "queue.declare_ok")
class QueueDeclareOk(Method):
    queue: ShortStr
    message_count: Long
    consumer_count: Long


@_method(50, 20, "queue.bind")
class QueueBind(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@_method(50, 21, "queue.bind_ok")
class QueueBindOk(Method):
    pass


@_method(50, 30, "queue.purge")
class QueuePurge(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    nowait: Bit = False


@_method(50, 31, "queue.purge_ok")
class QueuePurgeOk(Method):
    message_count: Long


@_method(50, 40, "queue.delete")
class QueueDelete(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    if_unused: Bit = False
    if_empty: Bit = False
    nowait: Bit = False


@_method(50, 41, "queue.delete_ok")
class QueueDeleteOk(Method):
    message_count: Long


@_method(50, 50, "queue.unbind")
class QueueUnbind(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    arguments: FieldTable = _NO_FIELDS


@_method(50, 51, "queue.unbind_ok")
class QueueUnbindOk(Method):
    pass


# -- basic ---------------------------------------------------------------------------------------
@_method(60, 10, "basic.qos")
class BasicQos(Method):
    prefetch_size: Long = 0
    prefetch_count: Short = 0
    global_: Bit = False


@_method(60, 11, "basic.qos_ok")
class BasicQosOk(Method):
    pass


@_method(60, 20, "basic.consume")
class BasicConsume(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    consumer_tag: ShortStr = ""
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@_method(60, 21, "basic.consume_ok")
class BasicConsumeOk(Method):
    consumer_tag: ShortStr


@_method(60, 30, "basic.cancel")
class BasicCancel(Method):
    consumer_tag: ShortStr
    nowait: Bit = False


@_method(60, 31, "basic.cancel_ok")
class BasicCancelOk(Method):
    consumer_tag: ShortStr


@_method(60, 40, "basic.publish", content=True)
class BasicPublish(Method):
    ticket: Short = 0
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    mandatory: Bit = False
    immediate: Bit = False


@_method(60, 50, "basic.return", content=True)
class BasicReturn(Method):
    reply_code: Short
    reply_text: ShortStr
    exchange: ShortStr
    routing_key: ShortStr


@_method(60, 60, "basic.deliver", content=True)
class BasicDeliver(Method):
    consumer_tag: ShortStr
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortStr
    routing_key: ShortStr


@_method(60, 70, "basic.get")
class BasicGet(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    no_ack: Bit = False


@_method(60, 71, "basic.get_ok", content=True)
class BasicGetOk(Method):
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortStr
    routing_key: ShortStr
    message_count: Long


@_method(60, 72, "basic.get_empty")
class BasicGetEmpty(Method):
    cluster_id: ShortStr = ""


@_method(60, 80, "basic.ack")
class BasicAck(Method):
    delivery_tag: LongLong = 0
    multiple: Bit = False


@_method(60, 90, "basic.reject")
class BasicReject(Method):
    delivery_tag: LongLong
    requeue: Bit = True


@_method(60, 100, "basic.recover_async")
class BasicRecoverAsync(Method):
    requeue: Bit = False


@_method(60, 110, "basic.recover")
class BasicRecover(Method):
    requeue: Bit = False


@_method(60, 111, "basic.recover_ok")
class BasicRecoverOk(Method):
    pass


@_method(60, 120, "basic.nack")
class BasicNack(Method):
    delivery_tag: LongLong = 0
    multiple: Bit = False
    requeue: Bit = True


# -- confirm and tx ------------------------------------------------------------------------------
@_method(85, 10, "confirm.select")
class ConfirmSelect(Method):
    nowait: Bit = False


@_method(85, 11, "confirm.select_ok")
class ConfirmSelectOk(Method):
    pass


@_method(90, 10, "tx.select")
class TxSelect(Method):
    pass


@_method(90, 11, "tx.select_ok")
class TxSelectOk(Method):
    pass


@_method(90, 20, "tx.commit")
class TxCommit(Method):
    pass


@_method(90, 21, "tx.commit_ok")
class TxCommitOk(Method):
    pass


@_method(90, 30, "tx.rollback")
class TxRollback(Method):
    pass


@_method(90, 31, "tx.rollback_ok")
class TxRollbackOk(Method):
    pass
