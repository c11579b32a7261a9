"""What a broker says when it refuses, as errors; and the errors' own words, back again."""

from __future__ import annotations

import pytest

from warren.amqp.replies import as_refusal
from warren.errors import (
    AccessRefused,
    ConnectionForced,
    Locked,
    NotAllowed,
    NotFound,
    NothingDeclared,
    OtherRefusal,
    PreconditionFailed,
    Refusal,
    ResourceLocked,
    Unavailable,
)


@pytest.mark.parametrize(
    "refusal",
    [
        ConnectionForced("closed by the operator"),
        AccessRefused("queue 'q' in vhost '/' in exclusive use"),
        NotFound("queue", "q", "/"),
        NotFound("exchange", "it's", "a/b"),
        NothingDeclared(),
        ResourceLocked("q", "/"),
        PreconditionFailed("unknown delivery tag 5"),
        NotAllowed("attempt to reuse consumer tag 'x'"),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
def test_a_refusal_survives_the_wire(refusal: Refusal) -> None:
    told = as_refusal(refusal.code, refusal.reply_text)
    assert (type(told), told.args, str(told)) == (type(refusal), refusal.args, str(refusal))


def test_a_locked_queue_s_text_is_known_when_it_is_cut() -> None:
    queue = "q" * 150
    told = as_refusal(405, ResourceLocked(queue, "/").reply_text[:252] + "...")
    assert isinstance(told, ResourceLocked)


@pytest.mark.parametrize(
    ("code", "text", "kind", "caught"),
    [
        (404, "NOT_FOUND - home node 'a' of queue 'q' is down", Unavailable, NotFound),
        (405, "RESOURCE_LOCKED - in other words", Locked, ResourceLocked),
        (311, "CONTENT_TOO_LARGE", OtherRefusal, Refusal),
    ],
)
def test_other_words_and_codes_are_kept(
    code: int, text: str, kind: type[Refusal], caught: type[Refusal]
) -> None:
    told = as_refusal(code, text)
    assert type(told) is kind
    assert isinstance(told, caught)
    assert text.rpartition(" - ")[2] in str(told)
