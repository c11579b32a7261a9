"""Methods: every one, octet for octet as pika writes and reads it, there and back."""

from __future__ import annotations

from typing import Any

import pamqp.commands
import pamqp.frame
import pika.frame
import pika.spec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.amqp.wire_values import entries, tables
from warren.amqp import methods as m
from warren.amqp.frames import METHOD, encode_frame
from warren.amqp.tables import Table, decode_table

ALL = sorted(m.METHODS.values(), key=lambda cls: (cls.class_id, cls.method_id))
each_method = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.name)
few_examples = settings(max_examples=25, deadline=None)  # of each of sixty methods


def shortstrs() -> st.SearchStrategy[str]:
    return st.text(max_size=60).filter(lambda value: len(value.encode()) <= 255)


#: Table types that pika reads and writes without a loss.
PIKA_TABLES = tables("tIlSVxAF").map(lambda table: decode_table(entries(table)))
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "octet": st.integers(0, 2**8 - 1),
    "short": st.integers(0, 2**16 - 1),
    "long": st.integers(0, 2**32 - 1),
    "longlong": st.integers(0, 2**63 - 1),
    "shortstr": shortstrs(),
    "longstr": st.binary(max_size=60),
    "bit": st.booleans(),
    "table": PIKA_TABLES,
}


def made(cls: type[m.Method]) -> st.SearchStrategy[m.Method]:
    """Methods of a class with any values in their fields."""
    return st.builds(cls, **{name: FIELDS[domain] for name, domain in cls._plan})


def one_of_each(cls: type[m.Method]) -> m.Method:
    """A method with something in every field."""
    something = {
        "octet": 200,
        "short": 60_000,
        "long": 4_000_000_000,
        "longlong": 2**62,
        "shortstr": "shört",
        "longstr": b"long\xff",
        "bit": True,
        "table": Table({"a": [1, "two"], "b": None}),
    }
    return cls(**{name: something[domain] for name, domain in cls._plan})


# -- against pika --------------------------------------------------------------------------------
def test_every_method_that_pika_knows_is_known() -> None:
    pikas = {((index >> 16), index & 0xFFFF): cls.NAME for index, cls in pika.spec.methods.items()}

    assert set(m.METHODS) >= set(pikas)
    for ids, name in pikas.items():
        plain = name.lower().replace(".", "").replace("_", "")
        assert m.METHODS[ids].name.replace(".", "").replace("_", "") == plain


def test_every_method_that_pika_knows_to_have_content_has_content() -> None:
    with_content = {cls.name for cls in ALL if cls.has_content}

    assert with_content == {"basic.publish", "basic.return", "basic.deliver", "basic.get_ok"}
    for cls in ALL:
        assert cls.has_content == pika.spec.has_content(cls.class_id << 16 | cls.method_id)


@pytest.mark.parametrize(
    # Pika has no way to make an empty update-secret, hence none to read one.
    "cls",
    [cls for cls in ALL if cls is not m.ConnectionUpdateSecret],
    ids=lambda cls: cls.name,
)
@few_examples
@given(data=st.data())
def test_pika_reads_what_we_write_and_writes_the_same(
    cls: type[m.Method], data: st.DataObject
) -> None:
    method = data.draw(made(cls))
    written = encode_frame(METHOD, 7, method.encode())

    used, read = pika.frame.decode_frame(written)
    assert used == len(written)
    assert cls.class_id << 16 | cls.method_id == read.method.INDEX
    assert read.marshal() == written


@each_method
@few_examples
@given(data=st.data())
def test_a_method_goes_there_and_back(cls: type[m.Method], data: st.DataObject) -> None:
    method = data.draw(made(cls))

    assert m.decode_method(method.encode()) == method


@given(st.binary(max_size=60), shortstrs())
def test_pika_writes_the_same_update_secret(secret: bytes, reason: str) -> None:
    theirs = pika.spec.Connection.UpdateSecret(secret, reason)

    ours = m.ConnectionUpdateSecret(secret, reason)
    assert encode_frame(METHOD, 0, ours.encode()) == pika.frame.Method(0, theirs).marshal()


def test_pika_finds_each_value_under_its_name() -> None:
    method = m.QueueDeclare(
        queue="orders", durable=True, auto_delete=True, arguments=Table({"x-max-length": 5})
    )
    read = pika.frame.decode_frame(encode_frame(METHOD, 1, method.encode()))[1].method

    flags = (read.passive, read.durable, read.exclusive, read.auto_delete, read.nowait)
    assert flags == (False, True, False, True, False)
    assert (read.queue, read.arguments) == ("orders", {"x-max-length": 5})


PAMQP = {((index >> 16), index & 0xFFFF) for index in pamqp.commands.INDEX_MAPPING}


@pytest.mark.parametrize(
    "cls", [cls for cls in ALL if (cls.class_id, cls.method_id) in PAMQP], ids=lambda cls: cls.name
)
@pytest.mark.filterwarnings("ignore:This command is deprecated")
@few_examples
@given(data=st.data())
def test_pamqp_reads_what_we_write(cls: type[m.Method], data: st.DataObject) -> None:
    method = data.draw(made(cls))
    written = encode_frame(METHOD, 7, method.encode())

    used, channel, read = pamqp.frame.unmarshal(written)
    assert (used, channel) == (len(written), 7)
    theirs = [getattr(read, name) for name in type(read).attributes()]
    assert theirs == [_as_pamqp(getattr(method, name)) for name, _ in cls._plan]


def _as_pamqp(value: Any) -> Any:
    """Octets are text where they can be."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            pamqp.commands.Queue.Declare(
                0, "orders", False, True, False, True, False, {"n": 70000}
            ),
            m.QueueDeclare(
                queue="orders", durable=True, auto_delete=True, arguments=Table({"n": 70000})
            ),
        ),
        (
            pamqp.commands.Basic.Deliver("ctag", 2**40, True, "ex", "key"),
            m.BasicDeliver("ctag", 2**40, True, "ex", "key"),
        ),
        (
            pamqp.commands.Connection.Close(320, "bye", 10, 50),
            m.ConnectionClose(320, "bye", 10, 50),
        ),
        (pamqp.commands.Connection.Tune(2047, 131072, 60), m.ConnectionTune(2047, 131072, 60)),
        (pamqp.commands.Basic.Nack(5, True, False), m.BasicNack(5, True, False)),
        (pamqp.commands.Exchange.UnbindOk(), m.ExchangeUnbindOk()),
    ],
    ids=lambda value: value.name,
)
def test_pamqp_writes_the_same_octets(theirs: Any, ours: m.Method) -> None:
    written = pamqp.frame.marshal(theirs, 3)

    assert encode_frame(METHOD, 3, ours.encode()) == written
    assert m.decode_method(written[7:-1]) == ours


# -- what is not a method ------------------------------------------------------------------------
@each_method
def test_a_method_cut_anywhere_is_an_error(cls: type[m.Method]) -> None:
    whole = one_of_each(cls).encode()

    assert m.decode_method(whole) == one_of_each(cls)
    for cut in range(len(whole)):
        with pytest.raises(m.MethodError):
            m.decode_method(whole[:cut])


@each_method
def test_octets_behind_the_last_field_are_an_error(cls: type[m.Method]) -> None:
    with pytest.raises(m.MethodError):
        m.decode_method(one_of_each(cls).encode() + b"\x00")


@given(st.sampled_from(ALL), st.binary(max_size=60))
def test_any_arguments_are_a_method_or_a_method_error(cls: type[m.Method], octets: bytes) -> None:
    try:
        method = m.decode_method(cls._head + octets)
    except m.MethodError:
        return
    assert isinstance(method, cls)


@pytest.mark.parametrize("ids", [(10, 99), (61, 10), (0, 0), (65535, 65535)])
def test_an_unknown_method_is_named(ids: tuple[int, int]) -> None:
    head = b"".join(number.to_bytes(2, "big") for number in ids)
    with pytest.raises(KeyError) as error:
        m.decode_method(head + b"whatever")
    assert error.value.args == (ids,)


def test_a_short_string_that_is_not_utf8_is_told_from_other_errors() -> None:
    with pytest.raises(m.NotUtf8):
        m.decode_method(m.BasicCancel("tag").encode().replace(b"tag", b"t\xff\xfe"))


def test_a_table_that_can_not_be_read_is_told_from_one_that_is_too_long() -> None:
    good = m.QueueDeclare(arguments=Table({"k": True})).encode()

    with pytest.raises(m.BadTable):
        m.decode_method(good.replace(b"\x01kt", b"\x01kZ"))
    with pytest.raises(m.MethodError) as error:
        m.decode_method(good.replace(b"\x00\x00\x00\x04\x01k", b"\x00\x00\xff\x04\x01k"))
    assert not isinstance(error.value, m.BadTable)


# -- fields --------------------------------------------------------------------------------------
def test_bits_share_an_octet_lowest_first() -> None:
    octets = m.ExchangeDeclare(durable=True, nowait=True).encode()

    assert octets[-5] == 0b10010


def test_a_bit_behind_another_field_begins_a_new_octet() -> None:
    octets = m.BasicDeliver("", 1, True, "", "").encode()

    assert octets == bytes.fromhex("003c003c 00 0000000000000001 01 00 00")


def test_a_short_string_has_at_most_255_octets() -> None:
    assert m.shortstr("é" * 127 + "e")[0] == 255
    with pytest.raises(m.MethodError, match="256 octets"):
        m.shortstr("é" * 128)
