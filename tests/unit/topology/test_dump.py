"""A topology as a file: short, and read back as what it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warren.topology.dump import dump
from warren.topology.load import load
from warren.topology.model import Binding, Exchange, Policy, Queue, Topology

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(NAMES.filter(lambda name: name != "x-queue-type"), VALUES, max_size=3)
EXCHANGES = st.builds(
    Exchange,
    NAMES,
    type=NAMES,
    durable=st.booleans(),
    auto_delete=st.booleans(),
    internal=st.booleans(),
    arguments=ARGUMENTS,
)
QUEUES = st.builds(
    Queue,
    NAMES,
    type=st.sampled_from(["classic", "quorum", "stream"]),
    durable=st.booleans(),
    auto_delete=st.booleans(),
    arguments=ARGUMENTS,
)
BINDINGS = st.builds(
    Binding,
    NAMES,
    NAMES,
    to=st.sampled_from(["queue", "exchange"]),
    routing_key=NAMES,
    arguments=ARGUMENTS,
)
POLICIES = st.builds(
    Policy,
    NAMES,
    NAMES,
    ARGUMENTS,
    apply_to=st.sampled_from(["all", "queues", "exchanges"]),
    priority=st.integers(-5, 5),
)


def several(of: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(of, max_size=2, unique_by=lambda item: item.key).map(tuple)


@given(
    st.builds(
        Topology,
        vhost=NAMES.filter(bool),
        exchanges=several(EXCHANGES),
        queues=several(QUEUES),
        bindings=several(BINDINGS),
        policies=several(POLICIES),
    )
)
def test_what_is_dumped_is_loaded_as_it_was(topology: Topology) -> None:
    assert load(dump(topology)) == topology


def test_what_is_usual_is_left_out() -> None:
    topology = Topology(
        vhost="/",
        exchanges=(Exchange("orders", "topic"),),
        queues=(Queue("eu"), Queue("us", "quorum", arguments={"x-max-length": 5})),
        bindings=(Binding("orders", "eu"),),
        policies=(Policy("p", "^eu", {"max-length": 1}),),
    )
    assert dump(topology) == (
        "vhost: /\n\n"
        "exchanges:\n  orders: {type: topic}\n\n"
        "queues:\n  eu: {}\n  us:\n    type: quorum\n    arguments: {x-max-length: 5}\n\n"
        "bindings:\n- {source: orders, queue: eu}\n\n"
        "policies:\n  p:\n    pattern: ^eu\n    definition: {max-length: 1}\n"
    )


def test_an_empty_topology_can_be_loaded() -> None:
    assert load(dump(Topology())) == Topology()
