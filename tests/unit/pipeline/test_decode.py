"""Bodies to text: what a stranger's properties say must never end a run."""

from __future__ import annotations

import pyarrow as pa
import pytest

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
