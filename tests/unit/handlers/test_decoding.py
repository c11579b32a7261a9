from __future__ import annotations

import gzip
import json
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from warren.errors import DecodeFailed
from warren.handlers.decoding import Decoders

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(value=JSON, encoding=st.sampled_from([None, "gzip", "deflate", "zstd", "gzip, deflate"]))
def test_json_comes_back_through_any_encoding(value: object, encoding: str | None) -> None:
    body = json.dumps(value).encode()
    for each in (encoding or "").split(", "):
        packs = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}
        body = packs.get(each, bytes)(body)
    assert Decoders().decode(body, "application/json; charset=utf-8", encoding) == value


@pytest.mark.parametrize(
    ("content_type", "body", "value"),
    [
        (None, b"\x00", b"\x00"),
        ("application/octet-stream", b"{}", b"{}"),
        ("text/plain", "grün".encode(), "grün"),
        ("text/csv; charset=latin-1", "grün".encode("latin-1"), "grün"),
        ("application/vnd.shop+json", b"[1]", [1]),
        ("APPLICATION/JSON", b"1", 1),
        ("image/png", b"\x89", b"\x89"),
    ],
)
def test_the_content_type_says_what_a_body_is(
    content_type: str | None, body: bytes, value: object
) -> None:
    assert Decoders().decode(body, content_type, None) == value


@pytest.mark.parametrize(
    ("content_type", "encoding", "body", "word"),
    [
        ("application/json", None, b"{", "application/json"),
        ("text/plain", None, b"\xff", "text/plain"),
        ("text/plain; charset=klingon", None, b"x", "klingon"),
        (None, "gzip", b"not gzip", "gzip"),
        (None, "gzip", gzip.compress(b"x" * 1000, mtime=0)[:-9], "ends before"),
        (None, "br", b"x", "no such content-encoding"),
    ],
)
def test_what_can_not_be_decoded_says_why(
    content_type: str | None, encoding: str | None, body: bytes, word: str
) -> None:
    with pytest.raises(DecodeFailed, match=word):
        Decoders().decode(body, content_type, encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "binary", "identity", ""])
def test_a_charset_in_the_place_of_the_encoding_is_no_compression(encoding: str) -> None:
    assert Decoders().decode(b"x", None, encoding) == b"x"


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_body_that_would_grow_too_large_is_refused(encoding: str, pack: object) -> None:
    decoders = Decoders(most_bytes=10_000)
    assert len(decoders.decode(pack(bytes(10_000)), None, encoding)) == 10_000  # type: ignore[operator]
    with pytest.raises(DecodeFailed, match="grows beyond 10000"):
        decoders.decode(pack(bytes(10_001)), None, encoding)  # type: ignore[operator]


def test_many_small_gzip_members_count_together() -> None:
    with pytest.raises(DecodeFailed, match="grows beyond"):
        Decoders(most_bytes=100).decode(gzip.compress(bytes(60)) * 2, None, "gzip")


def test_raw_deflate_is_understood() -> None:
    machine = zlib.compressobj(wbits=-15)
    body = machine.compress(b"hello") + machine.flush()
    assert Decoders().decode(body, None, "deflate") == b"hello"


def test_others_can_be_added() -> None:
    decoders = Decoders()
    decoders.add_type("text/csv", lambda body, charset: body.decode(charset).split(","))
    decoders.add_encoding("rot", lambda body, most: bytes(255 - each for each in body))
    assert decoders.decode(bytes(255 - each for each in b"a,b"), "text/csv", "rot") == ["a", "b"]
