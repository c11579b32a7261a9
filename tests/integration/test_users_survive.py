"""Users, virtual hosts, permissions and limits are found again after a restart."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pika
import pytest

from warren import Broker
from warren.broker.admin import Admin
from warren.broker.permissions import Permission, TopicPermission

Act = Callable[[Admin], Any]


@pytest.fixture
def lives(tmp_path: Path) -> Callable[[Act], Any]:
    """Starts a broker on the same folder, does something to it, and stops it."""

    def live(act: Act) -> Any:
        with Broker.in_thread(data_dir=str(tmp_path)) as broker:
            return broker.administer(act)

    return live


Lives = Callable[[Act], Any]


def test_a_user_logs_in_after_a_restart(tmp_path: Path) -> None:
    with Broker.in_thread(data_dir=str(tmp_path)) as broker:
        broker.add_user("ann", "sesame", ["monitoring"])
        broker.set_permissions("ann")
    with Broker.in_thread(data_dir=str(tmp_path)) as broker:
        url = broker.url.replace("guest:guest", "ann:sesame")
        pika.BlockingConnection(pika.URLParameters(url)).close()
        assert broker.administer(lambda admin: admin.user("ann").tags) == ("monitoring",)  # type: ignore[union-attr]


def test_permissions_are_found_again(lives: Lives) -> None:
    lives(lambda admin: admin.set_permissions("guest", "/", "a", "b", "c"))
    lives(lambda admin: admin.set_topic_permissions("guest", "/", "amq.topic", "d", "e"))
    assert lives(lambda admin: admin.permissions()) == [Permission("guest", "/", "a", "b", "c")]
    assert lives(lambda admin: admin.topic_permissions()) == [
        TopicPermission("guest", "/", "amq.topic", "d", "e")
    ]
    lives(lambda admin: admin.clear_permissions("guest", "/"))
    lives(lambda admin: admin.clear_topic_permissions("guest", "/"))
    assert lives(lambda admin: admin.permissions() + admin.topic_permissions()) == []


def test_limits_are_found_again(lives: Lives) -> None:
    lives(lambda admin: admin.set_user_limit("guest", "max-channels", 3))
    lives(lambda admin: admin.set_vhost_limit("/", "max-queues", 4))
    assert lives(lambda admin: (admin.user_limits(), admin.vhost_limits())) == (
        {"guest": {"max-channels": 3}},
        {"/": {"max-queues": 4}},
    )


def test_a_deleted_guest_does_not_come_back(lives: Lives) -> None:
    lives(lambda admin: (admin.put_user("ann"), admin.delete_user("guest")))
    assert lives(lambda admin: [user.name for user in admin.users()]) == ["ann"]


def test_even_if_nobody_is_left(lives: Lives, caplog: pytest.LogCaptureFixture) -> None:
    lives(lambda admin: admin.delete_user("guest"))
    assert caplog.messages == []
    assert lives(lambda admin: admin.users()) == []
    assert "all users were deleted: nobody can log in until a program adds one" in caplog.messages
    lives(lambda admin: admin.put_user("ann", password="x", tags=["administrator"]))
    assert lives(lambda admin: [user.name for user in admin.users()]) == ["ann"]


def test_a_folder_without_users_and_virtual_hosts_gets_guest(tmp_path: Path) -> None:
    """As RabbitMQ, which makes its default user only where there is nothing at all."""
    with Broker.in_thread(data_dir=str(tmp_path)):
        pass
    with closing(sqlite3.connect(tmp_path / "warren.db")) as connection:
        connection.execute("DELETE FROM definitions")
        connection.commit()
    with Broker.in_thread(data_dir=str(tmp_path)) as broker:
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()


def test_a_deleted_virtual_host_does_not_come_back(lives: Lives) -> None:
    lives(lambda admin: (admin.put_vhost("shop", description="ours"), admin.delete_vhost("/")))
    assert lives(lambda admin: admin.visible_vhosts(admin.user("guest"))) == ["shop"]


def test_an_old_password_does_not_come_back(lives: Lives) -> None:
    lives(lambda admin: admin.set_password("guest", "new"))
    assert lives(lambda admin: admin.authenticate("guest", "new", host="127.0.0.1"))


def test_neither_a_password_nor_its_plain_hash_is_in_the_folder(
    lives: Lives, tmp_path: Path
) -> None:
    lives(lambda admin: admin.put_user("ann", password="open-sesame"))
    for file in tmp_path.iterdir():
        assert b"open-sesame" not in file.read_bytes()
