"""``warren broker`` as a process: what people see, and how it ends."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import warren
from tests.support.wire import Connection

Start = Callable[..., subprocess.Popen[str]]
COMMAND = [sys.executable, "-m", "warren", "broker"]
ENVIRONMENT = {
    # asyncio's debug mode writes to stderr what a busy machine makes slow.
    key: value
    for key, value in os.environ.items()
    if not key.startswith("WARREN_") and key != "PYTHONASYNCIODEBUG"
}


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a broker process; it is killed after the test if it still runs."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        processes.append(
            subprocess.Popen(
                [*COMMAND, *arguments],
                env=ENVIRONMENT | environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def listening(process: subprocess.Popen[str]) -> int:
    """The port, as soon as the broker says that it listens."""
    assert process.stdout is not None
    line = process.stdout.readline()
    match = re.fullmatch(r"warren broker listens on 127\.0\.0\.1:(\d+) \(Ctrl-C stops it\)\n", line)
    assert match, line
    return int(match[1])


def connect(port: int) -> Connection:
    return Connection.open(f"amqp://guest:guest@127.0.0.1:{port}/")


def failed(process: subprocess.Popen[str]) -> str:
    """What a broker that could not start says: one line, no traceback, exit code 2."""
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, "")
    assert re.fullmatch(r"warren: .+\n", err), err
    return err.removeprefix("warren: ").rstrip("\n")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


# -- running -------------------------------------------------------------------------------------
@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_stands_in_brackets(start: Start) -> None:
    process = start("--host", "::1", "--port", "0")
    assert process.stdout is not None
    assert re.match(r"warren broker listens on \[::1\]:\d+ ", process.stdout.readline())


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_a_signal_ends_it_cleanly(start: Start, how: signal.Signals) -> None:
    process = start("--port", "0")
    connection = connect(listening(process))
    process.send_signal(how)

    closed = connection.expect_closed()
    assert closed.code == 320
    connection.close()
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("warren broker stops\n")


def test_it_listens_when_it_says_so_and_serves(start: Start) -> None:
    port = listening(start("--port", "0"))
    connection = connect(port)
    channel = connection.channel()
    channel.declare("orders")
    channel.publish("orders", b"one")

    message = channel.get("orders")
    assert message is not None
    assert message.body == b"one"
    connection.close()


def test_settings_come_from_the_command_line(start: Start) -> None:
    process = start("--port", "0", "--heartbeat-s", "7", "--channel-max", "3")
    connection = connect(listening(process))

    assert (connection.tune.heartbeat, connection.tune.channel_max) == (7, 3)
    connection.close()


def test_settings_come_from_the_environment_and_a_file(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text("[broker]\nport = 1\nheartbeat_s = 7\nchannel_max = 3\n")
    process = start("--config", str(file), "--channel-max", "4", WARREN_PORT="0")
    connection = connect(listening(process))

    assert (connection.tune.heartbeat, connection.tune.channel_max) == (7, 4)
    connection.close()


# -- not starting --------------------------------------------------------------------------------
def test_a_port_that_is_taken_is_told_in_one_line(start: Start) -> None:
    with warren.Broker.in_thread() as other:
        told = failed(start("--port", str(other.port)))

    assert told == (
        f"can't listen on 127.0.0.1:{other.port}: the port is taken "
        "(another broker? choose one with --port, or 0 for any)"
    )


def test_a_typo_in_a_file_is_told_with_the_nearest(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text("[broker]\nheartbeat = 7\n")

    told = failed(start("--config", str(file)))
    assert told == f"heartbeat ({file}): there is no such setting; did you mean heartbeat_s?"


@pytest.mark.parametrize("text", ["[broker", "broker = 1"])
def test_a_bad_file_is_told_in_one_line(start: Start, tmp_path: Path, text: str) -> None:
    file = tmp_path / "warren.toml"
    file.write_text(text)

    assert str(file) in failed(start("--config", str(file)))


def test_a_file_that_is_not_there_is_told(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "nowhere.toml"

    assert f"there is no file {file}" in failed(start("--config", str(file)))


def test_a_bad_value_in_the_environment_is_told_with_its_variable(start: Start) -> None:
    assert failed(start(WARREN_PORT="five")) == "port (WARREN_PORT): 'five' is not a whole number"


def test_a_value_out_of_range_is_told(start: Start) -> None:
    told = failed(start("--port", "70000"))

    assert "70000 must be at least 0 and at most 65535" in told


@pytest.mark.parametrize("arguments", [["--prot", "5"], ["--port", "five"], ["orders"]])
def test_a_bad_command_line_is_told_in_one_line(start: Start, arguments: list[str]) -> None:
    process = start(*arguments)
    out, err = process.communicate(timeout=30)

    assert (process.returncode, out) == (2, "")
    assert re.fullmatch("warren: .+\n", err)
    assert arguments[0] in err


def test_an_output_that_can_t_be_written_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "--port", "0"],
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    assert (done.returncode, done.stderr) == (
        1,
        "warren: standard output could not be written: No space left on device\n",
    )


# -- help ----------------------------------------------------------------------------------------
def test_help_lists_every_setting_with_its_default(start: Start) -> None:
    out, _ = start("--help", COLUMNS="200").communicate(timeout=30)

    for item in dataclasses.fields(warren.BrokerConfig):
        assert f"--{item.name.replace('_', '-')} " in out
        if item.name != "management_port":  # another default than in a program
            assert item.metadata["help"] in out
            assert str(item.default) in out
    assert "--config FILE" in out


def test_warren_lists_its_commands() -> None:
    command = [sys.executable, "-m", "warren", "--help"]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    assert re.search(r"^ +broker +run a RabbitMQ-compatible broker$", told, re.MULTILINE)


def test_help_tells_one_default_of_the_management_port(start: Start) -> None:
    out, _ = start("--help", COLUMNS="400").communicate(timeout=30)
    text = re.search(r"^  --management-port PORT(.*?)^  --", out, re.MULTILINE | re.DOTALL)

    assert text is not None
    assert text[1].count("default") == 1
    assert "default: 10000 above the port" in text[1]
