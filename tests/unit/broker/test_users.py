from __future__ import annotations

import base64
import hashlib

import pytest

from tests.unit.amqp.wire_values import Typed, entries
from warren.broker.users import MECHANISMS, CertificateName, User, Users, read_hash
from warren.errors import AccessRefused, AdminError, SyntaxRefused


def amqplain(**fields: str) -> bytes:
    return entries({key: Typed("S", value) for key, value in fields.items()})


@pytest.fixture
def users() -> Users:
    users = Users()
    users.put(User.create("guest", "guest", ("administrator",)))
    users.put(User.create("ann", "sécret"))
    return users


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [("PLAIN", b"\0guest\0guest"), ("AMQPLAIN", amqplain(LOGIN="guest", PASSWORD="guest"))],
)
def test_guest_logs_in_by_either_mechanism(users: Users, mechanism: str, response: bytes) -> None:
    user = users.log_in(mechanism, response, from_loopback=True)

    assert user.name == "guest"
    assert "administrator" in user.tags
    assert mechanism in MECHANISMS.split()


@pytest.mark.parametrize(
    "response", [b"\0guest\0wrong", b"\0guest\0", b"\0nobody\0guest", b"\0\0", b"\0gu\xffest\0x"]
)
def test_a_wrong_name_or_password_is_refused(users: Users, response: bytes) -> None:
    with pytest.raises(AccessRefused):
        users.log_in("PLAIN", response, from_loopback=True)


def test_guest_comes_from_this_machine_only(users: Users) -> None:
    with pytest.raises(AccessRefused, match="localhost"):
        users.log_in("PLAIN", b"\0guest\0guest", from_loopback=False)


def test_who_may_come_from_this_machine_only_is_a_setting() -> None:
    users = Users(loopback_users=frozenset(("ann",)))
    users.put(User.create("guest", "guest"))
    users.put(User.create("ann", "ann"))

    assert users.log_in("PLAIN", b"\0guest\0guest", from_loopback=False).name == "guest"
    with pytest.raises(AccessRefused, match="localhost"):
        users.log_in("PLAIN", b"\0ann\0ann", from_loopback=False)


def test_other_users_may_come_from_anywhere(users: Users) -> None:
    assert users.log_in("PLAIN", "\0ann\0sécret".encode(), from_loopback=False).name == "ann"


@pytest.mark.parametrize("response", [b"", b"guest\0guest", b"\0guest", b"\0guest\0guest\0"])
def test_a_plain_response_has_three_parts(users: Users, response: bytes) -> None:
    with pytest.raises(SyntaxRefused):
        users.log_in("PLAIN", response, from_loopback=True)


@pytest.mark.parametrize(
    "response", [b"", b"\xff", amqplain(LOGIN="guest"), amqplain(PASSWORD="guest")]
)
def test_an_amqplain_response_has_login_and_password(users: Users, response: bytes) -> None:
    with pytest.raises(SyntaxRefused):
        users.log_in("AMQPLAIN", response, from_loopback=True)


def test_a_certificate_logs_in_who_it_names(users: Users) -> None:
    def log_in(certificate: CertificateName | None) -> User:
        return users.log_in("EXTERNAL", b"", from_loopback=False, certificate=certificate)

    assert log_in(CertificateName("ann")).name == "ann"
    for certificate in (None, CertificateName(""), CertificateName("bob")):
        with pytest.raises(AccessRefused):
            log_in(certificate)


def test_a_refusal_never_tells_the_password(users: Users) -> None:
    with pytest.raises(AccessRefused) as caught:
        users.log_in("PLAIN", b"\0guest\0hunter2", from_loopback=True)
    assert "hunter2" not in str(caught.value)


def test_a_password_is_neither_kept_nor_shown() -> None:
    user = User.create("ann", "sesame")

    assert b"sesame" not in user.password_hash
    assert "sesame" not in repr(user)
    assert "password_hash=" not in repr(user)


def test_equal_passwords_have_different_hashes() -> None:
    first, second = (User.create("ann", "sesame") for _ in range(2))

    assert first.password_hash != second.password_hash
    assert first.has_password(b"sesame")
    assert second.has_password(b"sesame")


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5"])
def test_hashes_of_rabbitmqs_kinds_are_known(algorithm: str) -> None:
    digest = hashlib.new(algorithm, b"saltsesame").digest()
    user = User("ann", b"salt" + digest, hashing=f"rabbit_password_hashing_{algorithm}")

    assert user.has_password(b"sesame")
    assert not user.has_password(b"open")


def test_a_hash_of_an_unknown_kind_lets_nobody_in() -> None:
    user = User.create("ann", "sesame")

    assert not User("ann", user.password_hash, hashing="mine").has_password(b"sesame")


@pytest.mark.parametrize("octets", [b"", b"a", b"salt"])
def test_without_a_whole_hash_nobody_gets_in(octets: bytes) -> None:
    assert not User("ann", octets).has_password(b"")
    assert not User("ann", octets).has_password(b"sesame")


def test_a_hash_is_written_and_read_as_base64() -> None:
    user = User.create("ann", "sesame")

    assert read_hash(user.password_hash_text) == user.password_hash
    assert user.password_hash_text == base64.b64encode(user.password_hash).decode()
    with pytest.raises(AdminError, match="not_base64"):
        read_hash("!!!")


@pytest.mark.parametrize(
    ("tags", "rights"),
    [
        ("administrator", "administrator monitoring policymaker management"),
        ("monitoring", "monitoring management"),
        ("policymaker", "policymaker management"),
        ("management", "management"),
        ("impersonator", "impersonator"),
        ("somebody", ""),
        ("", ""),
        ("monitoring policymaker", "monitoring policymaker management"),
    ],
)
def test_tags_give_rights_in_the_management_api(tags: str, rights: str) -> None:
    user = User("ann", b"", tuple(tags.split()))
    every = ("administrator", "monitoring", "policymaker", "management", "impersonator")

    assert {right for right in every if user.may(right)} == set(rights.split())
