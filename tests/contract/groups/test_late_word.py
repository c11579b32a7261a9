"""A coordinator may outlive the connection to the broker; what it says then is not taken up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.support.brokers import TestBroker
from warren.client import Delivery
from warren.groups.coordination.base import Assigned, Assignment, Stamp
from warren.groups.group import Group
from warren.groups.member import Claim


async def test_an_assignment_that_comes_after_the_connection_was_lost_is_ignored(
    broker: TestBroker, name: Callable[[str], str]
) -> None:
    async def handle(delivery: Delivery) -> None: ...

    async with Group(broker.url, name("group"), [], listener=handle) as group:
        session = group._session
        assert session is not None
        session._connection.link.abort()
        async with asyncio.timeout(30):
            await session.ended.wait()
        # As etcd would tell it, which knows nothing of our connection.
        late = Assignment(group.member_name, Stamp(10**6, 1), ("nothing",))
        session._hear(Assigned(late))
        assert group._seat.member.state_of("nothing") is Claim.FREE
