"""Random sequences of operations on one queue, held against a model in plain Python.

The model: a message has a place (its number) and a flag. Ready messages are handed out by place,
lowest first; whatever is given back returns to its place with the flag set.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pika import spec

from tests.contract.consumers.steps import wait_ready
from tests.support.wire import Connection

HOLDERS = st.integers(0, 1)


class QueueModel(RuleBasedStateMachine):
    """Two channels work on one queue; after every step the broker must agree with the model."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection
        self.control = connection.channel(1)
        self.queue = self.control.declare(exclusive=True).queue
        self.holders = [connection.channel(2), connection.channel(3)]
        self.published = 0
        self.ready: list[tuple[int, bool]] = []  # (place, redelivered), by place
        self.unacked: list[dict[int, int]] = [{}, {}]  # for each holder: delivery tag -> place
        self.last_tag = [0, 0]

    def teardown(self) -> None:
        drained = [self.control.get(self.queue) for _ in self.ready]
        seen = [(int(m.body), m.method.redelivered) for m in drained if m is not None]
        assert seen == self.ready
        for channel in (self.control, *self.holders):
            channel.close()

    def give_back(self, holder: int, tags: list[int]) -> None:
        for tag in tags:
            insort(self.ready, (self.unacked[holder].pop(tag), True))

    def settled(self) -> None:
        """What one channel did takes effect before the next step, on whichever channel."""
        wait_ready(self.control, self.queue, len(self.ready))

    @rule(count=st.integers(1, 4))
    def publish(self, count: int) -> None:
        for _ in range(count):
            self.control.publish(self.queue, b"%d" % self.published)
            self.ready.append((self.published, False))
            self.published += 1
        self.settled()

    @rule(holder=HOLDERS, count=st.integers(1, 4), no_ack=st.sampled_from([False, False, True]))
    def get(self, holder: int, count: int, no_ack: bool) -> None:
        for _ in range(count):
            self.get_one(holder, no_ack)

    def get_one(self, holder: int, no_ack: bool) -> None:
        message = self.holders[holder].get(self.queue, no_ack=no_ack)
        if not self.ready:
            assert message is None
            return
        assert message is not None
        place, redelivered = self.ready.pop(0)
        self.last_tag[holder] += 1
        assert (int(message.body), message.method.redelivered) == (place, redelivered)
        assert message.tag == self.last_tag[holder]
        assert message.method.message_count == len(self.ready)
        if not no_ack:
            self.unacked[holder][message.tag] = place

    def choose(self, holder: int, data: st.DataObject, multiple: bool) -> tuple[int, list[int]]:
        """A tag to settle, and the tags this settles."""
        tags = list(self.unacked[holder])
        tag = data.draw(st.sampled_from([0, *tags] if multiple else tags), label="tag")
        if not multiple:
            return tag, [tag]
        return tag, [other for other in tags if tag == 0 or other <= tag]

    @precondition(lambda self: self.unacked[0])
    @rule(data=st.data(), multiple=st.booleans())
    def ack(self, data: st.DataObject, multiple: bool) -> None:
        tag, settles = self.choose(0, data, multiple)
        self.holders[0].ack(tag, multiple)
        for other in settles:
            del self.unacked[0][other]

    @precondition(lambda self: any(self.unacked))
    @rule(data=st.data(), multiple=st.booleans(), requeue=st.booleans())
    def nack(self, data: st.DataObject, multiple: bool, requeue: bool) -> None:
        holder = data.draw(st.sampled_from([at for at in (0, 1) if self.unacked[at]]))
        tag, settles = self.choose(holder, data, multiple)
        self.holders[holder].nack(tag, multiple, requeue)
        if requeue:
            self.give_back(holder, settles)
            self.settled()
        else:
            for other in settles:
                del self.unacked[holder][other]

    @rule(holder=HOLDERS, how=st.sampled_from(["recover", "close", "error"]))
    def give_all_back(self, holder: int, how: str) -> None:
        channel, unknown = self.holders[holder], self.last_tag[holder] + 1
        if how == "recover":
            channel.call(spec.Basic.Recover(requeue=True))
        elif how == "close":
            channel.close()
        else:
            refusal = channel.refused(spec.Basic.Ack(unknown))
            assert refusal.text == f"PRECONDITION_FAILED - unknown delivery tag {unknown}"
        self.give_back(holder, list(self.unacked[holder]))
        if how != "recover":
            self.holders[holder] = self.connection.channel(channel.number)
            self.last_tag[holder] = 0
        self.settled()


def test_a_queue_behaves_as_the_model_says(connect: Callable[..., Connection]) -> None:
    connection = connect()
    run_state_machine_as_test(
        lambda: QueueModel(connection),
        settings=settings(
            max_examples=30,
            stateful_step_count=40,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
