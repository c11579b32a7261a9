"""Lists as people want them: sorted, filtered by name, a page at a time, some columns only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from warren.management.call import Call
from warren.management.messages import HttpError, Response, answer, answer_rows, bad_request

_PAGE_SIZE = 100
_LARGEST_PAGE = 500
#: Columns by which objects can be sorted before they are put into words.
_BASIC = ("name", "vhost")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    size: int
    name: str
    use_regex: bool


def reply_list(call: Call, objects: Iterable[Any], row: Callable[[Any], Row]) -> Response:
    """A list of objects that have a ``name`` (or of rows) as the query wants it."""
    page = _page(call)
    query = call.request.query
    sort, backwards = query.get("sort"), query.get("sort_reverse") == "true"
    items = list(objects)
    ready = sort is not None and sort not in _BASIC
    if ready:
        items = [row(item) for item in items]
    if sort != "":
        keys = [sort, "vhost", "name"] if sort else ["vhost", "name"]
        items.sort(key=lambda item: [_order(_value(item, key)) for key in keys], reverse=backwards)
    columns = _columns(query.get("columns"))

    def finished(item: Any) -> Any:
        return pick(item if ready else row(item), columns)

    if page is None:
        return answer_rows(finished(item) for item in items)
    return answer(_paged(items, page, finished))


def _paged(items: list[Any], page: Page, finished: Callable[[Any], Any]) -> Row:
    found = _filtered(items, page)
    start = (page.number - 1) * page.size
    if start > len(found):
        raise HttpError(
            400,
            "page_out_of_range",
            f"Page out of range, page: {page.number} page size: {page.size}, len: {len(found)}",
        )
    shown = [finished(item) for item in found[start : start + page.size]]
    return {
        "filtered_count": len(found),
        "item_count": len(shown),
        "items": shown,
        "page": page.number,
        "page_count": (len(found) + page.size - 1) // page.size,
        "page_size": page.size,
        "total_count": len(items),
    }


def _filtered(items: list[Any], page: Page) -> list[Any]:
    if not page.name:
        return items
    if not page.use_regex:
        wanted = page.name.lower()
        return [item for item in items if wanted in str(_value(item, "name")).lower()]
    try:
        pattern = re.compile(page.name, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError):
        raise bad_request("Pagination parameters are invalid") from None
    return [item for item in items if pattern.search(str(_value(item, "name")))]


def _page(call: Call) -> Page | None:
    query = call.request.query
    try:
        number = int(query["page"]) if "page" in query else None
        size = int(query["page_size"]) if "page_size" in query else None
    except ValueError:
        raise bad_request("Pagination parameters are invalid") from None
    if number is None:
        return None
    if number <= 0 or (size is not None and not 0 < size <= _LARGEST_PAGE):
        raise HttpError(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {number}, page size "
            f"{'undefined' if size is None else size}",
        )
    use_regex = query.get("use_regex") == "true"
    return Page(number, _PAGE_SIZE if size is None else size, query.get("name", ""), use_regex)


# -- sorting -------------------------------------------------------------------------------------
def _value(item: Any, key: str) -> Any:
    """A row's value by a dotted name, or an object's own ``name`` or ``vhost``."""
    if not isinstance(item, dict):
        if key == "vhost":
            vhost = getattr(item, "vhost", "")
            return vhost if isinstance(vhost, str) else vhost.name
        return getattr(item, key, 0)
    value: Any = item
    for part in key.split("."):
        value = value.get(part, 0) if isinstance(value, dict) else 0
    return value


def _order(value: Any) -> tuple[int, Any]:
    """Numbers before words, as in Erlang; what is not there counts as 0."""
    if isinstance(value, bool):
        return 1, str(value)
    if isinstance(value, int | float):
        return 0, value
    if value is None:
        return 1, "null"
    return 2, str(value)


# -- columns -------------------------------------------------------------------------------------
def _columns(text: str | None) -> list[list[str]] | None:
    if text is None:
        return None
    return [column.split(".") for column in text.split(",") if column]


def pick(value: Any, columns: list[list[str]] | None) -> Any:
    """Only these columns; a dotted one reaches into an object."""
    if columns is None:
        return value
    if isinstance(value, list):
        return [pick(item, columns) for item in value]
    if not isinstance(value, dict):
        return value
    picked = {}
    for key, item in value.items():
        deeper = [column[1:] for column in columns if column[0] == key]
        if deeper:
            picked[key] = item if [] in deeper else pick(item, deeper)
    return picked or []


def reply_one(call: Call, value: Row) -> Response:
    """One object, with the columns that are wanted."""
    return answer(pick(value, _columns(call.request.query.get("columns"))))
