"""A publisher's trace goes through a handler into what it publishes."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from warren.handlers import tracing

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Heard:
    """As much of a message as a trace wants to know."""

    queue, body = "orders", b"x"
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "other": 1}


@pytest.fixture
def message() -> Any:
    return Heard()


def test_an_attempt_is_a_span_under_the_publishers(
    message: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with tracing.handling(message, "billing"):
        here = trace.get_current_span()
        sent = tracing.outgoing({"mine": 1})
    assert sent is not None
    _, trace_id, span_id, _ = sent["traceparent"].split("-")
    assert trace_id == TRACE
    assert span_id == f"{here.get_span_context().span_id:016x}" != SPAN
    assert sent["mine"] == 1
    attributes = dict(here.attributes)  # type: ignore[attr-defined]
    assert attributes["messaging.destination.name"] == "orders"


@pytest.mark.parametrize("installed", [True, False])
def test_where_nobody_traces_the_trace_is_handed_on_as_it_came(
    message: Any, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    if not installed:
        monkeypatch.setattr(tracing, "trace", None)
        monkeypatch.setattr(tracing, "propagate", None)
    with tracing.handling(message, "billing"):
        sent = tracing.outgoing(None)
    assert sent == {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    assert tracing.outgoing(None) is None
