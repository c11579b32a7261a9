"""``/api/connections``: who is connected, and the way to end it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warren.broker.connection import BrokerConnection
from warren.broker.plain import to_json
from warren.errors import ConnectionForced
from warren.management.call import Call
from warren.management.channels import channel_row
from warren.management.erlang import NODE, process
from warren.management.lists import reply_list, reply_one
from warren.management.messages import HttpError, Response, not_found
from warren.management.rules import in_vhost, owner
from warren.management.sampler import connection_counts
from warren.management.site import Route

_TLS_FIELDS = (
    *("peer_cert_issuer", "peer_cert_subject", "peer_cert_validity"),
    *("ssl_cipher", "ssl_hash", "ssl_key_exchange", "ssl_protocol"),
)


def connection_row(call: Call, connection: BrokerConnection, unknown: Any = None) -> dict[str, Any]:
    session, sampler = connection.session, call.site.sampler
    # RabbitMQ: null in a list, an empty text in the answer for one connection.
    return {
        "auth_mechanism": session.mechanism,
        "channel_max": session.channel_max,
        "channels": len(connection.channels),
        "client_properties": to_json(session.client_properties),
        "connected_at": connection.connected_at_ms,
        "frame_max": session.frame_max,
        "host": connection.local[0],
        "name": connection.name,
        "node": NODE,
        "peer_host": connection.peer[0],
        "peer_port": connection.peer[1],
        "port": connection.local[1],
        "protocol": "AMQP 0-9-1",
        "recv_cnt": session.received,
        "send_cnt": session.sent,
        "send_pend": 0,
        "ssl": connection.tls is not None,
        "state": _state(connection),
        "timeout": session.heartbeat_s,
        "type": "network",
        "user": connection.user_name,
        "user_who_performed_action": connection.user_name,
        "vhost": connection.vhost.name,
        **dict.fromkeys(_TLS_FIELDS, unknown),
        **(connection.tls or {}),
        **process(),
        **sampler.rated(
            connection,
            connection_counts(connection),
            *("recv_oct", "send_oct"),
            span=call.span("data_rates"),
        ),
    }


def _state(connection: BrokerConnection) -> str:
    if connection.blocked:
        return "blocked"
    if connection.session.wary:
        return "blocking"
    return connection.session.state


def _visible(call: Call) -> Iterable[BrokerConnection]:
    for connection in call.core.connections:
        if call.is_monitor or connection.user_name == call.user.name:
            yield connection


def list_connections(call: Call) -> Response:
    return reply_list(call, _visible(call), lambda item: connection_row(call, item))


def list_of_vhost(call: Call) -> Response:
    vhost = call.vhost
    mine = (connection for connection in _visible(call) if connection.vhost is vhost)
    return reply_list(call, mine, lambda item: connection_row(call, item))


def list_of_user(call: Call) -> Response:
    name = call.names["user"]
    return reply_list(
        call,
        (connection for connection in _visible(call) if connection.user_name == name),
        lambda item: {
            "name": item.name,
            "vhost": item.vhost.name,
            "user": item.user_name,
            "node": NODE,
        },
    )


def close_of_user(call: Call) -> Response:
    for connection in list(call.core.connections):
        if connection.user_name == call.names["user"]:
            _check_owner(call, connection)
            _close(call, connection)
    return Response(204)


def _find(call: Call) -> BrokerConnection:
    name = call.names["connection"]
    for connection in call.core.connections:
        if connection.name == name:
            _check_owner(call, connection)
            return connection
    raise not_found()


def _check_owner(call: Call, connection: BrokerConnection) -> None:
    refused = owner(call, connection.user_name)
    if refused is not None:
        raise HttpError(401, "not_authorised", refused)


def show(call: Call) -> Response:
    return reply_one(call, connection_row(call, _find(call), ""))


def close(call: Call) -> Response:
    _close(call, _find(call))
    return Response(204)


def _close(call: Call, connection: BrokerConnection) -> None:
    reason = call.request.headers.get("x-reason", "Closed via management plugin")
    connection.session.close(ConnectionForced(reason))
    connection.wants_write()


def list_channels(call: Call) -> Response:
    return reply_list(call, _find(call).channels, lambda item: channel_row(call, item))


ROUTES = (
    Route("/connections", get=list_connections),
    Route("/connections/{connection}", get=show, delete=close),
    Route("/connections/username/{user}", get=list_of_user, delete=close_of_user),
    Route("/connections/{connection}/channels", get=list_channels),
    Route("/vhosts/{vhost}/connections", in_vhost, get=list_of_vhost),
)
