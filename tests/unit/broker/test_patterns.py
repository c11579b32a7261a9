from __future__ import annotations

import pytest

from warren.broker.patterns import compile_pattern, matches
from warren.errors import AdminError


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("", "", True),
        ("", "a", False),
        (".*", "", True),
        ("b", "abc", True),
        ("^b", "abc", False),
        (r"^a\z", "a", True),
        (r"^a\Z", "a", True),
        (r"^\h$", "\t", True),
        (r"^\H+$", "a b", False),
        (r"^[\h]$", " ", True),
        ("^[[:upper:][:digit:]]+$", "A1", True),
        ("^[[:^upper:]]+$", "A1", False),
        ("^[[:^upper:]]+$", "a1", True),
        ("^[[a]+$", "[a", True),
        ("^[^]]+$", "a]", False),
        (r"^\Q(\E$", "(", True),
        (r"^\Q(", "(a", True),
        ("^(?'word'a)$", "a", True),
        (r"^\[:alpha:\]$", "[:alpha:]", True),
        ("a{2", "a{2", True),  # a brace that begins no count is a brace
        ("é", "caf\u00e9", True),
        ("^.$", "\udcff", True),
    ],
)
def test_perls_spelling_is_understood(pattern: str, name: str, found: bool) -> None:
    assert matches(pattern, name) is found


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?<1>a)", "[[:nope:]]", "\\"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(AdminError, match="invalid_regexp"):
        compile_pattern(pattern)
