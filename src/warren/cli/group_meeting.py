"""Where a consumer group meets: reading its state there, and what its broker says."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import sys
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from warren.cli.options import open_api
from warren.client.address import parse_urls
from warren.client.management import Management
from warren.errors import ConfigError, ConnectError, GroupError, ManagementError, NoSuchGroup
from warren.groups.coordination.base import Coordinator, GroupState, QueueState, coordinator_for

DEFAULT = "amqp://localhost"
T = TypeVar("T")


class GroupCommandFailed(GroupError):
    """The command was right, and it failed."""

    exit_code: ClassVar[int] = 1


def url_of(options: argparse.Namespace) -> str:
    return options.coordinator or os.environ.get("WARREN_COORDINATOR") or DEFAULT


def shown(options: argparse.Namespace) -> str:
    """Where the group meets, without a password."""
    scheme, _, rest = url_of(options).partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def open_at(options: argparse.Namespace, group: str) -> Coordinator:
    url = url_of(options)
    try:
        return coordinator_for(url, group)
    except ConfigError as error:
        raise ConfigError("--coordinator", error.problem) from None


async def read(options: argparse.Namespace, group: str) -> GroupState | None:
    coordinator = open_at(options, group)
    try:
        return await coordinator.read()
    finally:
        await coordinator.close()


def state_of(options: argparse.Namespace) -> GroupState:
    state = run(options, read(options, options.group))
    if state is None:
        raise _nobody(options)
    return state


def _nobody(options: argparse.Namespace) -> GroupCommandFailed:
    names: list[str] = []
    with suppress(ManagementError, GroupError):
        names = [name for name in names_of(options) if name != options.group]
    hint = near(options.group, names) if names else "; start a member first"
    return GroupCommandFailed(f"nobody is in group '{options.group}' at {shown(options)}{hint}")


def run(options: argparse.Namespace, work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(options.timeout_s):
            return await work

    try:
        return asyncio.run(bounded())
    except NoSuchGroup:
        raise _nobody(options) from None
    except ConnectError as error:
        raise GroupCommandFailed(
            f"{error}: --coordinator or WARREN_COORDINATOR says where the group meets"
        ) from None
    except TimeoutError:
        raise GroupCommandFailed(
            f"{shown(options)} has not answered within {options.timeout_s:g} s: "
            "--timeout-s gives it longer"
        ) from None


def names_of(options: argparse.Namespace) -> list[str]:
    """The groups that there are."""
    url = url_of(options)
    if url.startswith("etcd"):
        from warren.groups.coordination.etcd import list_groups

        return sorted(run(options, list_groups(url)))
    if not url.startswith("amqp"):
        open_at(options, "")  # tells what is wrong with it
    with _management(options) as api:
        vhost = parse_urls(url)[0].vhost
        rows = api.get("queues", vhost, query={"columns": "name"}, what="list groups")
    head, tail = "warren.", ".dispatcher"
    names = (str(row["name"]) for row in rows)
    return sorted(
        name.removeprefix(head).removesuffix(tail)
        for name in names
        if name.startswith(head) and name.endswith(tail)
    )


def _management(options: argparse.Namespace) -> Management:
    """The management API: as told, or that of the broker at which the group meets."""
    if not (options.url or os.environ.get("WARREN_URL")):
        address = parse_urls(url_of(options))[0]
        login = urlsplit(url_of(options)).netloc.rpartition("@")[0] or "guest:guest"
        host = f"[{address.host}]" if ":" in address.host else address.host
        scheme = "https" if address.tls is not None else "http"
        options.url = f"{scheme}://{login}@{host}:{address.port + 10_000}"
    return open_api(options)


def fresh(options: argparse.Namespace, state: GroupState) -> GroupState:
    """The state with the broker's newest figures, where it can be asked for them.

    With etcd nobody knows the broker, unless ``--url`` names it: then they are as old as the
    dispatcher's last look.
    """
    is_told = bool(options.url or os.environ.get("WARREN_URL"))
    url = url_of(options)
    if not is_told and not url.startswith("amqp"):
        return state
    vhost = parse_urls(url)[0].vhost if url.startswith("amqp") else "/"
    columns = "name,messages,consumers,head_message_timestamp"
    try:
        with _management(options) as api:
            rows = api.get("queues", vhost, query={"columns": columns}, what="ask for figures")
    except ManagementError as error:
        if is_told:
            print(f"warren: figures may be some seconds old: {error}", file=sys.stderr)
        return state
    found = {str(row["name"]): row for row in rows}
    queues = (_counted(each, found.get(each.queue, {})) for each in state.queues)
    return state._replace(queues=tuple(queues))


def _counted(queue: QueueState, row: dict[str, Any]) -> QueueState:
    """A queue as the broker's row has it; an empty one, or one without figures, changes nothing."""
    messages, stamp = row.get("messages"), row.get("head_message_timestamp")
    if not isinstance(messages, int):
        return queue
    return queue._replace(
        messages=messages,
        consumers=row.get("consumers"),
        oldest=float(stamp) if isinstance(stamp, int | float) else None,
    )


def near(name: str, known: Iterable[str]) -> str:
    """The name that was meant, or those there are."""
    names = sorted(known)
    if close := difflib.get_close_matches(name, names, 1):
        return f"; did you mean '{close[0]}'?"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"; there are: {', '.join(names[:10])}{more}" if names else "; there are none"
