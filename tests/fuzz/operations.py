"""Random methods that mean something: few names, every argument, every type."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.fuzz.arena import body, raw
from tests.unit.amqp.wire_values import Typed, entries, sized, typed
from warren.amqp import methods as m
from warren.amqp.frames import HEADER, METHOD, encode_frame
from warren.amqp.tables import decode_table

NAMES = ["", "q1", "q2", "q3", "e1", "e2", "amq.topic", "amq.headers", "amq.rabbitmq.reply-to"]
names = st.sampled_from([*NAMES, "a.b.c", "#.a.*", "1", "5", "é" * 127, "\x00\n"]) | st.text(max_size=5)
ARGUMENTS = [
    "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-overflow",
    "x-max-priority", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-queue-type",
    "x-dead-letter-strategy", "x-single-active-consumer", "x-queue-mode", "x-queue-version",
    "x-delivery-limit", "x-max-age", "x-stream-max-segment-size-bytes", "x-queue-leader-locator",
    "x-initial-cluster-size", "x-priority", "x-stream-offset", "x-match", "alternate-exchange",
    "hash-header", "hash-property", "x-death", "CC", "BCC", "h1",
]  # fmt: skip
WORDS = [
    "", "q1", "q2", "q3", "e1", "drop-head", "reject-publish", "reject-publish-dlx", "classic",
    "quorum", "stream", "all", "any", "all-with-x", "any-with-x", "7D", "first", "last", "next",
    "at-least-once", "lazy", "timestamp", "message_id", "x" * 300,
]  # fmt: skip
values = (
    st.sampled_from(WORDS).map(lambda word: Typed("S", word))
    | st.sampled_from([0, 1, 2, 5, 255, 256, 60_000]).map(lambda number: Typed("I", number))
    | st.sampled_from(WORDS[:5]).map(lambda word: Typed("A", [Typed("S", word)]))
    | typed()
)
tables = st.dictionaries(st.sampled_from(ARGUMENTS), values, max_size=4)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "octet": st.integers(0, 255),
    "short": st.sampled_from([0, 1, 2, 65535]),
    "long": st.sampled_from([0, 0, 0, 5]),
    "longlong": st.integers(0, 6),
    "shortstr": names,
    "longstr": st.binary(max_size=20),
    "bit": st.booleans(),
    "table": tables.map(lambda table: decode_table(entries(table))),
}
TYPES = ["direct", "fanout", "topic", "headers", "x-consistent-hash"]
OFTEN = [
    m.ExchangeDeclare, m.ExchangeBind, m.ExchangeUnbind, m.ExchangeDelete, m.QueueDeclare,
    m.QueueBind, m.QueueUnbind, m.QueuePurge, m.QueueDelete, m.BasicQos, m.BasicConsume,
    m.BasicCancel, m.BasicGet, m.BasicAck, m.BasicNack, m.BasicReject, m.BasicRecover,
    m.ConfirmSelect, m.TxSelect, m.TxCommit, m.TxRollback, m.ChannelOpen, m.ChannelClose,
]  # fmt: skip


def _made(cls: type[m.Method]) -> st.SearchStrategy[m.Method]:
    fields = {name: FIELDS[domain] for name, domain in cls._plan}
    if cls is m.ExchangeDeclare:
        fields["type"] = st.sampled_from(TYPES)
    if cls in (m.QueueDeclare, m.ExchangeDeclare):
        fields["passive"] = st.just(False)
    return st.builds(cls, **fields)


def _property_octets() -> st.SearchStrategy[bytes]:
    """Property flags and values; wrong ones now and then."""
    headers = tables.map(lambda table: b"\x20\x00" + sized(entries(table)))
    some = [
        b"\x00\x00",
        b"\x01\x00\x03100",  # expiration
        b"\x01\x00\x010",
        b"\x08\x00\x07",  # priority
        b"\x10\x00\x02",  # persistent
        b"\x02\x00\x15amq.rabbitmq.reply-to",
        b"\x00\x10\x05guest",
        b"\x00\x01",
    ]
    return headers | st.sampled_from(some) | st.binary(min_size=2, max_size=12)


@st.composite
def publishes(draw: st.DrawFn) -> bytes:
    channel = draw(st.integers(1, 2))
    method = m.BasicPublish(
        exchange=draw(st.sampled_from(["", "", "e1", "e2", "amq.topic", "amq.headers"])),
        routing_key=draw(names),
        mandatory=draw(st.booleans()),
    )
    data = draw(st.binary(max_size=30))
    payload = b"\x00\x3c\x00\x00" + len(data).to_bytes(8, "big") + draw(_property_octets())
    octets = encode_frame(METHOD, channel, method.encode()) + encode_frame(HEADER, channel, payload)
    return octets + (body(data, channel) if data else b"")


often = st.sampled_from(OFTEN).flatmap(_made)
any_method = st.sampled_from(list(m.METHODS.values())).flatmap(_made)


def _framed(methods: st.SearchStrategy[m.Method], channels: Any) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda method, channel: encode_frame(METHOD, channel, method.encode()), methods, channels
    )


#: What a lively client may send.
sensible = st.one_of(_framed(often, st.integers(1, 2)), publishes())
#: The same, and what nobody should ever send.
senseless = st.one_of(
    sensible,
    _framed(any_method, st.integers(0, 3)),
    st.builds(raw, st.integers(0, 9), st.integers(0, 3), st.binary(max_size=30)),
    st.builds(lambda data: body(data), st.binary(max_size=20)),
)
