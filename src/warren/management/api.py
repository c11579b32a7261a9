"""All resources, put together."""

from __future__ import annotations

from warren.broker.core import BrokerCore
from warren.management import (
    bindings,
    channels,
    connections,
    consumers,
    definitions,
    exchanges,
    health,
    overview,
    parameters,
    permissions,
    policies,
    queues,
    traffic,
    users,
    vhosts,
)
from warren.management.listeners import Listener
from warren.management.messages import Request, Response
from warren.management.prometheus import answer_metrics
from warren.management.site import Site

_RESOURCES = (
    overview,
    connections,
    channels,
    consumers,
    exchanges,
    queues,
    traffic,
    bindings,
    vhosts,
    users,
    permissions,
    policies,
    parameters,
    definitions,
    health,
)


class Api:
    """RabbitMQ's HTTP API on a broker, and ``/metrics`` beside it."""

    def __init__(self, core: BrokerCore, listeners: list[Listener]) -> None:
        self._core = core
        routes = [route for resource in _RESOURCES for route in resource.ROUTES]
        self._site = Site(core, routes, listeners=listeners)

    def handle(self, request: Request) -> Response:
        """The answer to a request; never an exception."""
        if request.path[:1] == ("metrics",) and request.method in ("GET", "HEAD"):
            # Open to all, as RabbitMQ's: counts and queue names, no contents.
            return answer_metrics(self._core, request)
        return self._site.handle(request)
