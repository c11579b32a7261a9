"""Which queues a group has, and what the broker says of them."""

from __future__ import annotations

import asyncio
import fnmatch
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from warren.client.address import Address, parse_urls
from warren.client.kinds import QueueKind, queue_kind
from warren.client.management import Management
from warren.errors import ConfigError, ManagementError, NotFound, Refusal
from warren.groups.roster import QueueFacts

if TYPE_CHECKING:
    from warren.client import Connection

log = logging.getLogger(__name__)

#: Where the management API is if nobody says so: as far from the AMQP port as by default.
_PORT_DISTANCE = 10_000
#: A group's own queues and the broker's: nobody's work, however wide a pattern is.
_OWN = ("warren.", "amq.")
_COLUMNS = "name,type,arguments,messages,consumers,exclusive,head_message_timestamp"


class Discovery:
    """Finds the queues of a list of names and patterns (``orders.*``: ``*``, ``?``, ``[ab]``).

    Through the management API where it answers; names alone can also be looked up over AMQP.
    """

    def __init__(self, queues: Sequence[str], url: str, management: str | None = None) -> None:
        self.names = tuple(dict.fromkeys(each for each in queues if not is_pattern(each)))
        self.patterns = tuple(dict.fromkeys(each for each in queues if is_pattern(each)))
        addresses = parse_urls(url)
        self._vhost = addresses[0].vhost
        self._urls = [management] if management else [_guess(url, each) for each in addresses]
        self._asked_for = management is not None
        self._warned = False
        self._problems: dict[str, str | None] = {}

    async def find(self, connection: Connection) -> dict[str, QueueFacts]:
        """All queues there are now, and those names that are not there, with the reason.

        Raises:
            ManagementError: there are patterns, and the management API does not answer.
        """
        try:
            listed = await asyncio.to_thread(self._list)
        except ManagementError as error:
            if self.patterns:
                raise
            if self._asked_for and not self._warned:
                log.warning("%s; looking queues up over AMQP", error)
                self._warned = True
            return await self._look_up(connection)
        return self._choose(listed)

    async def check(self, connection: Connection) -> dict[str, QueueFacts]:
        """As ``find``, for the start: says what to do if patterns can't be used.

        Raises:
            ConfigError: there are patterns, and the management API does not answer.
        """
        try:
            return await self.find(connection)
        except ManagementError as error:
            raise ConfigError(
                "queues",
                f"'{self.patterns[0]}' is a pattern and needs the management API: {error}. Give "
                "its URL (management=...), or list the queues by name",
            ) from None

    def _list(self) -> list[dict[str, Any]]:
        first = self._urls[0]
        for url in list(self._urls):
            try:
                with Management(url, timeout_s=5.0) as management:
                    found = management.get("queues", self._vhost, query={"columns": _COLUMNS})
                return found if isinstance(found, list) else []
            except ManagementError:
                self._urls.append(self._urls.pop(0))  # the next host, if there are several
                if url == self._urls[-1] and self._urls[0] == first:
                    raise
        return []

    def _choose(self, listed: Iterable[dict[str, Any]]) -> dict[str, QueueFacts]:
        by_name = {each["name"]: each for each in listed}
        facts = {
            name: _facts(by_name[name]) if name in by_name else _missing(name)
            for name in self.names
        }
        for name, each in by_name.items():
            if name not in facts and self._matches(name) and not each.get("exclusive"):
                facts[name] = _facts(each)
        return facts

    def _matches(self, name: str) -> bool:
        return any(matches(pattern, name) for pattern in self.patterns)

    async def _look_up(self, connection: Connection) -> dict[str, QueueFacts]:
        facts = {}
        channel = await connection.channel(prefetch=0, confirms=False)
        for name in self.names:
            try:
                info = await channel.declare_queue(name, passive=True)
                problem = await self._problem_of(connection, name)
                facts[name] = QueueFacts(info.messages, info.consumers, problem)
            except NotFound:
                facts[name] = _missing(name)
                channel = await connection.channel(prefetch=0, confirms=False)
            except Refusal as refusal:  # such as a queue that is exclusive to somebody
                facts[name] = QueueFacts(problem=str(refusal))
                channel = await connection.channel(prefetch=0, confirms=False)
        await channel.close()
        return facts

    async def _problem_of(self, connection: Connection, name: str) -> str | None:
        """Why a queue can't be one member's; asked once, for a queue's kind stays."""
        if name not in self._problems:
            try:
                kind = await queue_kind(connection, name)
            except NotFound:
                raise
            except Refusal as refusal:  # the user may not declare it: then nobody can tell
                log.warning(
                    "the kind of queue %s is not known: %s. It is worked on as a classic one; if "
                    "it is a quorum queue without a single active consumer, nothing keeps a second "
                    "consumer out. Give the management API's URL (management=...), or the "
                    "permission to configure the queue, and it is found out",
                    name,
                    refusal,
                )
                self._problems[name] = None
            else:
                self._problems[name] = _problem(kind)
        return self._problems[name]


def is_pattern(queue: str) -> bool:
    return any(letter in queue for letter in "*?[")


def matches(wanted: str, queue: str) -> bool:
    """Whether a queue is the one of this name, or fits this pattern (``*``, ``?``, ``[ab]``)."""
    if wanted == queue:
        return True
    fits = is_pattern(wanted) and fnmatch.fnmatchcase(queue, wanted)
    return fits and not queue.startswith(_OWN)


def _missing(name: str) -> QueueFacts:
    return QueueFacts(problem=f"there is no queue '{name}'")


def _facts(each: dict[str, Any]) -> QueueFacts:
    arguments = each.get("arguments") or {}
    single_active = bool(arguments.get("x-single-active-consumer"))
    problem = _problem(QueueKind(each.get("type") or "classic", single_active))
    stamp = each.get("head_message_timestamp")
    oldest = float(stamp) if isinstance(stamp, int | float) else None
    return QueueFacts(each.get("messages"), each.get("consumers"), problem, oldest)


def _problem(kind: QueueKind) -> str | None:
    if kind.type == "stream":
        return "it is a stream: it has no single consumer"
    if kind.one_consumer_by is None:
        return (
            f"a {kind.type} queue does not keep a second consumer out unless it is declared with "
            "x-single-active-consumer"
        )
    return None


def _guess(url: str, address: Address) -> str:
    scheme = "https" if address.tls is not None else "http"
    login = urlsplit(url).netloc.rpartition("@")[0] or "guest:guest"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{scheme}://{login}@{host}:{address.port + _PORT_DISTANCE}"
