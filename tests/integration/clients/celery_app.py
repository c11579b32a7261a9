"""A Celery app as its users write one; ``celery -A tests.integration.clients.celery_app worker``.

Its settings come as JSON in the environment, so that each test can have the app it needs.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from celery import Celery, Task, shared_task

SETTINGS = "CELERY_APP_SETTINGS"
PATIENCE_S = 30.0


def make_app(settings: dict[str, Any], **options: Any) -> Celery:
    app = Celery("shop", **options)
    app.conf.update(broker_connection_retry_on_startup=True, **settings)
    return app


app = make_app(json.loads(os.environ.get(SETTINGS, "{}")), set_as_current=SETTINGS in os.environ)


@shared_task(name="shop.add")
def add(x: int, y: int) -> int:
    return x + y


@shared_task(name="shop.total")
def total(numbers: list[int]) -> int:
    return sum(numbers)


@shared_task(name="shop.fail")
def fail(words: str) -> None:
    raise KeyError(words)


@shared_task(name="shop.note", acks_late=True)
def note(file: str, words: str) -> None:
    """Write a line into a file that the test reads."""
    with open(file, "a") as notes:
        notes.write(f"{words}\n")


@shared_task(name="shop.flaky", bind=True, max_retries=5)
def flaky(self: Task, failures: int, countdown: float) -> int:
    """Fail this many times; returns how often it was tried."""
    if self.request.retries < failures:
        raise self.retry(exc=ValueError("not yet"), countdown=countdown)
    return self.request.retries + 1


@shared_task(
    name="shop.hopeless",
    bind=True,
    autoretry_for=(ValueError,),
    max_retries=2,
    default_retry_delay=0,
)
def hopeless(self: Task, file: str) -> None:
    """Fail always, and give up in the end."""
    note(file, f"try {self.request.retries}")
    raise ValueError("hopeless")


@shared_task(name="shop.hold", bind=True, acks_late=True)
def hold(self: Task, file: str, gate: str) -> bool:
    """Note which worker has begun, wait until the gate file is there; was it a redelivery?"""
    note(file, self.request.hostname)
    deadline = time.monotonic() + PATIENCE_S
    while not Path(gate).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(self.request.delivery_info["redelivered"])


@shared_task(name="shop.way", bind=True)
def way(self: Task) -> dict[str, Any]:
    """How the message came here: exchange, key, priority, and the queues it died in."""
    return {
        **self.request.delivery_info,
        "deaths": [death["queue"] for death in self.request.get("x-death") or []],
    }


@shared_task(name="shop.report")
def report() -> str:
    return "written"
