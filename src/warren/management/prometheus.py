"""``/metrics``: RabbitMQ's names in Prometheus's words, so that its dashboards work here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from warren.broker.core import RABBITMQ_VERSION, BrokerCore
from warren.management.erlang import NODE
from warren.management.families import FAMILIES, Family
from warren.management.figures import Labels, all_queues
from warren.management.messages import Request, Response
from warren.management.sampler import Sampler

#: name, help, and the counter it tells.
_GLOBAL = (
    ("messages_received_total", "publish", "Total number of messages received from publishers"),
    (
        "messages_received_confirm_total",
        "received_confirm",
        "Total number of messages received from publishers expecting confirmations",
    ),
    ("messages_routed_total", "routed", "Total number of messages routed to queues or streams"),
    (
        "messages_unroutable_dropped_total",
        "drop_unroutable",
        "Total number of messages published as non-mandatory into an exchange and dropped as "
        "unroutable",
    ),
    (
        "messages_unroutable_returned_total",
        "return_unroutable",
        "Total number of messages published as mandatory into an exchange and returned to the "
        "publisher as unroutable",
    ),
    ("messages_confirmed_total", "confirm", "Total number of messages confirmed to publishers"),
    ("messages_delivered_total", "deliver_get", "Total number of messages delivered to consumers"),
    (
        "messages_delivered_consume_manual_ack_total",
        "deliver",
        "Total number of messages delivered to consumers using basic.consume with manual "
        "acknowledgment",
    ),
    (
        "messages_delivered_consume_auto_ack_total",
        "deliver_no_ack",
        "Total number of messages delivered to consumers using basic.consume with automatic "
        "acknowledgment",
    ),
    (
        "messages_delivered_get_manual_ack_total",
        "get",
        "Total number of messages delivered to consumers using basic.get with manual "
        "acknowledgment",
    ),
    (
        "messages_delivered_get_auto_ack_total",
        "get_no_ack",
        "Total number of messages delivered to consumers using basic.get with automatic "
        "acknowledgment",
    ),
    (
        "messages_get_empty_total",
        "get_empty",
        "Total number of times basic.get operations fetched no message",
    ),
    (
        "messages_redelivered_total",
        "redeliver",
        "Total number of messages redelivered to consumers",
    ),
    (
        "messages_acknowledged_total",
        "ack",
        "Total number of messages acknowledged by consumers",
    ),
)
_DEAD = {
    "delivery_limit": "delivery-limit exceeded",
    "expired": "message TTL exceeded",
    "maxlen": "overflow drop-head or reject-publish-dlx",
    "rejected": "basic.reject or basic.nack",
}
_ALARMS = (
    ("file_descriptor_limit", "file descriptor limit", ""),
    ("free_disk_space_watermark", "free disk space watermark", "disk"),
    ("memory_used_watermark", "VM memory watermark", "memory"),
)
_PROTOCOL = {"protocol": "amqp091"}


def answer_metrics(core: BrokerCore, request: Request) -> Response:
    """Sums, each object's (``per-object``), or chosen families' (``detailed``)."""
    core.tally()
    kind = request.path[1:]
    if kind in ((), ("",), ("per-object",)):
        pieces = _all(core, per_object=kind == ("per-object",))
    elif kind == ("detailed",):
        pieces = _detailed(core, request)
    else:
        return Response(404, (b"Unknown Registry",), [("content-type", "text/plain")])
    return Response(200, pieces, [("content-type", "text/plain; version=0.0.4")])


def _all(core: BrokerCore, *, per_object: bool) -> Iterator[bytes]:
    for family in FAMILIES:
        if not family.cluster and family.name != "queue_consumer_count":
            yield from _tell(core, family, "rabbitmq_", added_up=not (per_object or family.apart))
    yield from _totals(core)
    yield from _global(core)
    if not per_object:
        for name, text, alarm in _ALARMS:
            on: list[tuple[Labels, float]] = [({}, int(core.alarms.get(alarm, False)))]
            text = f"is 1 if {text} alarm is in effect"
            yield _family(f"rabbitmq_alarms_{name}", "untyped", text, on)
    yield from _identity(core)


def _detailed(core: BrokerCore, request: Request) -> Iterator[bytes]:
    wanted = {value for name, value in request.pairs if name == "family"}
    vhosts = {value for name, value in request.pairs if name == "vhost"}
    if "queue_metrics" in wanted:
        wanted.discard("queue_consumer_count")  # the same metric, and each may be told once
    for family in FAMILIES:
        if family.name in wanted:
            prefix = "rabbitmq_cluster_" if family.cluster else "rabbitmq_detailed_"
            yield from _tell(core, family, prefix, vhosts=vhosts)
    yield from _identity(core)


def _tell(
    core: BrokerCore,
    family: Family,
    prefix: str,
    *,
    added_up: bool = False,
    vhosts: Collection[str] = (),
) -> Iterator[bytes]:
    rows = list(family.rows(core))
    if vhosts:
        rows = [row for row in rows if _vhost(row[0]) is None or _vhost(row[0]) in vhosts]
    for name, kind, text in family.metrics:
        samples = [(labels, values[name]) for labels, values in rows if name in values]
        if added_up:
            samples = [({}, _sum(value for _, value in samples))]
        yield _family(prefix + name, kind, text, samples)


def _vhost(labels: Labels) -> str | None:
    return labels.get("vhost", labels.get("queue_vhost"))


def _sum(values: Iterable[float]) -> float:
    return sum(value for value in values if not math.isnan(value))


def _totals(core: BrokerCore) -> Iterator[bytes]:
    queues = list(all_queues(core))
    channels = [channel for connection in core.connections for channel in connection.channels]
    consumers = sum(len(queue.rota) for queue in queues)
    for name, value, text in (
        ("connections", len(core.connections), "Connections currently open"),
        ("channels", len(channels), "Channels currently open"),
        ("consumers", consumers, "Consumers currently connected"),
        ("queues", len(queues), "Queues available"),
    ):
        yield _family(f"rabbitmq_{name}", "gauge", text, [({}, value)])
    publishers = sum(1 for channel in channels if channel.publisher.published)
    for name, value in (("publishers", publishers), ("consumers", consumers)):
        text = f"Current number of {name}"
        yield _family(f"rabbitmq_global_{name}", "gauge", text, [(_PROTOCOL, value)])


def _global(core: BrokerCore) -> Iterator[bytes]:
    totals: Counter[str] = Counter(core.admin.past_counts())
    for vhost in core.vhosts.values():
        totals.update(Sampler(core).vhost_counts(vhost))
    unrouted = totals["drop_unroutable"] + totals["return_unroutable"]
    totals["routed"] = totals["publish"] - unrouted
    totals["received_confirm"] = totals["confirm"] + _unconfirmed(core)
    for name, counter, text in _GLOBAL:
        samples = [(_PROTOCOL, totals[counter])]
        yield _family(f"rabbitmq_global_{name}", "counter", text, samples)
    for reason, why in _DEAD.items():
        text = f"Total number of messages dead-lettered due to {why}"
        name = f"rabbitmq_global_messages_dead_lettered_{reason}_total"
        yield _family(name, "counter", text, _dead_letters(core, reason))


def _unconfirmed(core: BrokerCore) -> int:
    publishers = [
        channel.publisher for connection in core.connections for channel in connection.channels
    ]
    return sum(each.sequence - each.settled for each in publishers if each.confirming)


def _dead_letters(core: BrokerCore, reason: str) -> Iterator[tuple[Labels, int]]:
    for kind in ("classic", "quorum"):
        if (kind, reason) == ("classic", "delivery_limit"):
            continue
        for strategy in ("at_most_once", "disabled"):
            labels = {"queue_type": f"rabbit_{kind}_queue", "dead_letter_strategy": strategy}
            yield labels, core.dead_lettered[kind, reason, strategy]


def _identity(core: BrokerCore) -> Iterator[bytes]:
    build = {
        "rabbitmq_version": RABBITMQ_VERSION,
        "prometheus_plugin_version": RABBITMQ_VERSION,
        "prometheus_client_version": "",
        "erlang_version": "",
    }
    text = "RabbitMQ & Erlang/OTP version info"
    yield _family("rabbitmq_build_info", "untyped", text, [(build, 1)])
    identity = {
        "rabbitmq_node": NODE,
        "rabbitmq_cluster": str(core.server_properties["cluster_name"]),
        "rabbitmq_cluster_permanent_id": core.admin.parameters.cluster_id,
    }
    text = "RabbitMQ node & cluster identity info"
    yield _family("rabbitmq_identity_info", "untyped", text, [(identity, 1)])


# -- Prometheus's words --------------------------------------------------------------------------
def _family(name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]) -> bytes:
    lines = [f"# TYPE {name} {kind}", f"# HELP {name} {text}"]
    lines += [f"{name}{_braces(labels)} {_number(value)}" for labels, value in samples]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else str(value)


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
