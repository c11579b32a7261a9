"""What people get wrong first, and what they are told then."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import pytest

import warren
from warren.errors import NotStarted

COMMAND = [sys.executable, "-m", "warren", "broker", "--management-port", "-1"]
ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith("WARREN_") and key != "PYTHONASYNCIODEBUG"
}


# -- in a program --------------------------------------------------------------------------------
def test_with_instead_of_async_with_is_told_of_in_thread() -> None:
    broker: Any = warren.Broker(port=0)
    with pytest.raises(TypeError, match=r"'with warren\.Broker\.in_thread\(\) as broker'"), broker:
        pass


@pytest.mark.parametrize("name", ["url", "tls_url"])
def test_the_url_of_a_broker_on_any_port_is_not_known_before_it_starts(name: str) -> None:
    broker = warren.Broker(port=0, tls_port=0)
    with pytest.raises(NotStarted, match="has not started") as told:
        getattr(broker, name)
    assert told.value.what == name


def test_the_url_of_a_broker_on_a_port_of_choice_is_known() -> None:
    assert warren.Broker(port=5999).url == "amqp://guest:guest@127.0.0.1:5999/"


def test_a_port_in_the_place_of_the_host_is_told() -> None:
    wrong: Any = 5672
    with pytest.raises(warren.ConfigError, match=r"5672 is no address; write Broker\(port=5672\)"):
        warren.Broker(wrong)


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1", "x" * 80, "127.0.0.1:5672"])
@pytest.mark.parametrize("setting", ["host", "management_host"])
def test_a_bad_host_is_told_in_our_words(host: str, setting: str) -> None:
    with pytest.raises(warren.ListenError) as told:  # noqa: SIM117 - what is started raises
        with warren.Broker.in_thread(management_port=0, **{setting: host}):
            pass
    words = str(told.value)
    assert words.startswith(f"can't listen on {host}:0: ")
    assert f"with {'management_host or host' if setting != 'host' else setting}: " in words
    assert "Errno" not in words
    assert "--" not in words


# -- on the command line -------------------------------------------------------------------------
def broker_says(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_bad_host_is_told_with_its_option() -> None:
    done = broker_says("--port", "0", "--host", "nowhere.invalid")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "warren: can't listen on nowhere.invalid:0: nothing is known by that name (choose an "
        "address of this machine with --host: 127.0.0.1, or 0.0.0.0 for all)\n"
    )


def test_a_taken_management_port_is_told_with_its_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = broker_says("--port", "0", "--management-port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "choose one with --management-port, or 0 for any, -1 for none" in done.stderr


def test_the_api_of_a_broker_on_a_high_port_is_ten_thousand_below() -> None:
    port = free_high_port()
    with ExitStack() as stack:
        process = subprocess.Popen(
            [*COMMAND[:4], "--port", str(port)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
        )
        stack.enter_context(process)
        stack.callback(process.terminate)
        assert process.stdout is not None
        assert f":{port} " in process.stdout.readline()
        told = process.stdout.readline()
        assert told == f"management API on http://127.0.0.1:{port - 10_000}/api/\n"


def free_high_port() -> int:
    """A port over 55535 that is free, as is the one ten thousand below."""
    for port in range(65_535, 61_000, -1):  # over those that the kernel gives away
        with ExitStack() as stack:
            try:
                for each in (port, port - 10_000):
                    stack.enter_context(socket.create_server(("127.0.0.1", each)))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


INTERRUPTED_WHILE_IMPORTED = """
import os, signal, sys
import warren.__main__

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == "warren.cli.broker":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Impatient())
sys.argv = ["warren", "broker", "--port", "0"]
sys.exit(warren.__main__.main())
"""


def test_ctrl_c_while_the_broker_is_imported_is_silent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTED],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-2, "", "")


def test_importing_warren_takes_no_time() -> None:
    code = "import sys, warren; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-IS", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"typing", "enum", "re", "warren.errors"} & set(loaded)
