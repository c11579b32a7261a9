"""Heartbeats of a blocking connection."""

from __future__ import annotations

import pytest

from tests.unit.client.wire_model import connected
from warren.amqp.frames import HEARTBEAT_FRAME


def test_heartbeats_are_sent_also_while_data_comes_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link, wire = connected(monkeypatch, lambda: HEARTBEAT_FRAME * 512)

    end = wire.now + 6
    while wire.now < end:
        link.pump(0.1)

    assert 6 <= wire.heartbeats <= 13  # one every half second, about
