"""A Celery app with workers in processes of their own, as one runs them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from celery import chain, chord, group
from celery.exceptions import NotRegistered, TaskRevokedError
from celery.result import AsyncResult

from tests.integration.clients.celery_app import SETTINGS, make_app
from tests.integration.clients.conftest import own_vhost
from tests.integration.clients.programs import ROOT, Process
from tests.support.brokers import RabbitBroker, TestBroker, WarrenBroker, running_warren
from tests.support.eventually import eventually

DEADLINE_S = 30.0
APP = "tests.integration.clients.celery_app"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Shop:
    """The app as its clients hold it, and the workers that were started for it."""

    def __init__(self, url: str, folder: Path, **settings: Any) -> None:
        self.url, self.folder = url, folder
        self.settings = {"broker_url": url, **settings}
        self.app = make_app(self.settings, set_as_current=False)
        self.workers: dict[str, Process] = {}
        self._numbers = itertools.count()

    def start_worker(self, name: str, *options: str) -> None:
        output = self.folder / f"{name}.log"
        command = self.command("worker", "-l", "INFO", "-n", f"{name}@shop", "-c", "1", *options)
        self.workers[name] = Process(command, output, self.environment)

    def wait_ready(self) -> None:
        for worker in self.workers.values():
            eventually(lambda worker=worker: worker.has_printed(" ready."), DEADLINE_S)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "celery", "-A", APP, *words]

    @property
    def environment(self) -> dict[str, str]:
        return {SETTINGS: json.dumps(self.settings)}

    def task(self, name: str) -> Any:
        return self.app.tasks[f"shop.{name}"]

    def file(self) -> Path:
        """A path where nothing is yet."""
        return self.folder / f"file-{next(self._numbers)}"

    def get(self, result: AsyncResult) -> Any:
        return result.get(timeout=DEADLINE_S, interval=0.02)

    def end(self) -> None:
        for worker in self.workers.values():
            worker.kill()
        if hasattr(self.app.backend, "result_consumer"):  # results as messages
            with suppress(AttributeError):  # what Celery says if nobody has waited for a result
                self.app.backend.result_consumer.stop()
        self.app.close()


@contextmanager
def running_shop(broker: TestBroker, folder: Path, **settings: Any) -> Iterator[Shop]:
    with own_vhost(broker) as url, ExitStack() as stack:
        shop = Shop(url, folder, **settings)
        stack.callback(shop.end)
        yield shop


def file_results(folder: Path) -> dict[str, Any]:
    results = folder / "results"
    results.mkdir()
    return {"result_backend": results.as_uri(), "result_chord_retry_interval": 0.2}


@pytest.fixture(scope="module")
def shop(broker: TestBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A worker that does one thing at a time, with results in files."""
    folder = tmp_path_factory.mktemp("shop")
    settings = {
        **file_results(folder),
        "task_queue_max_priority": 10,
        "task_routes": {"shop.report": {"queue": "reports"}},
        "worker_prefetch_multiplier": 1,
    }
    with running_shop(broker, folder, **settings) as shop:
        shop.start_worker("keeper", "-E", "-Q", "celery,reports")
        shop.wait_ready()
        yield shop


@pytest.fixture(scope="module")
def rpc_shop(broker: TestBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A worker whose results come back as messages."""
    folder = tmp_path_factory.mktemp("rpc")
    with running_shop(broker, folder, result_backend="rpc://") as shop:
        shop.start_worker("answerer")
        shop.wait_ready()
        yield shop


@pytest.fixture(scope="module")
def quorum_shop(broker: TestBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Quorum queues, and Celery's own delay queues for what is to be done later."""
    folder = tmp_path_factory.mktemp("quorum")
    settings = {
        **file_results(folder),
        "task_default_queue_type": "quorum",
        "task_default_exchange_type": "topic",
        "broker_native_delayed_delivery_queue_type": "quorum",
        "broker_transport_options": {"confirm_publish": True},
    }
    with running_shop(broker, folder, **settings) as shop:
        shop.start_worker("delayer")
        shop.wait_ready()
        yield shop


# -- tasks and results ---------------------------------------------------------------------------
def test_a_task_returns_its_result(shop: Shop) -> None:
    assert shop.get(shop.task("add").delay(2, 3)) == 5


def test_the_error_of_a_task_comes_to_who_asks_for_its_result(shop: Shop) -> None:
    with pytest.raises(KeyError, match="no such shop"):
        shop.get(shop.task("fail").delay("no such shop"))


def test_a_task_that_the_worker_does_not_know(shop: Shop) -> None:
    with pytest.raises(NotRegistered):
        shop.get(shop.app.send_task("shop.unheard_of"))


def test_a_chain_hands_each_result_to_the_next(shop: Shop) -> None:
    add = shop.task("add")
    assert shop.get(chain(add.s(1, 2), add.s(3), add.s(4), app=shop.app)()) == 10


def test_a_group_gathers_its_results_in_order(shop: Shop) -> None:
    add = shop.task("add")
    result = group((add.s(n, n) for n in range(10)), app=shop.app)()
    assert shop.get(result) == [2 * n for n in range(10)]


def test_a_chord_runs_its_body_when_every_part_is_done(shop: Shop) -> None:
    add, total = shop.task("add"), shop.task("total")
    assert shop.get(chord((add.s(n, n) for n in range(10)), app=shop.app)(total.s())) == 90


def test_a_chord_inside_a_chain(shop: Shop) -> None:
    add, total = shop.task("add"), shop.task("total")
    work = chain(add.s(1, 1), group(add.s(10), add.s(20)), total.s(), add.s(100), app=shop.app)
    assert shop.get(work()) == 134


def test_a_failed_part_fails_the_chord(shop: Shop) -> None:
    add, fail, total = shop.task("add"), shop.task("fail"), shop.task("total")
    result = chord([add.s(1, 1), fail.s("broken part")], app=shop.app)(total.s())
    with pytest.raises(Exception, match="broken part"):
        shop.get(result)


# -- later, again, first -------------------------------------------------------------------------
def test_a_task_is_tried_again_until_it_works(shop: Shop) -> None:
    assert shop.get(shop.task("flaky").delay(3, countdown=0.1)) == 4


def test_a_hopeless_task_is_given_up(shop: Shop) -> None:
    notes = shop.file()
    with pytest.raises(ValueError, match="hopeless"):
        shop.get(shop.task("hopeless").delay(str(notes)))
    assert notes.read_text().split("\n")[:-1] == ["try 0", "try 1", "try 2"]


def test_a_task_for_later_waits_and_lets_others_pass(shop: Shop) -> None:
    notes, start = shop.file(), time.time()
    when = datetime.now(UTC) + timedelta(seconds=3)
    note = shop.task("note")
    later = note.apply_async((str(notes), "later"), countdown=3)
    at_its_time = note.apply_async((str(notes), "later"), eta=when)
    shop.get(note.delay(str(notes), "now"))
    assert notes.read_text() == "now\n"
    shop.get(later)
    shop.get(at_its_time)
    assert time.time() >= start + 3
    assert notes.read_text() == "now\nlater\nlater\n"


def test_what_is_urgent_is_done_first(shop: Shop) -> None:
    notes, gate = shop.file(), shop.file()
    busy = shop.task("hold").delay(str(notes), str(gate))
    eventually(notes.exists)
    tasks = [
        shop.task("note").apply_async((str(notes), f"{number} of {priority}"), priority=priority)
        for number, priority in enumerate([0, 3, 9, 3, 6])
    ]
    gate.touch()
    for each in (busy, *tasks):
        shop.get(each)
    assert notes.read_text().split("\n")[1:-1] == ["2 of 9", "4 of 6", "1 of 3", "3 of 3", "0 of 0"]


def test_a_task_that_waits_too_long_is_not_done(shop: Shop) -> None:
    notes, gate = shop.file(), shop.file()
    busy = shop.task("hold").delay(str(notes), str(gate))
    eventually(notes.exists)
    shop.task("note").apply_async((str(notes), "too late"), expires=0.1)
    last = shop.task("note").delay(str(notes), "in time")
    eventually(lambda: queue_length(shop, "celery") == 1)
    gate.touch()
    assert shop.get(busy) is False
    shop.get(last)
    assert notes.read_text().split("\n")[1:-1] == ["in time"]


def queue_length(shop: Shop, queue: str) -> int:
    return queue_state(shop, queue).message_count


def queue_state(shop: Shop, queue: str) -> Any:
    with shop.app.connection_for_read() as connection, connection.channel() as channel:
        return channel.queue_declare(queue, passive=True)


def test_routes_send_a_task_to_its_queue(shop: Shop) -> None:
    shop.app.control.cancel_consumer("reports", reply=True, timeout=DEADLINE_S, limit=1)
    # Celery answers first and cancels then.
    eventually(lambda: queue_state(shop, "reports").consumer_count == 0)
    result = shop.task("report").delay()
    eventually(lambda: queue_length(shop, "reports") == 1)
    shop.app.control.add_consumer("reports", reply=True, timeout=DEADLINE_S, limit=1)
    assert shop.get(result) == "written"


# -- remote control ------------------------------------------------------------------------------
def celery(shop: Shop, *words: str) -> str:
    """What the command line answers."""
    done = subprocess.run(
        shop.command(*words),
        cwd=ROOT,
        env={**os.environ, **shop.environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout


def test_inspect_ping(shop: Shop) -> None:
    answer = celery(shop, "inspect", "ping", "--json", "--timeout", "10", "-d", "keeper@shop")
    assert json.loads(answer) == {"keeper@shop": {"ok": "pong"}}


def test_every_worker_answers_a_broadcast(shop: Shop, rpc_shop: Shop) -> None:
    for each, name in ((shop, "keeper@shop"), (rpc_shop, "answerer@shop")):
        assert each.app.control.ping(timeout=DEADLINE_S, limit=1) == [{name: {"ok": "pong"}}]


def test_inspect_tells_queues_and_tasks(shop: Shop) -> None:
    inspect = shop.app.control.inspect(timeout=DEADLINE_S, limit=1)
    queues = inspect.active_queues()["keeper@shop"]
    assert {queue["name"] for queue in queues} == {"celery", "reports"}
    assert "shop.add" in inspect.registered()["keeper@shop"]


def test_a_revoked_task_is_not_done(shop: Shop) -> None:
    notes, gate = shop.file(), shop.file()
    busy = shop.task("hold").delay(str(notes), str(gate))
    eventually(notes.exists)
    unwanted = shop.task("note").delay(str(notes), "unwanted")
    shop.app.control.revoke(unwanted.id, reply=True, timeout=DEADLINE_S, limit=1)
    gate.touch()
    shop.get(busy)
    with pytest.raises(TaskRevokedError):
        shop.get(unwanted)
    assert "unwanted" not in notes.read_text()


def test_events_tell_what_the_worker_does(shop: Shop) -> None:
    kinds = ["task-received", "task-started", "task-succeeded"]
    seen: list[tuple[str, str]] = []
    sent: list[AsyncResult] = []

    def on_event(event: dict[str, Any]) -> None:
        seen.append((event["type"], event["uuid"]))
        receiver.should_stop = event["type"] == kinds[-1]

    with shop.app.connection_for_read() as connection:
        receiver = shop.app.events.Receiver(connection, handlers=dict.fromkeys(kinds, on_event))
        receiver.on_consume_ready = lambda *_, **__: sent.append(shop.task("add").delay(1, 1))
        receiver.capture(limit=None, timeout=DEADLINE_S, wakeup=False)
    assert seen == [(kind, sent[0].id) for kind in kinds]


# -- results as messages -------------------------------------------------------------------------
def test_results_come_back_as_messages(rpc_shop: Shop) -> None:
    add = rpc_shop.task("add")
    assert rpc_shop.get(add.delay(2, 3)) == 5
    assert rpc_shop.get(chain(add.s(1, 2), add.s(3), app=rpc_shop.app)()) == 6
    result = group((add.s(n, n) for n in range(10)), app=rpc_shop.app)()
    assert rpc_shop.get(result) == [2 * n for n in range(10)]
    assert rpc_shop.get(rpc_shop.task("flaky").delay(2, countdown=0.1)) == 3
    with pytest.raises(KeyError, match="by message"):
        rpc_shop.get(rpc_shop.task("fail").delay("by message"))


# -- quorum queues -------------------------------------------------------------------------------
def test_a_task_for_later_waits_in_the_delay_queues(quorum_shop: Shop) -> None:
    start = time.time()
    later = quorum_shop.task("way").apply_async(countdown=3)
    now = quorum_shop.get(quorum_shop.task("way").delay())
    assert (now["deaths"], now["routing_key"]) == ([], "celery")
    way = quorum_shop.get(later)
    assert time.time() >= start + 3
    assert way["deaths"] == ["celery_delayed_0", "celery_delayed_1"]
    assert way["exchange"] == "celery_delayed_delivery"
    assert way["routing_key"] == "0." * 26 + "1.1.celery"


def test_a_retry_waits_in_the_delay_queues(quorum_shop: Shop) -> None:
    start = time.time()
    assert quorum_shop.get(quorum_shop.task("flaky").delay(2, countdown=1)) == 3
    assert time.time() >= start + 2


def test_a_chord_on_quorum_queues(quorum_shop: Shop) -> None:
    add, total = quorum_shop.task("add"), quorum_shop.task("total")
    result = chord((add.s(n, n) for n in range(5)), app=quorum_shop.app)(total.s())
    assert quorum_shop.get(result) == 20


# -- workers that go -----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_the_task_of_a_killed_worker_is_done_by_another(
    broker: TestBroker, tmp_path: Path, kind: str
) -> None:
    settings = {**file_results(tmp_path), "task_default_queue_type": kind}
    if kind == "quorum":
        settings["task_default_exchange_type"] = "topic"
    with running_shop(broker, tmp_path, **settings) as shop:
        for name in ("first", "second"):
            shop.start_worker(name)
        shop.wait_ready()
        notes, gate = shop.file(), shop.file()
        result = shop.task("hold").delay(str(notes), str(gate))
        victim = eventually(lambda: notes.exists() and notes.read_text().strip())
        shop.workers[victim.removesuffix("@shop")].kill()
        eventually(lambda: len(notes.read_text().split()) == 2, DEADLINE_S)
        gate.touch()
        assert shop.get(result) is True
        assert set(notes.read_text().split()) == {"first@shop", "second@shop"}


def test_a_worker_that_is_told_to_end_finishes_its_task_and_gives_back_the_rest(
    broker: TestBroker, tmp_path: Path
) -> None:
    with running_shop(broker, tmp_path, **file_results(tmp_path)) as shop:
        shop.start_worker("tired")
        shop.wait_ready()
        notes, gate = shop.file(), shop.file()
        held = shop.task("hold").delay(str(notes), str(gate))
        eventually(notes.exists)
        for number in range(3):
            shop.task("note").delay(str(notes), f"{number}")
        worker = shop.workers["tired"]
        eventually(lambda: worker.printed.count("] received") == 4)
        worker.terminate()
        eventually(lambda: worker.has_printed("Warm shutdown"))
        gate.touch()
        assert shop.get(held) is False
        assert worker.wait(DEADLINE_S) == 0
        eventually(lambda: queue_length(shop, "celery") == 3)


def test_a_worker_connects_again_when_its_connection_was_closed(
    broker: TestBroker, tmp_path: Path
) -> None:
    with (
        apart(broker) as broker,
        running_shop(broker, tmp_path, **file_results(tmp_path)) as shop,
    ):
        shop.start_worker("robust")
        shop.wait_ready()
        close_workers_connections(broker, shop)
        worker = shop.workers["robust"]
        eventually(lambda: worker.has_printed("Connection to broker lost"), DEADLINE_S)
        assert shop.get(shop.task("add").delay(2, 3)) == 5


@contextmanager
def apart(broker: TestBroker) -> Iterator[TestBroker]:
    """Where closing connections hurts no other test; on RabbitMQ their vhost tells them apart."""
    if not isinstance(broker, WarrenBroker):
        yield broker
        return
    with running_warren() as own:
        yield own


def close_workers_connections(broker: TestBroker, shop: Shop) -> None:
    if isinstance(broker, WarrenBroker):
        broker.close_connections("maintenance")
        return
    assert isinstance(broker, RabbitBroker)
    path = f"vhosts/{shop.url.rpartition('/')[2]}/connections"
    # One for tasks and one for events; the HTTP API learns of them a little later.
    names = eventually(lambda: [c["name"] for c in broker.api("GET", path)], DEADLINE_S)
    for connection in names:
        broker.api("DELETE", f"connections/{quote(connection)}", reason="maintenance")


def test_the_order_to_shut_down_ends_the_worker(broker: TestBroker, tmp_path: Path) -> None:
    with running_shop(broker, tmp_path, **file_results(tmp_path)) as shop:
        shop.start_worker("obedient")
        shop.wait_ready()
        shop.app.control.shutdown()
        assert shop.workers["obedient"].wait(DEADLINE_S) == 0
