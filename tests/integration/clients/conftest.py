"""Fixtures for foreign clients: programs that run beside the test, a vhost of the test's own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.integration.clients.programs import Consumer, Process
from tests.support.brokers import TestBroker


@pytest.fixture
def consumer(broker: TestBroker, name: Any) -> Iterator[Callable[..., Consumer]]:
    """Starts a pika program in a thread: ``consumer(set_up)``."""
    started: list[Consumer] = []

    def start(set_up: Callable[[BlockingChannel], Any]) -> Consumer:
        started.append(Consumer(broker.url, set_up))
        return started[-1]

    yield start
    for program in started:
        program.stop()


@pytest.fixture
def process(tmp_path: Path, name: Any) -> Iterator[Callable[..., Process]]:
    """Starts a program in a process of its own: ``process(command)``."""
    started: list[Process] = []

    def start(command: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        started.append(Process(command, tmp_path / f"output-{len(started)}", env))
        return started[-1]

    yield start
    for program in started:
        program.kill()


@contextmanager
def own_vhost(broker: TestBroker) -> Iterator[str]:
    """The URL of a vhost that is there for the length of the block."""
    vhost = f"clients-{secrets.token_hex(4)}"
    broker.add_vhost(vhost)
    try:
        yield broker.url + vhost
    finally:
        broker.delete_vhost(vhost)


@pytest.fixture
def vhost_url(broker: TestBroker) -> Iterator[str]:
    """For programs that use names of their own choice: a vhost where nobody else is."""
    with own_vhost(broker) as url:
        yield url
