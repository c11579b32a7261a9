"""What the broker says of a group's queues, as the dispatcher tells it on."""

from __future__ import annotations

import pytest

from tests.contract.groups.steps import Workers, eventually
from warren.client import Properties
from warren.groups.coordination.base import QueueState

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(params=["amqp"])
def coordinator(request: pytest.FixtureRequest) -> str:
    """The broker is asked in the same way with all of them, and a slow one takes its time."""
    return str(request.param)


async def test_backlog_and_age_of_the_first_message_are_known_to_the_dispatcher(
    workers: Workers,
) -> None:
    (queue,) = await workers.declare(1)
    worker = (await workers.join_many(1))[0]
    await worker.group.pause(queue)
    await eventually(lambda: not worker.held)
    stamped = Properties(timestamp=1_700_000_000)
    for _ in range(3):
        await workers.channel.publish(b"0", routing_key=queue, properties=stamped)

    def known() -> QueueState:
        state = workers.state()
        assert state is not None
        return state.queues[0]

    await eventually(lambda: (known().messages, known().oldest) == (3, 1_700_000_000))
