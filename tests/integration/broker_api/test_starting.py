"""The embedded broker as programs hold it: start, stop, settings."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

import warren
from tests.integration.broker_api.steps import closed_with, free_port, round_trip
from tests.support.wire import Connection
from warren.errors import AdminError, BrokerStopped
from warren.testing import FakeClock

SHUTDOWN = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"


async def test_a_broker_in_an_event_loop() -> None:
    async with warren.Broker(port=0) as broker:
        assert broker.port > 0
        assert broker.url == f"amqp://guest:guest@127.0.0.1:{broker.port}/"
        assert await asyncio.to_thread(round_trip, broker.url) == b"there and back"


def test_a_broker_on_a_thread_of_its_own() -> None:
    before = set(threading.enumerate())
    with warren.Broker.in_thread() as broker:
        (thread,) = set(threading.enumerate()) - before
        assert thread.name == "warren-broker"
        assert round_trip(broker.url) == b"there and back"

    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        Connection.open(broker.url)


def test_several_brokers_in_one_process_know_nothing_of_each_other(stack: ExitStack) -> None:
    brokers = [stack.enter_context(warren.Broker.in_thread()) for _ in range(5)]
    connections = [Connection.open(broker.url) for broker in brokers]
    for number, connection in enumerate(connections):
        connection.channel().declare(f"queue-{number}")

    assert len({broker.port for broker in brokers}) == 5
    for number, broker in enumerate(brokers):
        assert [queue["name"] for queue in broker.snapshot()["queues"]] == [f"queue-{number}"]
    for connection in connections:
        connection.close()


def test_a_plain_broker_loads_only_what_it_needs() -> None:
    """So that the first one of a process is there soon."""
    code = "import sys, warren\nwith warren.Broker.in_thread(): print(*sys.modules, sep='\\n')\n"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())

    assert "warren.server.broker" in loaded
    for name in ("client", "groups", "handlers", "management", "store.sqlite", "server.http"):
        assert f"warren.{name}" not in loaded


def test_a_block_that_fails_stops_its_broker_too() -> None:
    with pytest.raises(ZeroDivisionError), warren.Broker.in_thread() as broker:
        _ = 1 / 0

    with pytest.raises(ConnectionRefusedError):
        Connection.open(broker.url)


def test_stopping_closes_clients_in_the_orderly_way() -> None:
    with warren.Broker.in_thread() as broker:
        connections = [Connection.open(broker.url) for _ in range(3)]
        reading = threading.Thread(target=lambda: codes.extend(map(closed_with, connections)))
        codes: list[tuple[int, str]] = []
        reading.start()
    reading.join()

    assert codes == [(320, SHUTDOWN)] * 3
    for connection in connections:
        connection.close()


def test_a_client_that_does_not_answer_does_not_hold_the_broker_up() -> None:
    with warren.Broker.in_thread() as broker:
        silent = Connection.open(broker.url)
        half = socket.create_connection((broker.host, broker.port))
        half.sendall(b"AM")

    closed = silent.expect_closed()
    assert closed.code == 320
    assert silent.wire.closed_within()
    silent.close()
    half.close()


def test_a_broker_is_started_again_on_the_same_port() -> None:
    with warren.Broker.in_thread() as first:
        connection = Connection.open(first.url)
    connection.close()

    with warren.Broker.in_thread(port=first.port) as second:
        assert second.url == first.url
        assert round_trip(second.url) == b"there and back"


@pytest.mark.parametrize("how", ["loop", "thread"])
def test_a_port_that_is_taken_is_told(how: str) -> None:
    async def in_loop(port: int) -> None:
        async with warren.Broker(port=port):
            pass

    with warren.Broker.in_thread() as first, pytest.raises(warren.ListenError) as error:
        if how == "loop":
            asyncio.run(in_loop(first.port))
        with warren.Broker.in_thread(port=first.port):
            pass
    assert str(error.value) == (
        f"can't listen on 127.0.0.1:{first.port}: the port is taken "
        "(another broker? choose one with port, or 0 for any)"
    )
    assert (error.value.host, error.value.port) == ("127.0.0.1", first.port)


def test_an_address_that_is_not_ours_is_told() -> None:
    with (
        pytest.raises(warren.ListenError, match=r"can't listen on 192\.0\.2\.1:0"),
        warren.Broker.in_thread("192.0.2.1"),
    ):
        pass


def test_an_ipv6_address_stands_in_brackets(stack: ExitStack) -> None:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    broker = stack.enter_context(warren.Broker.in_thread("::1"))
    assert broker.url == f"amqp://guest:guest@[::1]:{broker.port}/"
    assert round_trip(broker.url) == b"there and back"


# -- mistakes ------------------------------------------------------------------------------------
def test_a_broker_that_was_not_started_says_how() -> None:
    holder: Any = warren.Broker.in_thread()
    with pytest.raises(AttributeError, match=r"no url yet: write 'with warren\.Broker\.in_thread"):
        _ = holder.url


async def test_a_broker_in_a_thread_is_no_async_with() -> None:
    with pytest.raises(
        TypeError, match=r"'with warren\.Broker\.in_thread.* also inside a coroutine"
    ):
        async with warren.Broker.in_thread():
            pass


def test_a_block_can_t_be_entered_twice() -> None:
    holder = warren.Broker.in_thread()
    with holder, pytest.raises(TypeError, match="started before"), holder:
        pass


async def test_a_client_that_blocks_may_be_used_inside_a_coroutine() -> None:
    with warren.Broker.in_thread() as broker:
        assert round_trip(broker.url) == b"there and back"


@pytest.mark.parametrize(
    "act",
    [
        lambda broker: broker.faults.cut_connections(),
        lambda broker: broker.faults.hold_confirms(),
        lambda broker: broker.add_vhost("late"),
        lambda broker: broker.memory_alarm(True),
        lambda broker: broker.close_connections(),
    ],
)
def test_a_broker_that_has_stopped_does_nothing_more(act: Callable[[warren.Broker], Any]) -> None:
    with warren.Broker.in_thread() as broker:
        pass
    with pytest.raises(BrokerStopped, match=f"127.0.0.1:{broker.port} has stopped"):
        act(broker)
    assert broker.snapshot()["memory_alarm"] is False


async def test_a_broker_may_be_steered_before_it_starts_and_when_it_starts_again() -> None:
    broker = warren.Broker(port=0)
    broker.add_vhost("early")
    for number in range(2):
        async with broker:
            broker.add_vhost(f"late-{number}")
    assert {"early", "late-0", "late-1"} <= set(broker.core.vhosts)


def test_what_is_not_there_can_t_be_deleted() -> None:
    with warren.Broker.in_thread() as broker:
        with pytest.raises(AdminError) as vhost:
            broker.delete_vhost("nosuch")
        with pytest.raises(AdminError) as user:
            broker.delete_user("nosuch")

    assert str(vhost.value) == "there is no virtual host 'nosuch'"
    assert str(user.value) == "there is no user 'nosuch'"


@pytest.mark.parametrize(
    ("clock", "told"),
    [
        (FakeClock, r"FakeClock is a class; write clock=FakeClock\(\)"),
        (5, r"5 is no clock; write clock=FakeClock\(\)"),
    ],
)
def test_what_is_no_clock_is_told(clock: Any, told: str) -> None:
    with pytest.raises(warren.ConfigError, match=told):
        warren.Broker.in_thread(clock=clock)


# -- settings ------------------------------------------------------------------------------------
def test_settings_are_given_by_name() -> None:
    with warren.Broker.in_thread(heartbeat_s=7, channel_max=3) as broker:
        connection = Connection.open(broker.url)
        tune = connection.tune
        connection.close()

    assert (tune.heartbeat, tune.channel_max) == (7, 3)


def test_settings_are_given_by_a_config_and_changed_by_name() -> None:
    config = warren.BrokerConfig(port=free_port(), heartbeat_s=7)
    broker = warren.Broker(config=config, heartbeat_s=8)

    assert (broker.config.port, broker.config.heartbeat_s) == (config.port, 8)


def test_a_setting_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(warren.ConfigError, match="did you mean heartbeat_s"):
        warren.Broker(heartbeat=5)
