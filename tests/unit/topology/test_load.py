"""A topology file: what it may say, and how its mistakes are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warren.errors import TopologyError
from warren.topology.load import load
from warren.topology.model import Binding, Exchange, Policy, Queue, Topology
from warren.topology.rules import problems


def test_everything_that_a_file_can_say() -> None:
    text = """
vhost: shop
exchanges:
  orders: {type: topic, durable: false, auto_delete: true, internal: true, arguments: {a: 1}}
queues:
  eu: {type: quorum, arguments: {x-max-length: 5}}
bindings:
  - {source: orders, queue: eu, routing_key: "eu.#", arguments: {x: [1, {y: 2.5}]}}
  - {source: orders, exchange: amq.fanout}
policies:
  short: {pattern: ^eu, apply_to: queues, priority: 3, definition: {max-length: 5}}
"""
    assert load(text) == Topology(
        vhost="shop",
        exchanges=(
            Exchange("orders", "topic", False, auto_delete=True, internal=True, arguments={"a": 1}),
        ),
        queues=(Queue("eu", "quorum", arguments={"x-max-length": 5}),),
        bindings=(
            Binding("orders", "eu", routing_key="eu.#", arguments={"x": [1, {"y": 2.5}]}),
            Binding("orders", "amq.fanout", to="exchange"),
        ),
        policies=(Policy("short", "^eu", {"max-length": 5}, apply_to="queues", priority=3),),
    )


def test_a_name_with_nothing_behind_it_has_the_defaults() -> None:
    found = load("exchanges:\n  orders:\nqueues:\n  eu:\nbindings:\npolicies:\n")
    assert found == Topology(exchanges=(Exchange("orders"),), queues=(Queue("eu"),))


def test_items_know_their_line() -> None:
    found = load("queues:\n  a:\n\n  b:\nbindings:\n  - {source: x, queue: a}\n")
    assert [item.line for item in found.items()] == [2, 4, 6]


def test_the_queue_type_may_stand_in_the_arguments() -> None:
    text = "queues: {a: {arguments: {x-queue-type: stream}}, b: {type: stream}}"
    a, b = load(text).queues
    assert a.facts() == b.facts()
    assert a.declared == {"x-queue-type": "stream"}


def test_a_merge_key_brings_what_another_entry_says() -> None:
    text = "queues:\n  a: &a {durable: false, arguments: {x: 1}}\n  b: {<<: *a, durable: true}\n"
    a, b = load(text).queues
    assert (a.durable, b.durable, b.arguments) == (False, True, {"x": 1})


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 0, "the file is empty"),
        ("- a", 1, "the file must be a mapping: lines like 'name: value'"),
        ("queue: {}", 1, "the file: unknown key 'queue'; did you mean 'queues'?"),
        ("foo: {}", 1, "the file: unknown key 'foo'; known are vhost, exchanges, queues"),
        (
            "queues:\n  a:\n    argumets: {}",
            3,
            "queue 'a': unknown key 'argumets'; did you mean 'arguments'?",
        ),
        (
            "exchanges:\n  a: {typ: topic}",
            2,
            "exchange 'a': unknown key 'typ'; did you mean 'type'",
        ),
        ("policies:\n  p: {apply-to: x}", 2, "policy 'p': unknown key 'apply-to'; did you mean"),
        ("bindings:\n  - {source: a, que: b}", 2, "a binding: unknown key 'que'; did you mean 'qu"),
        ("queues:\n  a:\n  a:", 3, "queues: 'a' stands on line 2 already"),
        (
            "bindings:\n  - {source: a, queue: b}\n  - {queue: b, source: a}",
            3,
            "binding a -> queue b stands on line 2 already",
        ),
        ("queues:\n  a: {durable: maybe}", 2, "queue 'a': durable must be true or false"),
        ("queues:\n  a: {type: quorom}", 2, "queue 'a': unknown type 'quorom'; did you mean 'quor"),
        ("queues:\n  5: {}", 2, "queues: 5 is no text in YAML; write '5'"),
        ("queues:\n  on: {}", 2, "queues: on is no text in YAML; write 'on'"),
        (
            "bindings:\n  - {source: a, queue: b, routing_key: 1}",
            2,
            "a binding: routing_key must be text; write '1'",
        ),
        ("bindings:\n  - {queue: b}", 2, "a binding needs a source: the exchange it leads from"),
        ("bindings:\n  - {source: b}", 2, "a binding needs either a queue or an exchange to lead"),
        ("bindings:\n  - {source: b, queue: a, exchange: c}", 2, "a binding needs either a queue"),
        ("bindings: {a: b}", 1, "bindings must be a list: a line with '- ' for each"),
        ("bindings:\n  - orders", 2, "a binding must be a mapping"),
        ("policies:\n  p: {pattern: a}", 2, "policy 'p' needs a definition"),
        ("policies:\n  p: {definition: {a: 1}}", 2, "policy 'p' needs a pattern"),
        (
            "policies:\n  p:\n    pattern: a\n    definition: {}\n    apply_to: queue",
            5,
            "policy 'p': unknown apply_to 'queue'; did you mean 'queues'?",
        ),
        (
            "policies:\n  p:\n    pattern: a\n    definition: {}\n    priority: high",
            5,
            "policy 'p': priority must be a whole number",
        ),
        (
            "queues:\n  a:\n    arguments:\n      x: 2026-01-01",
            4,
            "queue 'a': x must be text, a number, true, false, a list or a mapping",
        ),
        ("queues:\n  a:\n    arguments: {x: null}", 3, "queue 'a': x must be text, a number"),
        ("queues:\n  a: {arguments: [1]}", 2, "arguments of queue 'a' must be a mapping"),
        (
            "queues:\n  a: {type: quorum, arguments: {x-queue-type: stream}}",
            2,
            "queue 'a': type is quorum, x-queue-type is stream",
        ),
        ("vhost: ''", 1, "vhost must not be empty"),
        ("vhost: 5", 1, "the file: vhost must be text; write '5'"),
        ("queues:\n  a: {b", 2, "not YAML: "),
        ("queues:\n\ta: b", 2, "not YAML: found character '\\t' that cannot start any token"),
        ("queues:\n  a\0: {}", 2, "not YAML: a character that no text has, #x0000"),
        ("a: b\n---\nc: d", 2, "not YAML: but found another document"),
        (
            "queues:\n  a:\n    arguments: {x: !!python/name:os.system ''}",
            3,
            "not YAML: could not determine a constructor for the tag",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(TopologyError) as told:
        load(text, "shop.yaml")
    assert (told.value.line, told.value.problem[: len(problem)]) == (line, problem)
    where = f"shop.yaml:{line}: " if line else "shop.yaml: "
    assert str(told.value).startswith(where + problem)


def test_the_file_in_the_guide_can_be_loaded() -> None:
    page = Path(__file__).parents[3] / "docs" / "guide" / "topology.md"
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    topology = load(example)
    assert (topology.vhost, len(list(topology.items()))) == ("shop", 9)
    assert not [problem for item in topology.items() for problem in problems(item)]
