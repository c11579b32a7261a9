"""The methods of AMQP 0-9-1 with RabbitMQ's extensions, each as a small frozen class.

A field's annotation is its wire type (see ``method``). The hot methods (publish, deliver, ack) are
read and written by ``hot`` without passing through here.
"""

from __future__ import annotations

from warren.amqp.method import METHODS as METHODS
from warren.amqp.method import BadTable as BadTable
from warren.amqp.method import (
    Bit,
    FieldTable,
    Long,
    LongLong,
    LongStr,
    Octet,
    Short,
    ShortStr,
    method,
)
from warren.amqp.method import Method as Method
from warren.amqp.method import MethodError as MethodError
from warren.amqp.method import NotUtf8 as NotUtf8
from warren.amqp.method import decode_method as decode_method
from warren.amqp.method import shortstr as shortstr
from warren.amqp.tables import Table

_NO_FIELDS = Table()


# -- connection ----------------------------------------------------------------------------------
@method(10, 10, "connection.start")
class ConnectionStart(Method):
    version_major: Octet
    version_minor: Octet
    server_properties: FieldTable
    mechanisms: LongStr
    locales: LongStr


@method(10, 11, "connection.start_ok")
class ConnectionStartOk(Method):
    client_properties: FieldTable
    mechanism: ShortStr
    response: LongStr
    locale: ShortStr


@method(10, 20, "connection.secure")
class ConnectionSecure(Method):
    challenge: LongStr


@method(10, 21, "connection.secure_ok")
class ConnectionSecureOk(Method):
    response: LongStr


@method(10, 30, "connection.tune")
class ConnectionTune(Method):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@method(10, 31, "connection.tune_ok")
class ConnectionTuneOk(Method):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@method(10, 40, "connection.open")
class ConnectionOpen(Method):
    virtual_host: ShortStr = "/"
    capabilities: ShortStr = ""
    insist: Bit = False


@method(10, 41, "connection.open_ok")
class ConnectionOpenOk(Method):
    known_hosts: ShortStr = ""


@method(10, 50, "connection.close")
class ConnectionClose(Method):
    reply_code: Short
    reply_text: ShortStr
    failed_class_id: Short = 0
    failed_method_id: Short = 0


@method(10, 51, "connection.close_ok")
class ConnectionCloseOk(Method):
    pass


@method(10, 60, "connection.blocked")
class ConnectionBlocked(Method):
    reason: ShortStr


@method(10, 61, "connection.unblocked")
class ConnectionUnblocked(Method):
    pass


@method(10, 70, "connection.update_secret")
class ConnectionUpdateSecret(Method):
    new_secret: LongStr
    reason: ShortStr


@method(10, 71, "connection.update_secret_ok")
class ConnectionUpdateSecretOk(Method):
    pass


# -- channel -------------------------------------------------------------------------------------
@method(20, 10, "channel.open")
class ChannelOpen(Method):
    out_of_band: ShortStr = ""


@method(20, 11, "channel.open_ok")
class ChannelOpenOk(Method):
    channel_id: LongStr = b""


@method(20, 20, "channel.flow")
class ChannelFlow(Method):
    active: Bit


@method(20, 21, "channel.flow_ok")
class ChannelFlowOk(Method):
    active: Bit


@method(20, 40, "channel.close")
class ChannelClose(Method):
    reply_code: Short
    reply_text: ShortStr
    failed_class_id: Short = 0
    failed_method_id: Short = 0


@method(20, 41, "channel.close_ok")
class ChannelCloseOk(Method):
    pass


@method(30, 10, "access.request")
class AccessRequest(Method):
    realm: ShortStr = "/data"
    exclusive: Bit = False
    passive: Bit = True
    active: Bit = True
    write: Bit = True
    read: Bit = True


@method(30, 11, "access.request_ok")
class AccessRequestOk(Method):
    ticket: Short = 1


# -- exchange ------------------------------------------------------------------------------------
@method(40, 10, "exchange.declare")
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


@method(40, 11, "exchange.declare_ok")
class ExchangeDeclareOk(Method):
    pass


@method(40, 20, "exchange.delete")
class ExchangeDelete(Method):
    ticket: Short = 0
    exchange: ShortStr = ""
    if_unused: Bit = False
    nowait: Bit = False


@method(40, 21, "exchange.delete_ok")
class ExchangeDeleteOk(Method):
    pass


@method(40, 30, "exchange.bind")
class ExchangeBind(Method):
    ticket: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@method(40, 31, "exchange.bind_ok")
class ExchangeBindOk(Method):
    pass


@method(40, 40, "exchange.unbind")
class ExchangeUnbind(Method):
    ticket: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@method(40, 51, "exchange.unbind_ok")
class ExchangeUnbindOk(Method):
    pass


# -- queue ---------------------------------------------------------------------------------------
@method(50, 10, "queue.declare")
class QueueDeclare(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@method(50, 11, "queue.declare_ok")
class QueueDeclareOk(Method):
    queue: ShortStr
    message_count: Long
    consumer_count: Long


@method(50, 20, "queue.bind")
class QueueBind(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@method(50, 21, "queue.bind_ok")
class QueueBindOk(Method):
    pass


@method(50, 30, "queue.purge")
class QueuePurge(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    nowait: Bit = False


@method(50, 31, "queue.purge_ok")
class QueuePurgeOk(Method):
    message_count: Long


@method(50, 40, "queue.delete")
class QueueDelete(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    if_unused: Bit = False
    if_empty: Bit = False
    nowait: Bit = False


@method(50, 41, "queue.delete_ok")
class QueueDeleteOk(Method):
    message_count: Long


@method(50, 50, "queue.unbind")
class QueueUnbind(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    arguments: FieldTable = _NO_FIELDS


@method(50, 51, "queue.unbind_ok")
class QueueUnbindOk(Method):
    pass


# -- basic ---------------------------------------------------------------------------------------
@method(60, 10, "basic.qos")
class BasicQos(Method):
    prefetch_size: Long = 0
    prefetch_count: Short = 0
    global_: Bit = False


@method(60, 11, "basic.qos_ok")
class BasicQosOk(Method):
    pass


@method(60, 20, "basic.consume")
class BasicConsume(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    consumer_tag: ShortStr = ""
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    nowait: Bit = False
    arguments: FieldTable = _NO_FIELDS


@method(60, 21, "basic.consume_ok")
class BasicConsumeOk(Method):
    consumer_tag: ShortStr


@method(60, 30, "basic.cancel")
class BasicCancel(Method):
    consumer_tag: ShortStr
    nowait: Bit = False


@method(60, 31, "basic.cancel_ok")
class BasicCancelOk(Method):
    consumer_tag: ShortStr


@method(60, 40, "basic.publish", content=True)
class BasicPublish(Method):
    ticket: Short = 0
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    mandatory: Bit = False
    immediate: Bit = False


@method(60, 50, "basic.return", content=True)
class BasicReturn(Method):
    reply_code: Short
    reply_text: ShortStr
    exchange: ShortStr
    routing_key: ShortStr


@method(60, 60, "basic.deliver", content=True)
class BasicDeliver(Method):
    consumer_tag: ShortStr
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortStr
    routing_key: ShortStr


@method(60, 70, "basic.get")
class BasicGet(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    no_ack: Bit = False


@method(60, 71, "basic.get_ok", content=True)
class BasicGetOk(Method):
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortStr
    routing_key: ShortStr
    message_count: Long


@method(60, 72, "basic.get_empty")
class BasicGetEmpty(Method):
    cluster_id: ShortStr = ""


@method(60, 80, "basic.ack")
class BasicAck(Method):
    delivery_tag: LongLong = 0
    multiple: Bit = False


@method(60, 90, "basic.reject")
class BasicReject(Method):
    delivery_tag: LongLong
    requeue: Bit = True


@method(60, 100, "basic.recover_async")
class BasicRecoverAsync(Method):
    requeue: Bit = False


@method(60, 110, "basic.recover")
class BasicRecover(Method):
    requeue: Bit = False


@method(60, 111, "basic.recover_ok")
class BasicRecoverOk(Method):
    pass


@method(60, 120, "basic.nack")
class BasicNack(Method):
    delivery_tag: LongLong = 0
    multiple: Bit = False
    requeue: Bit = True


# -- confirm and tx ------------------------------------------------------------------------------
@method(85, 10, "confirm.select")
class ConfirmSelect(Method):
    nowait: Bit = False


@method(85, 11, "confirm.select_ok")
class ConfirmSelectOk(Method):
    pass


@method(90, 10, "tx.select")
class TxSelect(Method):
    pass


@method(90, 11, "tx.select_ok")
class TxSelectOk(Method):
    pass


@method(90, 20, "tx.commit")
class TxCommit(Method):
    pass


@method(90, 21, "tx.commit_ok")
class TxCommitOk(Method):
    pass


@method(90, 30, "tx.rollback")
class TxRollback(Method):
    pass


@method(90, 31, "tx.rollback_ok")
class TxRollbackOk(Method):
    pass
