"""Trace context in message headers (W3C traceparent), with or without OpenTelemetry.

Where the package is installed and the program has set up a tracer provider, each attempt is a span.
Without that nothing is traced and nothing is lost: what a handler publishes while it handles a
message carries that message's traceparent on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warren.handlers.message import Message

trace: Any = None
propagate: Any = None
if find_spec("opentelemetry") is not None:
    trace = import_module("opentelemetry.trace")
    propagate = import_module("opentelemetry.propagate")

_CARRIED = ("traceparent", "tracestate", "baggage")

#: The message that is being handled here.
current: ContextVar[Message | None] = ContextVar("warren_message", default=None)


def is_on() -> bool:
    """Whether spans go anywhere: the package is there, and somebody has set it up."""
    return trace is not None and not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider
    )


@contextmanager
def handling(message: Message, group: str) -> Iterator[None]:
    """A consumer span round one attempt, child of the publisher's."""
    token = current.set(message)
    try:
        if not is_on():
            yield
            return
        tracer = trace.get_tracer("warren")
        with tracer.start_as_current_span(
            f"{message.queue} process",
            context=propagate.extract(_carried(message)),
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
        current.reset(token)


def outgoing(headers: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The headers of something that is published now, with the trace it belongs to."""
    found = dict(headers or {})
    if is_on():
        propagate.inject(found)
    else:
        message = current.get()
        if message is not None:
            found = {**_carried(message), **found}
    return found or None


def _carried(message: Message) -> dict[str, str]:
    headers = message.headers
    return {name: value for name in _CARRIED if isinstance(value := headers.get(name), str)}
