"""``warren work`` as people run it, stop it and kill it, on both brokers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.process import ENVIRONMENT
from tests.support.wire import Channel

# Notes each message in a file, so that what was handled outlives the process.
APP = """
import os, time
import warren

app = warren.App({url!r}, group={group!r}, min_interval_s=0.1)

@app.handler({queue!r}, prefetch=10)
def handle(message):
    with open("handled", "a") as file:
        file.write(f"{{os.getpid()}} {{message.body.decode()}} {{int(message.redelivered)}}\\n")
    while os.path.exists("hold"):
        time.sleep(0.01)
"""


class Shop:
    """A folder with an app in it, and what its workers did."""

    def __init__(self, folder: Path, queue: str) -> None:
        self.folder, self.queue = folder, queue

    @contextmanager
    def worker(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [sys.executable, "-m", "warren", "work", "shop:app", *options],
            cwd=self.folder,
            env=ENVIRONMENT | {"PYTHONDONTWRITEBYTECODE": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def started(self, *options: str, stack: ExitStack) -> subprocess.Popen[str]:
        process = stack.enter_context(self.worker(*options))
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.match(r"warren work: group .*, member .*, queues ", line), line
        return process

    def handled(self, file_name: str = "handled") -> list[tuple[int, str, bool]]:
        file = self.folder / file_name
        lines = file.read_text().splitlines() if file.exists() else []
        parts = [line.split() for line in lines]
        return [(int(pid), body, flag == "1") for pid, body, flag in parts]

    def bodies(self) -> list[str]:
        return [body for _, body, _ in self.handled()]

    def hold(self) -> None:
        (self.folder / "hold").touch()

    def go_on(self) -> None:
        (self.folder / "hold").unlink()

    def save(self, before: str, after: str, at_ns: int) -> None:
        """Save the app with other code, all at once, as editors do."""
        code = (self.folder / "shop.py").read_text()
        assert before in code
        (self.folder / "saved").write_text(code.replace(before, after))
        os.utime(self.folder / "saved", ns=(at_ns, at_ns))
        (self.folder / "saved").replace(self.folder / "shop.py")


@pytest.fixture
def shop(
    broker: TestBroker, channel: Channel, name: Callable[[str], str], tmp_path: Path
) -> Iterator[Shop]:
    queue = name("orders")
    channel.declare(queue, durable=True)
    app = APP.format(url=broker.url, group=name("group"), queue=queue)
    (tmp_path / "shop.py").write_text(app)
    yield Shop(tmp_path, queue)
    (tmp_path / "hold").unlink(missing_ok=True)


def publish(channel: Channel, shop: Shop, *bodies: str) -> None:
    for body in bodies:
        channel.publish(shop.queue, body.encode())
    channel.sync()


def told_to_stop(shop: Shop, stack: ExitStack) -> subprocess.Popen[str]:
    """A worker that holds its first message and has heard a SIGTERM."""
    shop.hold()
    port = _free_port()
    process = shop.started("--health-port", str(port), stack=stack)
    eventually(lambda: shop.bodies() == ["1"])
    process.terminate()
    eventually(lambda: _get(port, "health")[0] == 503)  # it has heard the signal
    return process


def test_sigterm_lets_what_is_being_handled_finish(channel: Channel, shop: Shop) -> None:
    bodies = [str(number) for number in range(1, 501)]
    publish(channel, shop, *bodies)
    with ExitStack() as stack:
        process = told_to_stop(shop, stack)
        shop.go_on()
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert process.stdout.read() == "warren work: stopped\n"
    # One or two more may have begun while it gave its queue away; the rest is left alone.
    handled = shop.bodies()
    assert handled == bodies[: len(handled)]
    assert channel.drain(shop.queue) == [body.encode() for body in bodies[len(handled) :]]
    assert len(handled) < len(bodies)


def test_a_second_sigterm_leaves_at_once_and_the_message_comes_again(
    channel: Channel, shop: Shop
) -> None:
    publish(channel, shop, "1")
    with ExitStack() as stack:
        process = told_to_stop(shop, stack)
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    eventually(lambda: channel.drain(shop.queue) == [b"1"])


def test_what_a_killed_worker_had_is_done_by_the_next_in_order(
    channel: Channel, shop: Shop
) -> None:
    publish(channel, shop, "1", "2", "3")
    shop.hold()
    with ExitStack() as stack:
        first = shop.started(stack=stack)
        eventually(lambda: shop.bodies() == ["1"])
        shop.started(stack=stack)
        first.kill()
        shop.go_on()
        eventually(lambda: len(shop.handled()) == 4)
    done = [(body, again) for pid, body, again in shop.handled() if pid != first.pid]
    assert done == [("1", True), ("2", True), ("3", True)]


def test_several_processes_are_members_of_one_group_and_stop_together(
    channel: Channel, shop: Shop
) -> None:
    publish(channel, shop, "1")
    with ExitStack() as stack:
        process = shop.started("--processes", "2", stack=stack)
        assert process.stdout is not None
        assert "member" in process.stdout.readline()
        eventually(lambda: shop.bodies() == ["1"])
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stdout.read().count("stopped") == 2
    worker = shop.handled()[0][0]
    assert worker != process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
def test_reload_goes_on_with_the_code_that_was_saved(channel: Channel, shop: Shop) -> None:
    """Also if it is as long as before and of the same second: Python's cache can't tell."""
    shop.save("handled", "handled", 1_700_000_000_000_000_000)
    with ExitStack() as stack:
        process = shop.started("--reload", stack=stack)
        assert process.stdout is not None
        publish(channel, shop, "1")
        eventually(lambda: shop.bodies() == ["1"], 60)
        shop.save("handled", "renewed", 1_700_000_000_500_000_000)
        told = [process.stdout.readline() for _ in range(3)]
        assert told[0] == "warren work: shop.py changed, starting again\n"
        assert told[1] == "warren work: stopped\n"
        assert told[2].startswith("warren work: group ")
        publish(channel, shop, "2")
        eventually(lambda: [body for _, body, _ in shop.handled("renewed")] == ["2"], 60)
        process.terminate()
        assert process.wait(60) == 0
    assert shop.bodies() == ["1"]


def test_a_broker_that_does_not_answer_is_no_mistake_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        APP.format(url=f"amqp://127.0.0.1:{_free_port()}", group="g", queue="q")
    )
    for options in ([], ["--processes", "2"]):
        done = subprocess.run(
            [sys.executable, "-m", "warren", "work", "shop:app", *options],
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, "no broker answers" in done.stderr) == (1, True), done.stderr


def test_probes_and_metrics_are_answered(channel: Channel, shop: Shop) -> None:
    with ExitStack() as stack:
        port = _free_port()
        shop.started("--health-port", str(port), stack=stack)
        assert eventually(lambda: _get(port, "ready")[0] == 200)
        publish(channel, shop, "1")
        handled = rf'warren_messages_handled_total{{.*queue="{shop.queue}"}} 1'
        eventually(lambda: re.search(handled, _get(port, "metrics")[1]))
        figures = _get(port, "metrics")[1]
        assert re.search(r"warren_group_members{.*} 1\n", figures)
        assert re.search(r'warren_group_rebalances_total{.*reason="election"} 1\n', figures)
        status = json.loads(_get(port, "health")[1])
        assert (status["healthy"], status["queues"]) == (True, 1)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""
    except OSError:
        return 0, ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["shop"], "must be MODULE:APP"),
        (["shop:ap"], "there is shop:app"),
        (["shp:app"], "no module 'shp'"),
        (["shp:app"], "did you mean shop:app?"),
        (["shop.py:app"], "write shop:app"),
        (["./shop.py:app"], "write shop:app"),
        (["./lib/shop:app"], "write lib.shop:app"),
        (["shop:warren"], "not a warren.App"),
        (["shop:app", "--processes", "0"], "--processes"),
    ],
)
def test_a_mistake_gets_one_clear_line(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    (tmp_path / "shop.py").write_text("import warren\napp = warren.App(group='g')\n")
    done: Any = subprocess.run(
        [sys.executable, "-m", "warren", "work", *arguments],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"warren: .*{re.escape(complaint)}.*\n", done.stderr)
