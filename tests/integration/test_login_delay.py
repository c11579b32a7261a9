"""Where logins have failed, the next ones wait: over real sockets, on virtual time."""

from __future__ import annotations

import http.client
import threading
from base64 import b64encode
from collections.abc import Iterator

import pytest
from pika import spec

import warren
from tests.support.eventually import eventually
from tests.support.wire import PROTOCOL_HEADER
from tests.support.wire_frames import Wire
from warren.broker import logins
from warren.testing import FakeClock

WAIT_S = logins.SAME_USER_SAME_PLACE.first_ms / 1000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def broker(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[warren.Broker]:
    # Loopback never waits, and a test has no other address to come from.
    monkeypatch.setattr(logins, "is_loopback", lambda host: False)
    with warren.Broker.in_thread(clock=clock, management_port=0) as broker:
        broker.administer(lambda admin: fail(admin._failed))
        yield broker


def fail(failed: logins.FailedLogins) -> None:
    for _ in range(logins.SAME_USER_SAME_PLACE.free):
        failed.failed("127.0.0.1", "guest")


def test_a_login_is_not_answered_before_its_turn(broker: warren.Broker, clock: FakeClock) -> None:
    wire = Wire("127.0.0.1", broker.port)
    wire.send(PROTOCOL_HEADER)
    assert wire.read().method.NAME == "Connection.Start"
    login = spec.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")
    wire.send_method(0, login)
    with pytest.raises(TimeoutError):
        wire.read(timeout_s=0.3)
    clock.advance(WAIT_S)
    assert wire.read().method.NAME == "Connection.Tune"
    wire.close()


def test_a_request_is_not_answered_before_its_turn(broker: warren.Broker, clock: FakeClock) -> None:
    told: list[int] = []

    def ask(password: str) -> None:
        client = http.client.HTTPConnection("127.0.0.1", broker.management_port, timeout=30)
        token = b64encode(f"guest:{password}".encode()).decode()
        client.request("GET", "/api/whoami", headers={"authorization": f"Basic {token}"})
        with client.getresponse() as answer:
            answer.read()
            told.append(answer.status)
        client.close()

    def waiting() -> int:
        return broker.administer(lambda admin: len(admin._core.timers._heap))

    asking = [threading.Thread(target=ask, args=("guest",)) for _ in range(3)]
    quiet = waiting()
    for thread in asking:
        thread.start()
    eventually(lambda: waiting() == quiet + 3)
    assert told == []
    for turn in (1, 2, 3):  # one at a time, however many ask
        clock.advance(WAIT_S)
        eventually(lambda: len(told) == turn)  # noqa: B023 - asked at once
    for thread in asking:
        thread.join()
    assert told == [200] * 3
