from __future__ import annotations

import pytest

from tests.unit.amqp.wire_values import Typed, entries
from warren.broker.users import MECHANISMS, User, Users
from warren.errors import AccessRefused, SyntaxRefused


def amqplain(**fields: str) -> bytes:
    return entries({key: Typed("S", value) for key, value in fields.items()})


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [("PLAIN", b"\0guest\0guest"), ("AMQPLAIN", amqplain(LOGIN="guest", PASSWORD="guest"))],
)
def test_guest_logs_in_by_either_mechanism(mechanism: str, response: bytes) -> None:
    user = Users().log_in(mechanism, response, from_loopback=True)

    assert user.name == "guest"
    assert "administrator" in user.tags
    assert mechanism in MECHANISMS.split()


@pytest.mark.parametrize(
    "response", [b"\0guest\0wrong", b"\0guest\0", b"\0nobody\0guest", b"\0\0", b"\0gu\xffest\0x"]
)
def test_a_wrong_name_or_password_is_refused(response: bytes) -> None:
    with pytest.raises(AccessRefused):
        Users().log_in("PLAIN", response, from_loopback=True)


def test_guest_comes_from_this_machine_only() -> None:
    with pytest.raises(AccessRefused, match="localhost"):
        Users().log_in("PLAIN", b"\0guest\0guest", from_loopback=False)


def test_other_users_may_come_from_anywhere() -> None:
    users = Users()
    users.put(User.create("ann", "sécret", loopback_only=False))

    assert users.log_in("PLAIN", "\0ann\0sécret".encode(), from_loopback=False).name == "ann"


@pytest.mark.parametrize("response", [b"", b"guest\0guest", b"\0guest", b"\0guest\0guest\0"])
def test_a_plain_response_has_three_parts(response: bytes) -> None:
    with pytest.raises(SyntaxRefused):
        Users().log_in("PLAIN", response, from_loopback=True)


@pytest.mark.parametrize(
    "response", [b"", b"\xff", amqplain(LOGIN="guest"), amqplain(PASSWORD="guest")]
)
def test_an_amqplain_response_has_login_and_password(response: bytes) -> None:
    with pytest.raises(SyntaxRefused):
        Users().log_in("AMQPLAIN", response, from_loopback=True)


def test_a_password_is_neither_kept_nor_shown() -> None:
    user = User.create("ann", "sesame", loopback_only=False)

    assert b"sesame" not in user.password_hash
    assert "sesame" not in repr(user)
    assert "password" not in repr(user)


def test_equal_passwords_have_different_hashes() -> None:
    first, second = (User.create("ann", "sesame", loopback_only=False) for _ in range(2))

    assert first.password_hash != second.password_hash
    assert first.has_password(b"sesame")
    assert second.has_password(b"sesame")
