from __future__ import annotations

import pytest

from warren.broker.core import BrokerCore
from warren.broker.logins import (
    FORGET_MS,
    KEYS,
    LONGEST_WAIT_MS,
    SAME_PLACE,
    SAME_USER,
    SAME_USER_SAME_PLACE,
    FailedLogins,
    is_loopback,
)
from warren.errors import AccessRefused
from warren.testing import FakeClock

HOST, OTHER = "203.0.113.7", "203.0.113.8"
FREE = SAME_USER_SAME_PLACE.free


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def logins(clock: FakeClock) -> FailedLogins:
    return FailedLogins(clock)


def fail(logins: FailedLogins, times: int, host: str = HOST, user: str = "ann") -> None:
    for _ in range(times):
        logins.failed(host, user)


def test_a_few_failures_cost_nothing(logins: FailedLogins) -> None:
    fail(logins, FREE - 1)
    assert logins.wait_ms(HOST, "ann") == 0


def test_more_cost_ever_more_time_up_to_a_limit(logins: FailedLogins, clock: FakeClock) -> None:
    fail(logins, FREE)
    waits = []
    for _ in range(12):
        waits.append(logins.wait_ms(HOST, "ann") or 0)
        clock.advance(waits[-1] / 1000)
        logins.failed(HOST, "ann")
    assert waits[0] == SAME_USER_SAME_PLACE.first_ms
    assert waits == sorted(waits)
    assert waits[-1] == SAME_USER_SAME_PLACE.most_ms


def test_logins_at_the_same_time_stand_in_one_line(logins: FailedLogins) -> None:
    fail(logins, FREE)
    waits = [logins.wait_ms(HOST, "ann") for _ in range(100)]
    gap = SAME_USER_SAME_PLACE.first_ms
    let_in = LONGEST_WAIT_MS // gap
    assert waits[:let_in] == [gap * number for number in range(1, let_in + 1)]
    assert set(waits[let_in:]) == {None}


def test_a_line_that_is_full_moves_on(logins: FailedLogins, clock: FakeClock) -> None:
    fail(logins, FREE)
    while logins.wait_ms(HOST, "ann") is not None:
        pass
    clock.advance(1)
    assert logins.wait_ms(HOST, "ann") is not None


def test_who_comes_after_a_pause_need_not_wait(logins: FailedLogins, clock: FakeClock) -> None:
    fail(logins, FREE)
    clock.advance(SAME_USER_SAME_PLACE.first_ms / 1000)
    assert logins.wait_ms(HOST, "ann") == 0


def test_another_user_of_the_same_place_does_not_wait(logins: FailedLogins) -> None:
    fail(logins, SAME_PLACE.free - 1)
    assert logins.wait_ms(HOST, "ann")
    assert logins.wait_ms(HOST, "bob") == 0


def test_the_same_user_in_another_place_does_not_wait(logins: FailedLogins) -> None:
    fail(logins, 20)
    assert logins.wait_ms(OTHER, "ann") == 0


def test_a_place_that_tries_many_users_waits(logins: FailedLogins) -> None:
    for number in range(SAME_PLACE.free):
        logins.failed(HOST, f"user-{number}")
    assert logins.wait_ms(HOST, "somebody") == SAME_PLACE.first_ms
    assert logins.wait_ms(HOST, "somebody else") == 2 * SAME_PLACE.first_ms


def test_a_user_whom_many_places_try_waits_a_little(logins: FailedLogins) -> None:
    for number in range(500):
        logins.failed(f"198.51.{number // 256}.{number % 256}", "ann")
    waits = [logins.wait_ms(f"192.0.2.{number}", "ann") for number in range(20)]
    assert waits == [SAME_USER.most_ms * number for number in range(1, 21)]


def test_a_right_password_ends_the_users_wait(logins: FailedLogins) -> None:
    fail(logins, 10)
    logins.succeeded(HOST, "ann")
    assert logins.wait_ms(HOST, "ann") == 0


def test_a_right_password_of_one_user_is_none_of_another(logins: FailedLogins) -> None:
    fail(logins, 10)
    logins.succeeded(HOST, "bob")
    assert logins.wait_ms(HOST, "ann")


def test_a_quiet_while_makes_it_forgotten(logins: FailedLogins, clock: FakeClock) -> None:
    fail(logins, 200)
    clock.advance(FORGET_MS / 1000 + 1)
    assert logins.wait_ms(HOST, "ann") == 0
    assert len(logins) == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", ""])
def test_programs_on_this_machine_never_wait(logins: FailedLogins, host: str) -> None:
    assert is_loopback(host)
    fail(logins, 200, host)
    assert logins.wait_ms(host, "ann") == 0
    assert len(logins) == 0


def test_addresses_of_one_ipv6_network_are_one_place(logins: FailedLogins) -> None:
    fail(logins, 10, "2001:db8:0:1::1")
    assert logins.wait_ms("2001:db8:0:1::2", "ann")
    assert logins.wait_ms("2001:db8:0:2::1", "ann") == 0


def test_memory_is_bounded_and_the_oldest_is_forgotten(logins: FailedLogins) -> None:
    fail(logins, 10)
    for number in range(3 * KEYS):
        logins.failed(f"10.0.{number // 256}.{number % 256}", f"user-{number}" + "x" * 100_000)
    assert len(logins) == 3 * KEYS
    assert all(len(key) < 64 for lines in logins._lines.values() for key in lines)
    assert logins.wait_ms(HOST, "ann") == 0


# -- over AMQP -------------------------------------------------------------------------------------
class Client:
    """A session of somebody who comes from elsewhere."""

    def __init__(self, core: BrokerCore, host: str = HOST) -> None:
        self.session = core.connect((host, 1), ("198.51.100.1", 5672)).session
        self.session.receive(b"AMQP\x00\x00\x09\x01")
        assert self.session.data_to_send()

    def log_in(self, user: str, password: str) -> str:
        """start-ok; says what became of it."""
        response = f"\0{user}\0{password}".encode()
        payload = b"\x00\x0a\x00\x0b" + bytes(4) + b"\x05PLAIN"
        payload += len(response).to_bytes(4, "big") + response + b"\x05en_US"
        size = len(payload).to_bytes(4, "big")
        self.session.receive(b"\x01\x00\x00" + size + payload + b"\xce")
        return self.fate

    @property
    def fate(self) -> str:
        return {"securing": "waits", "closed": "refused", "tuning": "in"}[self.session.state]


@pytest.fixture
def core(clock: FakeClock) -> BrokerCore:
    core = BrokerCore(clock=clock)
    core.admin.put_user("ann", password="right")
    return core


def test_connections_that_were_open_before_do_not_get_around_it(
    core: BrokerCore, clock: FakeClock
) -> None:
    clients = [Client(core) for _ in range(50)]
    fates = [client.log_in("ann", "wrong") for client in clients]
    assert fates[:FREE] == ["refused"] * FREE
    assert "in" not in fates
    # Of those that are left, few may wait; the others are refused unseen.
    waiting = [client for client in clients if client.fate == "waits"]
    assert len(waiting) == LONGEST_WAIT_MS // SAME_USER_SAME_PLACE.first_ms
    tried = []
    for _ in range(4):
        clock.advance(SAME_USER_SAME_PLACE.first_ms / 1000)
        core.tick()
        tried.append(sum(client.fate == "refused" for client in waiting))
    assert tried == [1, 2, 3, 4]


def test_a_right_password_waits_like_a_wrong_one(core: BrokerCore, clock: FakeClock) -> None:
    for _ in range(FREE):
        Client(core).log_in("ann", "wrong")
    client = Client(core)
    assert client.log_in("ann", "right") == "waits"
    clock.advance(SAME_USER_SAME_PLACE.first_ms / 1000)
    core.tick()
    assert client.fate == "in"
    assert Client(core).log_in("ann", "right") == "in"


def test_a_right_password_is_not_looked_at_when_the_line_is_full(core: BrokerCore) -> None:
    for _ in range(100):
        Client(core).log_in("ann", "wrong")
    assert Client(core).log_in("ann", "right") == "refused"
    assert Client(core, OTHER).log_in("ann", "right") == "in"


def test_a_client_that_goes_while_it_waits_is_forgotten(core: BrokerCore, clock: FakeClock) -> None:
    for _ in range(FREE):
        Client(core).log_in("ann", "wrong")
    client = Client(core)
    client.log_in("ann", "wrong")
    client.session.lost()
    before = core.admin.logins.by_protocol()
    clock.advance(10)
    core.tick()
    assert core.admin.logins.by_protocol() == before == {"amqp091": (0, FREE)}


def test_a_refused_login_is_logged_without_the_password_and_in_one_line(
    core: BrokerCore, caplog: pytest.LogCaptureFixture
) -> None:
    connection = core.connect((HOST, 1), ("198.51.100.1", 5672))
    with pytest.raises(AccessRefused):
        connection.authenticate("PLAIN", b"\0ann\nroot \xff\0hunter2")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"{HOST}:1 -> 198.51.100.1:5672: PLAIN login refused: "
        "user 'ann?root ?' - invalid credentials"
    )


def test_a_login_refused_unseen_is_logged_without_the_password(
    core: BrokerCore, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        Client(core).log_in("ann", "hunter2")
    assert "too many have failed" in caplog.text
    assert "hunter2" not in caplog.text
