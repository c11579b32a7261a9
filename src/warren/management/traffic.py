"""Publishing to an exchange and getting from a queue, for people: slow and one by one."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from warren.broker.direct import DirectChannel, Got
from warren.broker.plain import NotPlain
from warren.errors import AccessRefused, NotAllowed, NotFound, Refusal
from warren.management.call import Call, parse_int
from warren.management.messages import HttpError, bad_request, not_found
from warren.management.rules import in_vhost
from warren.management.site import Route

_ACKMODES = ("ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false")
#: The most messages that one request gets, whatever it asks for.
_MOST = 10_000


def publish(call: Call) -> dict[str, Any]:
    values = call.json("routing_key", "properties", "payload", "payload_encoding")
    vhost = call.vhost
    payload, properties = values["payload"], values["properties"] or {}
    if not isinstance(payload, str):
        raise bad_request("payload_not_string")
    if not isinstance(properties, dict) or not isinstance(values["routing_key"], str):
        raise bad_request("not_json")
    with call.direct(vhost.name) as channel:
        try:
            body = _decode(payload, values["payload_encoding"])
            fate = channel.publish(call.exchange_name(), values["routing_key"], properties, body)
        except NotPlain as error:
            raise bad_request(error.reason) from None
        except Refusal as refusal:
            raise bad_request(f"{refusal.code} {refusal.reply_text}") from None
    if fate == "refused":
        raise bad_request("rejected Unable to publish message. Check queue limits.")
    return {"routed": fate == "routed"}


def _decode(payload: str, encoding: Any) -> bytes:
    if encoding == "string":
        return payload.encode("utf-8", "surrogatepass")
    if encoding != "base64":
        raise bad_request(["unsupported_encoding", encoding])
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(["not_base64", payload]) from None


def get(call: Call) -> list[dict[str, Any]]:
    values = call.json("ackmode", "count", "encoding")
    count, mode, encoding = parse_int(values["count"]), values["ackmode"], values["encoding"]
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    cut = parse_int(values["truncate"]) if "truncate" in values else None
    if mode not in _ACKMODES:
        raise HttpError(500)  # RabbitMQ's own answer
    if call.names["vhost"] not in call.core.vhosts:
        raise not_found()
    with call.direct(call.names["vhost"]) as channel:
        try:
            got = _take(channel, call.names["queue"], count, mode)
        except NotFound as refusal:
            raise HttpError(404, "not_found", refusal.reply_text) from None
        except (AccessRefused, NotAllowed) as refusal:
            raise HttpError(401, "not_authorised", refusal.reply_text) from None
        except Refusal as refusal:
            raise bad_request(f"{refusal.code} {refusal.reply_text}") from None
    return [_message(message, encoding, cut) for message in got]


def _take(channel: DirectChannel, queue: str, count: int, mode: str) -> list[Got]:
    taken: list[Got] = []
    while len(taken) < min(count, _MOST):
        message = channel.get(queue, no_ack=mode == "ack_requeue_false")
        if message is None:
            break
        taken.append(message)
    # Given back at the end only, or the first would come again and again.
    for message in taken if mode.startswith("reject") else ():
        channel.reject(message.delivery_tag, requeue=mode == "reject_requeue_true")
    return taken


def _message(message: Got, encoding: str, cut: int | None) -> dict[str, Any]:
    body = message.body if cut is None else message.body[: max(0, cut)]
    return {
        "payload_bytes": len(message.body),
        "redelivered": message.redelivered,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "message_count": message.message_count,
        "properties": message.properties,
        **_payload(body, encoding),
    }


def _payload(body: bytes, encoding: str) -> dict[str, str]:
    if encoding == "auto":
        try:
            return {"payload": body.decode(), "payload_encoding": "string"}
        except UnicodeDecodeError:
            pass
    return {"payload": base64.b64encode(body).decode(), "payload_encoding": "base64"}


ROUTES = (
    Route("/exchanges/{vhost}/{exchange}/publish", in_vhost, post=publish),
    Route("/queues/{vhost}/{queue}/get", in_vhost, post=get),
)
