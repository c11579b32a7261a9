"""A member that is there and says nothing: as one that hangs, or whose network is dead."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.contract.groups.steps import Workers, eventually
from tests.support.proxy import Proxy

pytestmark = pytest.mark.timeout(180)


async def test_rule_5_a_silent_member_is_given_up_by_its_heartbeat(workers: Workers) -> None:
    """Long before the broker's own heartbeat, of a minute, would end it."""
    await workers.declare(4)
    other = await workers.join()
    at = urlsplit(workers.broker.url)
    with Proxy(at.hostname or "", at.port or 0) as proxy:
        silent = await workers.join(url=proxy.url, heartbeat_s=2)
        await workers.balanced()
        proxy.refuse()  # nor does it come back
        proxy.freeze()
        await workers.publish(3)
        await eventually(lambda: other.held == set(workers.queues))
        await workers.all_handled()
        await workers.leave(silent)
    assert not [line for line in workers.lines if line.member == silent.name and line.queue]
