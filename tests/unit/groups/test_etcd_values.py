from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.groups.coordination.etcd_values import decode_entry, decode_events, encode, range_end

KEYS = st.text(max_size=12)


@given(prefix=st.text(min_size=1, max_size=6), key=KEYS)
def test_a_prefix_covers_exactly_the_keys_that_begin_with_it(prefix: str, key: str) -> None:
    start, end = prefix.encode(), base64.b64decode(range_end(prefix))
    assert (start <= key.encode() < end) == key.startswith(prefix)


@given(value=st.binary(max_size=20), key=KEYS)
def test_an_entry_reads_as_it_was_written(key: str, value: bytes) -> None:
    told = {"key": encode(key), "value": encode(value), "mod_revision": "7", "lease": "9"}
    entry = decode_entry(told)
    assert (entry.key, entry.value, entry.mod_revision, entry.lease) == (key, value, 7, 9)


@pytest.mark.parametrize(("kind", "there"), [("DELETE", False), ("PUT", True), (None, True)])
def test_an_event_sets_a_key_or_deletes_it(kind: str | None, there: bool) -> None:
    told = {"kv": {"key": encode("k")}} | ({"type": kind} if kind else {})
    (event,) = decode_events([told])
    assert (event.key, event.entry is not None) == ("k", there)
