"""Health checks, and the rest that monitoring and clients ask first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from warren.errors import Refusal
from warren.management.call import Call
from warren.management.erlang import NODE
from warren.management.listeners import expire_before
from warren.management.messages import Response, answer, bad_request
from warren.management.overview import check_node
from warren.management.rules import administrator, in_vhost, monitor
from warren.management.site import Route

_QUEUE = "aliveness-test"
_UNITS = {"days": 86_400, "weeks": 604_800, "months": 2_628_000, "years": 31_536_000}
#: As far as dates go.
_LAST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_PROTOCOLS = {
    **dict.fromkeys(("amqp091", "amqp0.9.1", "amqp0-9-1", "amqp0_9_1"), "amqp"),
    **dict.fromkeys(("amqp10", "amqp1.0", "amqp1-0", "amqp1_0"), "amqp"),
    "amqps": "amqp/ssl",
    **dict.fromkeys(("http1", "http1.1", "http_api", "management", "management_ui", "ui"), "http"),
    **dict.fromkeys(("cli", "distribution"), "clustering"),
}
_SINGLE = {"status": "ok", "reason": "single node cluster"}


def _failed(reason: str, **facts: Any) -> Response:
    return answer({"status": "failed", "reason": reason, **facts}, 503)


def alarms(call: Call) -> Any:
    return _alarms(call, "There are alarms in effect in the cluster")


def local_alarms(call: Call) -> Any:
    return _alarms(call, "There are alarms in effect on the node")


def _alarms(call: Call, reason: str) -> Any:
    raised = [name for name, on in call.core.alarms.items() if on]
    if not raised:
        return {"status": "ok"}
    return _failed(reason, alarms=[{"node": NODE, "resource": name} for name in raised])


def certificates(call: Call) -> Any:
    """Those that end before the time is over, of the broker and of its authorities."""
    try:
        within = int(call.names["within"])
    except ValueError:
        raise bad_request("Invalid expiration value.") from None
    unit = _UNITS.get(call.names["unit"].lower())
    if unit is None:
        raise bad_request("Time unit not recognised. Supported units: days, weeks, months, years.")
    now_s = call.core.clock.wall_ms() / 1000
    moment = datetime.fromtimestamp(max(0, min(now_s + within * unit, _LAST_S)), UTC)
    expired = [
        {
            "node": NODE,
            "protocol": listener.protocol,
            "interface": listener.host,
            "port": listener.port,
            "certfile": listener.certificate,
            "cacertfile": listener.ca,
            "certfile_expires_on": own,
            "cacertfile_expires_on": authorities,
        }
        for listener in call.site.listeners
        for own in [expire_before(listener.certificate, moment)]
        for authorities in [expire_before(listener.ca, moment)]
        if own or authorities
    ]
    return _failed("Certificates expiring", expired=expired) if expired else {"status": "ok"}


def port_listener(call: Call) -> Any:
    try:
        wanted = int(call.names["port"])
    except ValueError:
        raise bad_request("Invalid port") from None
    ports = [listener.port for listener in call.site.listeners]
    if wanted in ports:
        return {"status": "ok", "port": wanted}
    return _failed("No active listener", missing=wanted, ports=ports)


def protocol_listener(call: Call) -> Any:
    name = call.names["protocol"]
    wanted = _PROTOCOLS.get(name.lower(), name.lower())
    protocols = [listener.protocol for listener in call.site.listeners]
    if wanted in protocols:
        return {"status": "ok", "protocol": wanted}
    return _failed("No active listener", missing=wanted, protocols=protocols)


def fine(call: Call) -> Any:
    check_node(call)
    return {"status": "ok"}


def single_node(call: Call) -> Any:
    return _SINGLE


def aliveness(call: Call) -> Any:
    """Declare a queue, send it a message, take it out again."""
    with call.direct(call.vhost.name) as channel:
        try:
            channel.declare_queue(_QUEUE, durable=False, auto_delete=False, arguments={})
            channel.publish("", _QUEUE, {}, b"test_message")
            alive = channel.get(_QUEUE, no_ack=True) is not None
        except Refusal as refusal:
            return _failed(str(refusal))
    return {"status": "ok"} if alive else _failed("aliveness-test queue is empty")


def auth(call: Call) -> Any:
    return {"enable_uaa": False, "uaa_client_id": "", "uaa_location": ""}


def log_in(call: Call) -> Any:
    """Name and password in a form: are they right? There is no cookie to take home."""
    return "ok"


def attempts(call: Call) -> Any:
    """How often somebody logged in, or tried to, by protocol."""
    check_node(call)
    return [
        {
            "protocol": protocol,
            "auth_attempts": succeeded + failed,
            "auth_attempts_failed": failed,
            "auth_attempts_succeeded": succeeded,
        }
        for protocol, (succeeded, failed) in call.core.admin.logins.by_protocol().items()
    ]


def attempts_by_source(call: Call) -> Any:
    """Not kept, as in RabbitMQ unless it is told to: there is no end to sources."""
    check_node(call)
    return []


def reset_attempts(call: Call) -> Response:
    check_node(call)
    call.core.admin.logins.reset()
    return Response(204)


def feature_flags(call: Call) -> Any:
    return [
        {
            "name": name,
            "desc": "",
            "doc_url": "",
            "state": "enabled",
            "stability": "stable",
            "provided_by": "rabbit",
        }
        for name in _FLAGS
    ]


def enable_flag(call: Call) -> Response:
    """All that there are, are enabled."""
    if call.names["name"] not in _FLAGS:
        raise bad_request("unsupported")
    return Response(204)


_FLAGS = (
    *("drop_unroutable_metric", "empty_basic_get_metric", "implicit_default_bindings"),
    *("quorum_queue", "stream_queue", "user_limits", "virtual_host_metadata"),
)


_CHECK = "/health/checks/"
ROUTES = (
    Route(_CHECK + "alarms", get=alarms),
    Route(_CHECK + "local-alarms", get=local_alarms),
    Route(_CHECK + "certificate-expiration/{within}/{unit}", get=certificates),
    Route(_CHECK + "port-listener/{port}", get=port_listener),
    Route(_CHECK + "protocol-listener/{protocol}", get=protocol_listener),
    Route(_CHECK + "virtual-hosts", get=fine),
    Route(_CHECK + "node-is-mirror-sync-critical", get=single_node),
    Route(_CHECK + "node-is-quorum-critical", get=single_node),
    Route("/healthchecks/node", get=fine),
    Route("/healthchecks/node/{node}", get=fine),
    Route("/aliveness-test/{vhost}", in_vhost, get=aliveness),
    Route("/auth", get=auth),
    Route("/login", by_form=True, post=log_in),
    Route("/auth/attempts/{node}", monitor, get=attempts, delete=reset_attempts),
    Route("/auth/attempts/{node}/source", monitor, get=attempts_by_source, delete=reset_attempts),
    Route("/feature-flags", administrator, get=feature_flags),
    Route("/feature-flags/{name}/enable", administrator, put=enable_flag),
)
