"""Few ack frames, and exactly those deliveries settled that were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warren.client.settling import Settling


class Broker:
    """RabbitMQ's bookkeeping of a channel's deliveries: a wrong tag is an error."""

    def __init__(self, count: int) -> None:
        self.open = set(range(1, count + 1))
        self.acked: set[int] = set()

    def ack(self, tag: int, multiple: bool) -> None:
        assert tag in self.open, f"unknown delivery tag {tag}"
        taken = {each for each in self.open if each <= tag} if multiple else {tag}
        self.open -= taken
        self.acked |= taken

    def nack(self, tag: int) -> None:
        assert tag in self.open, f"unknown delivery tag {tag}"
        self.open.discard(tag)


def test_acks_in_order_are_one_frame() -> None:
    settling = Settling()
    assert all(settling.ack(tag) for tag in range(1, 101))
    assert settling.take() == [(100, True)]
    assert settling.take() == []


def test_one_ack_is_not_multiple() -> None:
    settling = Settling()
    settling.ack(1)
    assert settling.take() == [(1, False)]


def test_acks_beyond_a_gap_stand_alone_until_it_closes() -> None:
    settling = Settling()
    settling.ack(2)
    settling.ack(3)
    assert settling.take() == [(2, False), (3, False)]
    settling.ack(1)
    settling.ack(4)
    assert settling.take() == [(4, True)]


def test_the_tag_of_a_multiple_ack_is_one_that_is_open() -> None:
    settling = Settling()
    assert settling.settle(3)  # nacked
    settling.ack(1)
    settling.ack(2)
    assert settling.take() == [(2, True)]


def test_nothing_is_settled_twice() -> None:
    settling = Settling()
    assert settling.ack(2)
    assert not settling.ack(2)
    assert not settling.settle(2)
    assert settling.settle(1)
    assert not settling.ack(1)


def test_what_the_broker_took_back_can_t_be_acked() -> None:
    settling = Settling()
    settling.ack(1)
    settling.take()
    settling.forget(5)
    assert not any(settling.ack(tag) for tag in range(1, 6))
    assert settling.ack(6)
    assert settling.take() == [(6, False)]


@given(
    st.integers(1, 12).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(
                st.tuples(st.sampled_from(["ack", "nack", "flush"]), st.integers(1, count)),
                max_size=40,
            ),
        )
    )
)
def test_the_broker_settles_exactly_what_was_settled_here(
    script: tuple[int, list[tuple[str, int]]],
) -> None:
    count, steps = script
    broker, settling = Broker(count), Settling()
    acked: set[int] = set()
    nacked: set[int] = set()

    def flush() -> None:
        for tag, multiple in settling.take():
            broker.ack(tag, multiple)

    for what, tag in steps:
        fresh = tag not in acked | nacked
        if what == "ack":
            assert settling.ack(tag) == fresh
            acked |= {tag} - nacked
        elif what == "nack":
            assert settling.settle(tag) == fresh
            if fresh:
                broker.nack(tag)
                nacked.add(tag)
        else:
            flush()
    flush()

    assert broker.acked == acked
    assert broker.open == set(range(1, count + 1)) - acked - nacked
