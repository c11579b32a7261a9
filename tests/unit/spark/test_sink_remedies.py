"""What the broker refuses of the sink, and what is said to do about it."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from warren.errors import AccessRefused, NotFound, PreconditionFailed, Refusal, RowsNotTaken
from warren.spark.sink.options import SinkOptions
from warren.spark.sink.writer import remedies

DEAD = {"onUnroutable": "deadletter", "deadLetterExchange": "dead"}


@pytest.mark.parametrize(
    ("given", "refusal", "remedy"),
    [
        ({}, NotFound("exchange", "dead", "/"), "option or column 'exchange'"),
        (DEAD, NotFound("exchange", "dead", "/"), "correct the option 'deadLetterExchange'"),
        (DEAD, NotFound("exchange", "other", "/"), "option or column 'exchange'"),
        (
            {},
            AccessRefused("access to exchange 'x' in vhost '/' refused for user 'ann'"),
            "user 'ann': grant that user the permission to write to it",
        ),
        (
            {},
            PreconditionFailed("user_id property set to 'bob' but authenticated user was 'ann'"),
            "user was 'ann': log in as that user, or drop the column user_id",
        ),
        ({}, PreconditionFailed("invalid expiration 'soon'"), "'soon': correct that column"),
    ],
)
def test_a_refusal_comes_with_its_remedy(
    given: dict[str, str], refusal: Refusal, remedy: str
) -> None:
    with pytest.raises(RowsNotTaken, match=remedy), remedies(SinkOptions.parse(given)):
        raise refusal
