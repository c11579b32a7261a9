"""Bodies to text: what a stranger's properties say must never end a run."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from warren.pipeline import decode
from warren.pipeline.decode import TABLE, BodyReader, Decoder, Decoding

#: Each of them raises something else.
BAD_CHARSETS = {
    "unicode_escape": "not in its charset",  # half a surrogate pair is no text
    "utf-16": "not in its charset",
    "undefined": "not in its charset",
    "klingon": "its charset is not known",
    "rot13": "its charset is not known",
    "a\0b": "its charset is not known",
}


@pytest.mark.parametrize("charset", BAD_CHARSETS)
def test_a_body_that_is_not_in_its_charset_has_a_problem(charset: str) -> None:
    read = BodyReader(Decoding()).read(b"\\ud800 ", f"text/plain; charset={charset}", None)

    assert read.text is None
    assert read.problem == BAD_CHARSETS[charset]


@pytest.mark.parametrize(
    ("body", "text"), [(b"1,a\r\n", "1,a"), (b"1,a\n", "1,a"), (b'1,"\n"', '1,"\n"'), (b"\n", None)]
)
def test_the_end_of_a_line_is_no_part_of_a_record(body: bytes, text: str | None) -> None:
    read = BodyReader(Decoding()).read(body, "text/csv", None)

    assert (read.text, read.problem) == (text, None if text else "empty")


def test_what_is_ignored_is_not_even_unpacked() -> None:
    names = [TABLE, "body", "content_type", "content_encoding"]
    columns = [["_ignored"], [b"x"], [None], ["gzip"]]
    batch = pa.RecordBatch.from_arrays([pa.array(each) for each in columns], names)

    (decoded,) = Decoder({"t": Decoding()}, names)(iter([batch]))

    assert decoded.to_pylist()[0]["_problem"] is None


def test_what_was_packed_is_handed_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it might be more than an array takes, or than the machine has."""
    monkeypatch.setattr(decode, "_PART_OCTETS", 250)
    bodies = [b"%d " % number + b"x" * 100 for number in range(8)]
    ignored = [b"no", b"no"]
    packed = [gzip.compress(each) for each in bodies] + ignored
    names = [TABLE, "body", "content_type", "content_encoding"]
    columns = [["t"] * 8 + ["_ignored"] * 2, packed, ["text/plain"] * 10, ["gzip"] * 10]
    batch = pa.RecordBatch.from_arrays([pa.array(each) for each in columns], names)

    parts = list(Decoder({"t": Decoding()}, names)(iter([batch])))

    assert [len(part) for part in parts] == [3, 3, 4]
    rows = [row for part in parts for row in part.to_pylist()]
    assert [row["body"] for row in rows] == packed
    assert [row["_text"] for row in rows[:8]] == [each.decode() for each in bodies]


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_body_that_grows_too_much_has_a_problem(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(decode, "MOST_OCTETS", 1000)
    body = b"\xc5\x03\x20" + bytes(800)  # octets, which become base64
    if encoding == "gzip":
        body = gzip.compress(body * 2)

    read = BodyReader(Decoding()).read(body, "application/msgpack", encoding)

    assert read.text is None
    assert read.problem is not None
    assert read.problem.endswith("grows beyond 1000 octets")
