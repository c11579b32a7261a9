from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.test_deliveries import deliveries
from warren.spark.deliveries import to_batch
from warren.spark.ledger.match import (
    came_twice,
    delivery_counts,
    keys_of,
    match_in_doubt,
    match_settled,
)


@pytest.mark.parametrize(
    ("returned", "in_doubt", "dropped", "whole"),
    [
        ("abc", ["abc"], "abc", [True]),  # nothing was acknowledged
        ("", ["abc"], "", [False]),  # everything was
        ("xy", ["abc"], "", [False]),  # everything was, and others came back
        ("abcxy", ["abc"], "abc", [True]),
        ("xabc", ["abc"], "abc", [True]),  # put behind others, as quorum queues do
        ("bc", ["abc"], "bc", [False]),  # a part was acknowledged
        ("bcx", ["abc"], "bc", [False]),
        ("xb", ["abc"], "", [False]),  # published since: what was taken would stand in front
        ("axb", ["abc"], "a", [False]),
        ("cb", ["abc"], "c", [False]),  # so would it in its order
        ("aaaa", ["aaaa"], "aaaa", [True]),  # equal messages, all of them
        ("aa", ["aaaa"], "", [False]),  # equal messages, others: not these
        ("aab", ["aab", ""], "aab", [True, True]),
        ("abcd", ["ab", "cd"], "abcd", [True, True]),
        ("cd", ["ab", "cd"], "cd", [False, True]),  # the first was acknowledged
        ("ab", ["ab", "cd"], "ab", [True, False]),
    ],
)
def test_what_comes_back_is_compared_with_what_is_in_doubt(
    returned: str, in_doubt: list[str], dropped: str, whole: list[bool]
) -> None:
    found = match_in_doubt(rows(returned), [rows(segment) for segment in in_doubt])

    assert "".join(returned[index] for index in sorted(found.dropped)) == dropped
    assert list(found.returned_whole) == whole


@pytest.mark.parametrize(
    ("returned", "in_doubt", "forgotten", "dropped", "passed"),
    [
        ("abc", ["abc"], "", "abc", False),
        ("abcx", ["abc"], "", "abc", True),
        ("xabc", ["abc"], "", "", True),  # published since: what was taken would stand in front
        ("xa", ["a"], "", "", True),
        ("rabcx", ["abc"], "qr", "abc", True),  # behind what was settled, and is forgotten
        ("aab", ["ab"], "", "a", True),
        ("bc", ["abc"], "", "bc", False),
        ("", ["abc"], "", "", False),
    ],
)
def test_a_queue_that_puts_things_back_in_place_gives_them_out_first(
    returned: str, in_doubt: list[str], forgotten: str, dropped: str, passed: bool
) -> None:
    segments = [rows(segment) for segment in in_doubt]
    found = match_in_doubt(rows(returned), segments, in_place=True, forgotten=rows(forgotten))

    assert "".join(returned[index] for index in sorted(found.dropped)) == dropped
    assert found.passed == passed


@pytest.mark.parametrize("properties", [{"message_id": "id"}, {"priority": 3}])
def test_what_has_an_id_or_a_priority_is_known_behind_others_too(
    properties: dict[str, object],
) -> None:
    found = match_in_doubt(rows("xb", **properties), [rows("abc", **properties)], in_place=True)

    assert found.dropped == {1}


def rows(
    text: str, message_id: str | None = None, priority: int | None = None
) -> list[tuple[object, ...]]:
    given = {"priority": priority}
    messages = (
        (letter.encode(), {"message_id": message_id and letter, **given}) for letter in text
    )
    return keys_of(to_batch(deliveries(*messages), "q", 0, 0))  # type: ignore[return-value]


def test_long_bodies_are_told_apart_and_known_again() -> None:
    first, equal, other = (deliveries((body, {})) for body in (b"a" * 99, b"a" * 99, b"a" * 98))
    one, same, another = (keys_of(to_batch(took, "q", 0, 0))[0] for took in (first, equal, other))

    assert one == same != another
    assert b"a" * 99 not in one  # type: ignore[operator]  # a hundred queues of them are in memory


@pytest.mark.parametrize(
    ("returned", "recent", "dropped"),
    [
        ("cdxy", "abcd", [0, 1]),  # the end of what was taken
        ("xy", "abcd", []),
        ("ab", "abcd", []),  # its beginning: others that look alike
        ("bcd", "abcd", [0, 1, 2]),
        ("aa", "aaaa", []),  # equal messages prove nothing
        ("a", "a", []),  # nor does a single one
        ("d", "abcd", [0]),
        ("cdcd", "abcd", []),  # what comes twice is no proof either
    ],
)
def test_what_a_killed_broker_forgot_is_the_end_of_what_was_taken(
    returned: str, recent: str, dropped: list[int]
) -> None:
    assert sorted(match_settled(rows(returned), rows(recent))) == dropped


@pytest.mark.parametrize(("returned", "dropped"), [("dxy", []), ("cdx", []), ("bcdx", [0, 1, 2])])
def test_a_run_that_is_too_short_is_others_that_look_alike(
    returned: str, dropped: list[int]
) -> None:
    assert sorted(match_settled(rows(returned), rows("abcd"), shortest=3)) == dropped


@given(st.text("abcde", max_size=6), st.text("abcde", max_size=8))
def test_the_run_that_was_forgotten_is_found_as_if_every_length_were_tried(
    returned: str, recent: str
) -> None:
    def fits(length: int) -> bool:
        run = recent[-length:]
        alone = all(recent.count(each) == returned.count(each) == 1 for each in run)
        return returned[:length] == run and alone

    most = min(len(returned), len(recent)) if len(recent) > 1 else 0
    longest = next((length for length in range(most, 0, -1) if fits(length)), 0)

    assert sorted(match_settled(rows(returned), rows(recent))) == list(range(longest))


def test_a_message_with_an_id_is_known_wherever_it_stands() -> None:
    assert sorted(match_settled(rows("xab", "id"), rows("abcd", "id"))) == [1, 2]


def test_of_two_messages_with_one_id_one_is_known() -> None:
    assert sorted(match_settled(rows("aa", "id"), rows("abcd", "id"))) == [0]


def test_the_count_of_deliveries_does_not_make_another_message() -> None:
    first = deliveries((b"x", {"headers": {"a": 1}}))
    again = deliveries((b"x", {"headers": {"x-delivery-count": 1, "a": 1}}))
    other = deliveries((b"x", {"headers": {"a": 2}}))

    keys = [keys_of(to_batch(took, "q", 0, 0)) for took in (first, again, other)]

    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("window", "twice"),
    [
        ("a0 b0 a1 b1", True),  # taken back and given out again
        ("a1 b1 a2", True),
        ("a1 b1 c0", False),  # a former attempt had two of them
        ("a1 a1 a0", False),  # equal messages, handed out equally often or, the later ones, less
    ],
)
def test_a_message_came_twice_if_it_was_handed_out_more_often_the_second_time(
    window: str, twice: bool
) -> None:
    counts = [int(word[1]) for word in window.split()]
    took = deliveries(
        *(
            (word[0].encode(), {"headers": {"x-delivery-count": count}} if count else {})
            for word, count in zip(window.split(), counts, strict=True)
        )
    )
    took.redelivered = [index for index, count in enumerate(counts) if count]

    assert came_twice(to_batch(took, "q", 0, 0)) is twice


@pytest.mark.parametrize(
    ("redelivered", "headers", "counts"),
    [
        ([0, 1], [{"x-delivery-count": 2}, {"x-delivery-count": 1}, {}], [2, 1, 0]),
        ([0, 1], [{"x-acquired-count": 2}, {"x-acquired-count": 1}, {}], [2, 1, 0]),
        # A publisher's: on what was never given out before, and on a part of what was.
        ([0], [{"x-delivery-count": 1}, {"x-delivery-count": 5}, {}], [1, 0, 0]),
        ([0, 1, 2], [{}, {"x-delivery-count": 5}, {}], [0, 0, 0]),
        (
            [0, 1],
            [{"x-delivery-count": 1}, {"x-delivery-count": 1, "x-acquired-count": 9}, {}],
            [1, 1, 0],
        ),
        ([0], [{"x-delivery-count": "many"}, {}, {}], [0, 0, 0]),
        ([0], [{"x-delivery-count": "9" * 5000}, {}, {}], [0, 0, 0]),
    ],
)
def test_deliveries_are_counted_by_the_queue_and_not_by_a_publisher(
    redelivered: list[int], headers: list[dict[str, object]], counts: list[int]
) -> None:
    took = deliveries(*((b"x", {"headers": each}) for each in headers))
    took.redelivered = redelivered

    assert delivery_counts(to_batch(took, "q", 0, 0)) == counts
