"""``/api/queues``: what is in each queue, declaring, deleting, purging."""

from __future__ import annotations

from typing import Any

from warren.broker.plain import head_timestamp, to_json
from warren.broker.vhost import AnyQueue
from warren.management.call import Call, made, parse_bool
from warren.management.consumers import consumer_row
from warren.management.erlang import NODE, backing_queue, process
from warren.management.lists import reply_list, reply_one
from warren.management.messages import Response, bad_request, not_found
from warren.management.rules import administrator, in_vhost
from warren.management.sampler import DELIVERING, depth, queue_counts
from warren.management.site import Route

_DEPTHS = ("messages", "messages_ready", "messages_unacknowledged")


def queue_row(call: Call, queue: AnyQueue) -> dict[str, Any]:
    core, sampler = call.core, call.site.sampler
    counts = queue_counts(queue)
    place = (queue.vhost.name, "queue", queue.name, queue.kind)
    policy = core.policies.match(*place)
    operator_policy = core.policies.match(*place, operator=True)
    row = {
        "arguments": to_json(queue.arguments),
        "auto_delete": queue.auto_delete,
        "consumers": len(queue.rota),
        "durable": queue.durable,
        "effective_policy_definition": core.policies.effective(*place),
        "exclusive": queue.owner is not None,
        "memory": queue.ready_bytes + queue.unacked_bytes,
        "name": queue.name,
        "node": NODE,
        "operator_policy": operator_policy.name if operator_policy is not None else None,
        "policy": policy.name if policy is not None else None,
        "state": "running",
        "type": queue.kind,
        "vhost": queue.vhost.name,
        **process(),
        **sampler.rated(queue, counts, *_DEPTHS, span=call.span("lengths", up=True)),
        **sampler.message_stats(
            queue, counts, ("publish",), DELIVERING, span=call.span("msg_rates")
        ),
    }
    return {**row, **_OF_KIND[queue.kind](call, queue)}


def _classic(call: Call, queue: Any) -> dict[str, Any]:
    length, active, exclusive = queue.message_count, queue.rota.active, queue.exclusive_consumer
    row = {
        **_sizes(queue),
        **_capacity(queue),
        **call.site.sampler.idle_since(queue),
        "backing_queue_status": backing_queue(length, queue.delivered, queue.published),
        "exclusive_consumer_tag": exclusive.tag if exclusive is not None else None,
        "head_message_timestamp": _head_timestamp(queue),
        "message_bytes_paged_out": 0,
        "messages_paged_out": queue.paged,
        "messages_ready_ram": length - queue.paged,
        "messages_unacknowledged_ram": queue.unacked,
        "recoverable_slaves": None,
        "single_active_consumer_tag": active.tag if active is not None else None,
    }
    if queue.owner is not None:
        row["owner_pid_details"] = {
            "name": queue.owner.name,
            "peer_host": queue.owner.peer[0],
            "peer_port": queue.owner.peer[1],
        }
    return row


def _quorum(call: Call, queue: Any) -> dict[str, Any]:
    active = queue.rota.active
    return {
        **_sizes(queue),
        **_capacity(queue),
        "leader": NODE,
        "members": [NODE],
        "message_bytes_dlx": 0,
        "messages_dlx": 0,
        "online": [NODE],
        "open_files": {NODE: 0},
        "single_active_consumer_ctag": active.tag if active is not None else None,
    }


def _stream(call: Call, queue: Any) -> dict[str, Any]:
    return {"members": [NODE], "online": [NODE], "readers": {NODE: len(queue.rota)}}


_OF_KIND = {"classic": _classic, "quorum": _quorum, "stream": _stream}


def _sizes(queue: Any) -> dict[str, Any]:
    """Of a queue that survives, everything counts as persistent; RabbitMQ looks at each message."""
    count, octets = depth(queue)["messages"], queue.ready_bytes + queue.unacked_bytes
    return {
        "message_bytes": octets,
        "message_bytes_persistent": octets if queue.durable else 0,
        "message_bytes_ram": octets,
        "message_bytes_ready": queue.ready_bytes,
        "message_bytes_unacknowledged": queue.unacked_bytes,
        "messages_persistent": count if queue.durable else 0,
        "messages_ram": count - queue.paged,
    }


def _capacity(queue: Any) -> dict[str, Any]:
    """Could consumers take more right now? RabbitMQ gives the share of time they could."""
    value: float = 0
    if len(queue.rota):
        value = 0.0 if queue.message_count else 1.0
    return {"consumer_capacity": value, "consumer_utilisation": value}


def _head_timestamp(queue: Any) -> int | None:
    message = queue.head
    return head_timestamp(message) if message is not None else None


# -- the resource --------------------------------------------------------------------------------
def list_queues(call: Call) -> Response:
    queues = [queue for vhost in call.usable_vhosts() for queue in vhost.queues.values()]
    return reply_list(call, queues, lambda queue: queue_row(call, queue))


def list_of_vhost(call: Call) -> Response:
    return reply_list(call, call.vhost.queues.values(), lambda queue: queue_row(call, queue))


def find(call: Call) -> AnyQueue:
    queue = call.vhost.queues.get(call.names["queue"])
    if queue is None:
        raise not_found()
    return queue


def show(call: Call) -> Response:
    queue = find(call)
    details = {
        "consumer_details": [consumer_row(consumer) for consumer in queue.rota],
        "deliveries": [],  # filled in RabbitMQ's detailed mode only
        "incoming": [],
    }
    return reply_one(call, {**queue_row(call, queue), **details})


def declare(call: Call) -> Response:
    vhost, name = call.changed_vhost(), call.names["queue"]
    values = call.json()
    new = name not in vhost.queues
    call.change(
        vhost.name,
        lambda channel: channel.declare_queue(
            name,
            durable=parse_bool(values.get("durable", False)),
            auto_delete=parse_bool(values.get("auto_delete", False)),
            arguments=arguments_of(values),
        ),
    )
    return made(new)


def arguments_of(values: dict[str, Any]) -> dict[str, Any]:
    """A body's arguments; an empty list stands for none, as in old files."""
    arguments = values.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise bad_request("not_json")
    return arguments


def delete(call: Call) -> Response:
    queue = find(call)
    call.change(
        queue.vhost.name,
        lambda channel: channel.delete_queue(
            queue.name, if_unused=call.flag("if-unused"), if_empty=call.flag("if-empty")
        ),
    )
    return Response(204)


def purge(call: Call) -> Response:
    queue = find(call)
    call.change(queue.vhost.name, lambda channel: channel.purge(queue.name))
    return Response(204)


def act(call: Call) -> Response:
    """Synchronising mirrors: there are none, so it is done."""
    find(call)
    action = call.json("action")["action"]
    if action not in ("sync", "cancel_sync"):
        raise bad_request(["unknown", action])
    return Response(204)


ROUTES = (
    Route("/queues", get=list_queues),
    Route("/queues/{vhost}", in_vhost, get=list_of_vhost),
    Route("/queues/{vhost}/{queue}", in_vhost, get=show, put=declare, delete=delete),
    Route("/queues/{vhost}/{queue}/contents", in_vhost, delete=purge),
    Route("/queues/{vhost}/{queue}/actions", administrator, post=act),
)
