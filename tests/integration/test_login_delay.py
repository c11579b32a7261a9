"""Where logins have failed, the next one waits: over a real socket, on virtual time."""

from __future__ import annotations

import pytest
from pika import spec

import warren
from tests.support.wire import PROTOCOL_HEADER, Wire
from warren.testing import FakeClock


def test_a_login_is_not_answered_before_its_delay_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    with warren.Broker.in_thread(clock=clock) as broker:
        # Loopback never waits, and a test has no other address to come from.
        monkeypatch.setattr(broker.core.admin, "login_delay_ms", lambda host: 3000)
        wire = Wire("127.0.0.1", broker.port)
        wire.send(PROTOCOL_HEADER)
        assert wire.read().method.NAME == "Connection.Start"
        login = spec.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")
        wire.send_method(0, login)
        with pytest.raises(TimeoutError):
            wire.read(timeout_s=0.3)
        clock.advance(3)
        assert wire.read().method.NAME == "Connection.Tune"
        wire.close()
