"""What a broker refuses, without a broker (``tests/contract/cli`` asks one)."""

from __future__ import annotations

import pytest

from warren.topology.model import Binding, Exchange, Policy, Queue
from warren.topology.rules import problems


def queue(kind: str = "classic", **arguments: object) -> Queue:
    return Queue("q", kind, arguments={k.replace("_", "-"): v for k, v in arguments.items()})


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (Exchange("amq.own"), "names that begin with amq. are the broker's own"),
        (Queue("amq.own"), "names that begin with amq. are the broker's own"),
        (Queue("q" * 256), "a name has at most 255 octets"),
        (Exchange(""), "needs a name"),
        (Exchange("e", "topik"), "the broker has no exchange type 'topik'; did you mean topic?"),
        (Exchange("e", "zz"), "the broker has no exchange type 'zz'; it has direct, topic"),
        (Exchange("e", arguments={"alternate-exchange": 5}), "alternate-exchange must be text"),
        (Queue("q", "quorum", durable=False), "a quorum queue must be durable"),
        (Queue("q", "stream", auto_delete=True), "a stream queue can't be auto_delete"),
        (queue("quorum", x_max_priority=5), "x-max-priority is not for quorum queues"),
        (queue(x_max_length=-1), "x-max-length must be a whole number, 0 or more"),
        (queue(x_max_length=True), "x-max-length must be a whole number, 0 or more"),
        (
            queue(x_dead_letter_routing_key="k"),
            "x-dead-letter-routing-key needs x-dead-letter-exchange",
        ),
        (queue("stream", x_max_age="7"), "x-max-age must be an age such as 7D or 12h"),
        (Binding("", "q"), "the default exchange leads to every queue by its name"),
        (
            Binding("hash", "q", routing_key="eu"),
            "behind an x-consistent-hash exchange the routing",
        ),
        (Binding("amq.match", "q", arguments={"x-match": "some"}), "x-match must be all, any,"),
        (Policy("p", "a(", {"max-length": 1}), "pattern is no regular expression: missing ),"),
        (Policy("p", "a", {}), "its definition is empty"),
        (
            Policy("p", "a", {"max-lenth": 1}),
            "policies have no 'max-lenth'; did you mean max-length?",
        ),
        (
            Policy("p", "a", {"x-max-length": 1}),
            "policies have no 'x-max-length'; did you mean max-",
        ),
        (Policy("p", "a", {"max-length": "1"}), "max-length must be a whole number, 0 or more"),
    ],
)
def test_what_a_broker_would_refuse_is_found(item: Queue, problem: str) -> None:
    types, type_of = ["direct", "topic"], {"hash": "x-consistent-hash"}
    (found,) = problems(item, exchange_types=types, type_of=type_of)
    assert found[: len(problem)] == problem


@pytest.mark.parametrize(
    "item",
    [
        Exchange("e", "x-anything"),  # nobody has said which types there are
        queue(x_max_length=0, x_of_my_own="anything"),
        queue("stream", x_max_age="7D"),
        Binding("amq.match", "q", arguments={"x-match": "any-with-x"}),
        Policy("p", r"^(?!amq\.).*\z", {"federation-upstream-set": "all"}),
        Policy("p", "[[:alpha:]]", {"message-ttl": 0}),
    ],
    ids=str,
)
def test_what_a_broker_would_take_is_let_through(item: Queue) -> None:
    assert list(problems(item)) == []
