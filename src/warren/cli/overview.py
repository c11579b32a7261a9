"""``warren overview``: how a broker is, on one page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from warren.cli import output
from warren.cli.options import JSON, add_command, open_api
from warren.cli.output import duration, shown, size
from warren.client.management import Management
from warren.errors import ManagementError


def add_parser(commands: Any) -> None:
    add_command(
        commands, "overview", "how a broker is, on one page", _run, JSON, aliases=["status"]
    )


def _run(options: argparse.Namespace) -> int:
    with open_api(options) as api:
        found = api.get("overview", what="show the overview")
        nodes = _nodes(api)
    if options.json:
        output.say_json({**found, "nodes": nodes})
        return 0
    title = f"{found.get('product_name', 'broker')} {found.get('product_version', '')}"
    output.facts(_server(api, found), title=f"{title} at {api.address}")
    output.say("")
    output.facts(_messages(found), title="messages")
    output.say("")
    output.facts(_totals(found), title="there are")
    for node in nodes:
        output.say("")
        output.facts(_node(node), title=f"node {shown(node.get('name'))}")
    if any(node.get("mem_alarm") or node.get("disk_free_alarm") for node in nodes):
        output.say("")
        output.say("publishers are blocked: an alarm is on", "bold red")
    return 0


def _nodes(api: Management) -> list[dict[str, Any]]:
    try:
        return list(api.get("nodes"))
    except ManagementError:  # for users with a tag for monitoring only
        return []


def _server(api: Management, found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "cluster", shown(found.get("cluster_name"))
    yield "you are", api.user
    yield (
        "listens",
        ", ".join(
            f"{shown(each.get('protocol'))} {shown(each.get('ip_address'))}:{each.get('port')}"
            for each in found.get("listeners") or ()
            if each.get("protocol") != "clustering"
        ),
    )


def _messages(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    totals, stats = found.get("queue_totals") or {}, found.get("message_stats") or {}
    for key, word in (("messages_ready", "ready"), ("messages_unacknowledged", "unacked")):
        yield word, f"{totals.get(key, 0):,}"
    for key, word in (
        ("publish", "published"),
        ("confirm", "confirmed"),
        ("deliver_get", "delivered"),
        ("redeliver", "redelivered"),
        ("ack", "acked"),
        ("drop_unroutable", "unroutable"),
    ):
        count, rate = stats.get(key, 0), output.dig(stats, f"{key}_details.rate") or 0
        yield word, f"{count:,} ({rate:,.1f}/s)"


def _totals(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in (found.get("object_totals") or {}).items():
        yield shown(key), f"{value:,}"


def _node(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "running", shown(node.get("running", True))
    if "uptime" in node:
        yield "up for", duration(node["uptime"])
    for used, limit, alarm, word in (
        ("mem_used", "mem_limit", "mem_alarm", "memory"),
        ("disk_free", "disk_free_limit", "disk_free_alarm", "disk free"),
    ):
        if isinstance(node.get(used), int | float) and isinstance(node.get(limit), int | float):
            warning = ", ALARM" if node.get(alarm) else ""
            yield word, f"{size(node[used])} (limit {size(node[limit])}{warning})"
