"""What ``read_queues`` asks of Spark."""

from __future__ import annotations

from typing import Any

import pytest

from warren.spark import read_queues


class Reader:
    """Takes down what Spark's own readers are told."""

    def __init__(self, told: dict[str, Any], kind: str) -> None:
        self._told = told
        told["kind"] = kind

    def format(self, name: str) -> Reader:
        self._told["format"] = name
        return self

    def option(self, name: str, value: Any) -> Reader:
        self._told[name] = value
        return self

    def load(self) -> dict[str, Any]:
        return self._told


class Session:
    @property
    def read(self) -> Reader:
        return Reader({}, "batch")

    @property
    def readStream(self) -> Reader:
        return Reader({}, "stream")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"queues": "a"}, {"kind": "stream", "queues": "a"}),
        ({"queues": ["a", "b.*"], "stream": False}, {"kind": "batch", "queues": "a,b.*"}),
        (
            {"queues": "a", "url": "amqp://mq/", "ledger": "/l", "max_bytes_per_trigger": "1m"},
            {"kind": "stream", "queues": "a", "url": "amqp://mq/", "ledger": "/l",
             "maxBytesPerTrigger": "1m"},
        ),
        (
            {"queues": "a", "uri": "amqp://mq/", "peek": True},
            # Spark itself hides an option of this name, in any session.
            {"kind": "stream", "queues": "a", "url": "amqp://mq/", "peek": "true"},
        ),
    ],
)  # fmt: skip
def test_spark_is_told_what_was_given_and_no_more(given: Any, told: dict[str, Any]) -> None:
    assert read_queues(Session(), **given) == {"format": "rabbitmq", **told}  # type: ignore[arg-type, comparison-overlap]
