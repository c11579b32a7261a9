from __future__ import annotations

import pytest

from warren.broker.core import BrokerCore
from warren.broker.logins import FORGET_MS, FREE, MOST_MS, PLACES, FailedLogins, is_loopback
from warren.errors import AccessRefused
from warren.testing import FakeClock

HOST = "203.0.113.7"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def logins(clock: FakeClock) -> FailedLogins:
    return FailedLogins(clock)


def fail(logins: FailedLogins, host: str, times: int) -> int:
    for _ in range(times):
        logins.failed(host)
    return logins.delay_ms(host)


def test_a_few_failures_cost_nothing(logins: FailedLogins) -> None:
    assert fail(logins, HOST, FREE - 1) == 0


def test_more_cost_ever_more_time_up_to_a_limit(logins: FailedLogins) -> None:
    delays = [fail(logins, HOST, 1) for _ in range(20)][FREE - 1 :]
    assert delays[0] > 0
    assert delays == sorted(delays)
    assert delays[-1] == MOST_MS


def test_other_places_do_not_wait(logins: FailedLogins) -> None:
    fail(logins, HOST, 20)
    assert logins.delay_ms("203.0.113.8") == 0


def test_a_quiet_while_makes_it_forgotten(logins: FailedLogins, clock: FakeClock) -> None:
    fail(logins, HOST, 20)
    clock.advance(FORGET_MS / 1000 + 1)
    assert logins.delay_ms(HOST) == 0
    assert len(logins) == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", ""])
def test_programs_on_this_machine_never_wait(logins: FailedLogins, host: str) -> None:
    assert is_loopback(host)
    assert fail(logins, host, 20) == 0


def test_addresses_of_one_ipv6_network_are_one_place(logins: FailedLogins) -> None:
    fail(logins, "2001:db8:0:1::1", 20)
    assert logins.delay_ms("2001:db8:0:1::2") == MOST_MS
    assert logins.delay_ms("2001:db8:0:2::1") == 0


def test_memory_is_bounded_and_the_oldest_is_forgotten(logins: FailedLogins) -> None:
    fail(logins, HOST, 20)
    for number in range(PLACES):
        logins.failed(f"10.0.{number // 256}.{number % 256}")
    assert len(logins) == PLACES
    assert logins.delay_ms(HOST) == 0


def test_a_connection_from_such_a_place_is_greeted_and_then_has_to_wait() -> None:
    clock = FakeClock()
    core = BrokerCore(clock=clock)
    for _ in range(20):
        core.admin.failed_login(HOST)
    session = core.connect((HOST, 1), ("198.51.100.1", 5672)).session
    session.receive(b"AMQP\x00\x00\x09\x01")
    assert session.data_to_send()
    session.receive(b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x33\xce")  # nonsense: close-ok
    assert not session.finished
    clock.advance(MOST_MS / 1000)
    core.tick()
    assert session.finished


def test_a_refused_login_is_logged_without_the_password_and_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = BrokerCore(clock=FakeClock()).connect((HOST, 1), ("198.51.100.1", 5672))
    with pytest.raises(AccessRefused):
        connection.authenticate("PLAIN", b"\0ann\nroot \xff\0hunter2")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"{HOST}:1 -> 198.51.100.1:5672: PLAIN login refused: "
        "user 'ann?root ?' - invalid credentials"
    )
