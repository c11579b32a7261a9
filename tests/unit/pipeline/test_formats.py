from __future__ import annotations

import pickle
import sys

import pytest

from tests.unit.pipeline.test_avro import ORDER_AVRO, container
from tests.unit.pipeline.test_protobuf import PROTOBUF
from warren.errors import PackageMissing
from warren.pipeline import avro_datum, protobuf_message
from warren.pipeline.formats import Avro, MessagePack, Protobuf, kind_of


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        (None, (None, "utf-8")),
        ("", (None, "utf-8")),
        ("application/octet-stream", (None, "utf-8")),
        ("application/json", ("json", "utf-8")),
        ("Text/JSON; charset=Latin-1", ("json", "latin-1")),
        ("application/vnd.shop.order+json", ("json", "utf-8")),
        ("text/csv", ("csv", "utf-8")),
        ("application/csv;header=present", ("csv", "utf-8")),
        ("text/plain; charset=utf8", ("text", "utf-8")),
        ("text/html", ("text", "utf-8")),
        ("application/avro", ("avro", "utf-8")),
        ("avro/binary", ("avro", "utf-8")),
        ("application/vnd.apache.avro", ("avro", "utf-8")),
        ("application/x-avro", ("avro", "utf-8")),
        ("application/vnd.shop+avro", ("avro", "utf-8")),
        ("application/msgpack", ("msgpack", "utf-8")),
        ("application/x-msgpack", ("msgpack", "utf-8")),
        ("application/vnd.msgpack", ("msgpack", "utf-8")),
        ("application/vnd.shop+msgpack", ("msgpack", "utf-8")),
        ("application/protobuf", ("protobuf", "utf-8")),
        ("application/x-protobuf; messageType=a.B", ("protobuf", "utf-8")),
        ("APPLICATION/VND.GOOGLE.PROTOBUF", ("protobuf", "utf-8")),
        ("application/vnd.shop+protobuf", ("protobuf", "utf-8")),
        ("application/x+xml", (None, "utf-8")),
        ("json", (None, "utf-8")),
    ],
)
def test_a_content_type_stands_for_a_kind(
    content_type: str | None, kind: tuple[str | None, str]
) -> None:
    assert kind_of(content_type) == kind


@pytest.mark.parametrize("converter", [MessagePack(), ORDER_AVRO, PROTOBUF], ids=repr)
def test_a_converter_travels(converter: Avro | MessagePack | Protobuf) -> None:
    converter.check()
    assert pickle.loads(pickle.dumps(converter)) == converter


@pytest.mark.parametrize(
    ("converter", "body", "module"),
    [
        (MessagePack(), b"\x02", "msgpack"),
        (Avro('"int"'), b"\x02", "fastavro.schema"),
        (Avro(), container("int", [1]), "fastavro.schema"),
        (PROTOBUF, b"", "google.protobuf.message"),
    ],
    ids=["msgpack", "avro", "avro file", "protobuf"],
)
def test_a_missing_package_is_not_the_messages_fault(
    converter: Avro | MessagePack | Protobuf,
    body: bytes,
    module: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    avro_datum.compiled.cache_clear()
    protobuf_message.compiled.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)

    for use in (converter.check, lambda: converter.text(body)):
        with pytest.raises(PackageMissing, match=r"pip install '.\[run\]'"):
            use()
