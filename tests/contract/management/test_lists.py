"""Lists: pages, filters by name, columns, order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.management.http import Api, at

NAMES = ["apple", "banana", "blueberry", "cherry", "date"]


@pytest.fixture(scope="module")
def queues(api: Api, vhost: str) -> Iterator[str]:
    """The path of a virtual host's queues; there are five of them."""
    for name in NAMES:
        assert api.put(at("queues", vhost, name), {"durable": name == "date"}) == (201, None)
    return at("queues", vhost)


def names(rows: list[dict[str, object]]) -> list[object]:
    return [row["name"] for row in rows]


def test_a_list_is_sorted_by_name(api: Api, queues: str) -> None:
    assert names(api.get(queues)) == NAMES


def test_sort_reverse_turns_it_round(api: Api, queues: str) -> None:
    assert names(api.get(f"{queues}?sort=name&sort_reverse=true")) == NAMES[::-1]


def test_a_list_can_be_sorted_by_any_column(api: Api, queues: str) -> None:
    rows = api.get(f"{queues}?sort=durable&sort_reverse=true&columns=name,durable")
    assert rows[0] == {"name": "date", "durable": True}


def test_columns_leave_out_the_rest(api: Api, queues: str) -> None:
    assert api.get(f"{queues}?columns=name,durable")[0] == {"name": "apple", "durable": False}


def test_a_page_tells_what_is_around_it(api: Api, queues: str) -> None:
    assert api.get(f"{queues}?page=2&page_size=2&columns=name") == {
        "filtered_count": 5,
        "item_count": 2,
        "items": [{"name": "blueberry"}, {"name": "cherry"}],
        "page": 2,
        "page_count": 3,
        "page_size": 2,
        "total_count": 5,
    }


def test_a_name_filters_wherever_it_stands_in_capitals_or_not(api: Api, queues: str) -> None:
    page = api.get(f"{queues}?page=1&name=BERRY&columns=name")
    assert (names(page["items"]), page["filtered_count"], page["total_count"]) == (
        ["blueberry"],
        1,
        5,
    )


def test_a_name_may_be_a_regular_expression(api: Api, queues: str) -> None:
    page = api.get(f"{queues}?page=1&name=%5Eb&use_regex=true&columns=name")
    assert names(page["items"]) == ["banana", "blueberry"]


def test_the_page_behind_the_last_is_empty_when_it_begins_at_the_end(api: Api, queues: str) -> None:
    page = api.get(f"{queues}?page=2&page_size=5")
    assert (page["items"], page["page_count"]) == ([], 1)


def test_a_page_far_behind_the_last_is_refused(api: Api, queues: str) -> None:
    assert api.ask("GET", f"{queues}?page=9&page_size=2").said == (
        400,
        {
            "error": "page_out_of_range",
            "reason": "Page out of range, page: 9 page size: 2, len: 5",
        },
    )


@pytest.mark.parametrize("query", ["page=0", "page=1&page_size=0", "page=1&page_size=501"])
def test_a_page_that_can_not_be_is_refused(api: Api, queues: str, query: str) -> None:
    status, body = api.ask("GET", f"{queues}?{query}").said
    assert (status, body["error"]) == (400, "invalid_pagination_parameters")


def test_a_page_that_is_no_number_is_refused(api: Api, queues: str) -> None:
    assert api.ask("GET", f"{queues}?page=one").said == (
        400,
        {"error": "bad_request", "reason": "Pagination parameters are invalid"},
    )
