from __future__ import annotations

import gzip
import sys
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from warren.content_encoding import expand
from warren.content_type import parse_content_type
from warren.errors import DecodeFailed, PackageMissing


def raw_deflate(body: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(body) + machine.flush()


PACK = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}
SEVERAL_MEMBERS = ("gzip", "zstd")


@given(body=st.binary(max_size=5000), names=st.lists(st.sampled_from(sorted(PACK)), max_size=3))
def test_what_was_packed_comes_back(body: bytes, names: list[str]) -> None:
    packed = body
    for name in names:
        packed = PACK[name](packed)
    assert expand(packed, ", ".join(names).upper()) == body


def test_raw_deflate_is_understood() -> None:
    assert expand(raw_deflate(b"hello"), "deflate") == b"hello"


@pytest.mark.parametrize(
    "name", [None, "", "identity", "binary", "UTF-8", "us-ascii", "8bit", " , identity"]
)
def test_a_name_that_says_nothing_changes_nothing(name: str | None) -> None:
    assert expand(b"as it is", name) == b"as it is"


@pytest.mark.parametrize("name", SEVERAL_MEMBERS)
@given(parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=4))
def test_one_member_may_follow_another(name: str, parts: list[bytes]) -> None:
    assert expand(b"".join(map(PACK[name], parts)), name) == b"".join(parts)


def test_a_zstd_frame_that_does_not_tell_its_size_is_read() -> None:
    machine = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    assert expand(machine.compress(b"x" * 9000) + machine.flush(), "zstd") == b"x" * 9000


@pytest.mark.parametrize("name", sorted(PACK))
def test_a_body_that_is_cut_anywhere_is_refused(name: str) -> None:
    packed = PACK[name](bytes(range(256)) * 8)
    for cut in range(1, len(packed)):
        with pytest.raises(DecodeFailed, match="ends before its end"):
            expand(packed[:cut], name)


@pytest.mark.parametrize("name", sorted(PACK))
@given(body=st.binary(max_size=200))
def test_random_octets_are_refused_or_read(name: str, body: bytes) -> None:
    try:
        expand(body, name)
    except DecodeFailed as error:
        assert error.kind in ("gzip", name)


@pytest.mark.parametrize("name", SEVERAL_MEMBERS)
def test_what_follows_the_last_member_is_refused(name: str) -> None:
    with pytest.raises(DecodeFailed):
        expand(PACK[name](b"x") + b"and more", name)


@pytest.mark.parametrize("name", sorted(PACK))
def test_a_body_may_grow_so_far_and_no_further(name: str) -> None:
    assert len(expand(PACK[name](bytes(10_000)), name, 10_000)) == 10_000
    with pytest.raises(DecodeFailed, match="grows beyond 10000 octets"):
        expand(PACK[name](bytes(10_001)), name, 10_000)


@pytest.mark.parametrize("name", SEVERAL_MEMBERS)
def test_many_small_members_count_together(name: str) -> None:
    with pytest.raises(DecodeFailed, match="grows beyond 100 octets"):
        expand(PACK[name](bytes(60)) * 2, name, 100)


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(DecodeFailed, match=r"as br: .*deflate, gzip, x-gzip, zstd"):
        expand(b"", "br")


def test_zstd_without_its_package_is_not_the_messages_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(PackageMissing, match=r"zstandard .*pip install '.\[run\]'"):
        expand(b"", "zstd")


@pytest.mark.parametrize(
    ("content_type", "parsed"),
    [
        (None, ("", "utf-8")),
        ("", ("", "utf-8")),
        ("Application/JSON", ("application/json", "utf-8")),
        ("text/plain; charset=UTF8", ("text/plain", "utf-8")),
        ('text/csv ; header=present; Charset="ISO-8859-1"', ("text/csv", "iso-8859-1")),
        ("text/plain; charset=", ("text/plain", "utf-8")),
    ],
)
def test_a_content_type_is_a_media_type_and_a_charset(
    content_type: str | None, parsed: tuple[str, str]
) -> None:
    assert parse_content_type(content_type) == parsed
