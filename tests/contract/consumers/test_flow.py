"""channel.flow: a client may ask for it to be on, not for it to be off."""

from __future__ import annotations

from pika import spec

from tests.contract.consumers.steps import fill
from tests.support.wire import Channel


def test_turning_flow_on_is_answered(channel: Channel) -> None:
    assert channel.call(spec.Channel.Flow(active=True)).active is True


def test_turning_flow_on_changes_nothing_for_consumers(channel: Channel, queue: str) -> None:
    channel.consume(queue)
    channel.call(spec.Channel.Flow(active=True))
    fill(channel, queue, "a")
    assert channel.delivery().body == b"a"


def test_turning_flow_off_is_not_implemented(channel: Channel) -> None:
    refusal = channel.refused(spec.Channel.Flow(active=False))
    assert (refusal.scope, refusal.code) == ("connection", 540)
    assert refusal.text == "NOT_IMPLEMENTED - active=false"
    assert (refusal.class_id, refusal.method_id) == (20, 20)


def test_an_unasked_flow_ok_is_a_command_the_broker_does_not_know(channel: Channel) -> None:
    refusal = channel.refused(spec.Channel.FlowOk(active=True))
    assert (refusal.scope, refusal.code) == ("connection", 503)
    assert refusal.text == "COMMAND_INVALID - unimplemented method"
    assert (refusal.class_id, refusal.method_id) == (20, 21)
