"""What is expected here was read off RabbitMQ 3.10.8."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from warren.amqp.tables import Timestamp
from warren.amqp.terms import erlang_integer, erlang_text, field_type


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("some", "longstr", '<<"some">>'),
        ("", "longstr", "<<>>"),
        ('a"b\\c\n', "longstr", '<<"a\\"b\\\\c\\n">>'),
        ("é", "longstr", '<<"é">>'),
        ("日本", "longstr", "<<230,151,165,230,156,172>>"),
        ("a\tb\x7f", "longstr", "<<97,9,98,127>>"),
        ("\udcff", "longstr", '<<"\udcff">>'),
        (1, "signedint", "1"),
        (2**40, "long", "1099511627776"),
        (True, "bool", "true"),
        (None, "void", "undefined"),
        (1.5, "double", "1.5"),
        (1e22, "double", "1.0e22"),
        (b"all", "binary", '<<"all">>'),
        (Timestamp(5), "timestamp", "5"),
        (Decimal("1.25"), "decimal", "{2,125}"),
        ({}, "table", "[]"),
        ({"a": 1}, "table", '[{<<"a">>,signedint,1}]'),
        ([1, "a"], "array", '[{signedint,1},{longstr,<<"a">>}]'),
    ],
)
def test_values_are_named_and_printed_as_erlang_does(value: Any, kind: str, text: str) -> None:
    assert (field_type({"key": value}, "key"), erlang_text(value)) == (kind, text)


@pytest.mark.parametrize(("text", "number"), [("10", 10), ("+5", 5), ("007", 7), ("-3", -3)])
def test_integers_may_have_a_sign_and_zeros(text: str, number: int) -> None:
    assert erlang_integer(text) == number


@pytest.mark.parametrize("text", ["", " 5", "5 ", "5\n", "1.5", "1_000", "٣", "-", "abc"])
def test_what_erlang_would_not_read_is_no_integer(text: str) -> None:
    assert erlang_integer(text) is None
