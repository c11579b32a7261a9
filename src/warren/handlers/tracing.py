"""Trace context in message headers (W3C traceparent), where OpenTelemetry is installed.

Without the package nothing is traced and nothing is lost: headers pass as they are, and what a
handler publishes while it handles a message carries that message's traceparent on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warren.handlers.message import Message

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None  # type: ignore[assignment]

_CARRIED = ("traceparent", "tracestate", "baggage")

_current: ContextVar[Mapping[str, str] | None] = ContextVar("warren_trace", default=None)


def is_on() -> bool:
    return trace is not None


@contextmanager
def handling(message: Message, group: str) -> Iterator[None]:
    """A consumer span round one attempt, child of the publisher's."""
    carried = {
        name: value for name in _CARRIED if isinstance(value := message.headers.get(name), str)
    }
    token = _current.set(carried or None)
    try:
        if trace is None:
            yield
            return
        tracer = trace.get_tracer("warren")
        with tracer.start_as_current_span(
            f"{message.queue} process",
            context=propagate.extract(carried),
            kind=trace.SpanKind.CONSUMER,
            attributes={
                "messaging.system": "rabbitmq",
                "messaging.operation.type": "process",
                "messaging.destination.name": message.queue,
                "messaging.consumer.group.name": group,
                "messaging.message.body.size": len(message.body),
            },
        ):
            yield
    finally:
        _current.reset(token)


def outgoing(headers: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The headers of something that is published now, with the trace it belongs to."""
    found = dict(headers or {})
    if propagate is not None:
        propagate.inject(found)
    else:
        for name, value in (_current.get() or {}).items():
            found.setdefault(name, value)
    return found or None
