"""Which messages a table takes."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.exchanges.stand_ins import Queue, bind, routed
from warren.broker.exchanges.topic import TopicExchange
from warren.pipeline.patterns import glob_regex, topic_regex

WORDS = st.sampled_from(["", "a", "b", "ab", "a-b", "a+", "ß"])
KEYS = st.lists(WORDS, max_size=4).map(".".join)
TOPICS = st.lists(WORDS | st.sampled_from(["*", "#"]), max_size=4).map(".".join)


def dotted(key: str) -> str:
    return f".{key}" if key else ""


@given(st.text("ab.*?[]\n", max_size=5), st.text("ab.*[]\n", max_size=5))
def test_a_glob_fits_what_fnmatch_says(pattern: str, text: str) -> None:
    expected = fnmatchcase(text, pattern.replace("[", "[[]"))

    assert bool(re.fullmatch(glob_regex(pattern), text)) == expected


@given(TOPICS, KEYS)
def test_a_topic_fits_what_a_topic_exchange_routes(pattern: str, key: str) -> None:
    exchange = TopicExchange("topic")
    bind(exchange, Queue("q"), pattern)

    assert bool(re.fullmatch(topic_regex(pattern), dotted(key))) == bool(routed(exchange, key))
