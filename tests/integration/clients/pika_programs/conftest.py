"""Connections of pika's, closed after the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.integration.clients.pika_programs.steps import Connect, Name
from tests.support.brokers import TestBroker


@pytest.fixture
def pika_connect(broker: TestBroker, name: Name) -> Iterator[Connect]:
    opened: list[pika.BlockingConnection] = []

    def connect(**parameters: Any) -> pika.BlockingConnection:
        given = pika.URLParameters(broker.url)
        for key, value in parameters.items():
            setattr(given, key, value)
        opened.append(pika.BlockingConnection(given))
        return opened[-1]

    yield connect
    for connection in opened:
        if connection.is_open:
            connection.close()


@pytest.fixture
def channel(pika_connect: Connect) -> BlockingChannel:
    return pika_connect().channel()
