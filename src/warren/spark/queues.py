"""Which queues there are, what kind they are, and how many messages wait in them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from warren.amqp import methods as m
from warren.client.blocking import BlockingChannel, BlockingConnection
from warren.client.endpoint import Endpoint
from warren.client.management import Management
from warren.errors import ConfigError, ManagementError, NotFound, NotSingleActive, QueueMissing
from warren.spark.options import SOURCE, SourceOptions
from warren.spark.plan import is_pattern, needs_listing
from warren.spark.tap import EXCLUSIVE, SINGLE_ACTIVE

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """What is known of a queue; kind "" if nobody could tell."""

    name: str
    kind: str = ""
    single_active: bool = False

    @property
    def mode(self) -> str:
        """How a drain holds it alone; raises NotSingleActive."""
        if self.single_active:
            return SINGLE_ACTIVE
        if self.kind == "quorum":
            raise NotSingleActive(self.name)
        return EXCLUSIVE


class Catalog:
    """The queues that the option ``queues`` means, asked anew each time: new ones are found."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._known: dict[str, QueueInfo] = {}
        self._deaf = False

    def queues(self) -> dict[str, QueueInfo]:
        names = self._options.queues
        if needs_listing(names) or (not self._deaf and not self._known.keys() >= set(names)):
            self._ask(needed=needs_listing(names))
        plain = {
            name: self._known.get(name) or QueueInfo(name) for name in names if not is_pattern(name)
        }
        patterns = [name for name in names if is_pattern(name)]
        found = {
            name: info
            for name, info in self._known.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        }
        return {**found, **plain}

    def _ask(self, *, needed: bool) -> None:
        try:
            self._known = {info.name: info for info in list_queues(self._options)}
        except ManagementError as error:
            if needed:
                raise ConfigError(
                    "queues",
                    f"a pattern needs the management API, and it can't be asked ({error}): say "
                    "where it is with the option managementUri, or name the queues one by one",
                    SOURCE,
                ) from None
            self._deaf = True
            log.info("no management API (%s): the kinds of queues are not known", error)


def list_queues(options: SourceOptions) -> Iterable[QueueInfo]:
    """All queues of the vhost, by the management API; raises ManagementError."""
    vhost = options.endpoints[0].vhost
    with _management(options) as api:
        rows: list[dict[str, Any]] = api.get("queues", vhost, what="list queues")
    for row in rows:
        arguments = row.get("arguments") or {}
        yield QueueInfo(
            row["name"],
            row.get("type") or arguments.get("x-queue-type") or "classic",
            bool(arguments.get("x-single-active-consumer")),
        )


def _management(options: SourceOptions) -> Management:
    amqp = options.endpoints[0]
    at = options.management_uri or Endpoint(host=amqp.host, scheme="http", port=None)
    own_login = options.management_uri is not None and at.user != "guest"
    login = at if own_login else amqp
    host = f"[{at.host}]" if ":" in at.host else at.host
    url = f"{at.scheme}://{quote(login.user, safe='')}@{host}:{at.address[1]}"
    return Management(url, password=login.password, timeout_s=10.0, ca_file=amqp.ca_file)


def count_ready(link: BlockingConnection, queues: Sequence[str]) -> dict[str, int | None]:
    """Ready messages of each queue, None where it is not there; asked all at once."""
    counts: dict[str, int | None] = {}
    names = list(queues)
    while names:
        channel: BlockingChannel = link.channel()
        for name in names:
            channel.send(m.QueueDeclare(queue=name, passive=True))
        try:
            while names:
                counts[names[0]] = channel.expect(m.QueueDeclareOk).message_count
                names.pop(0)
            channel.close()
        except NotFound:
            # The channel is gone, and with it the questions behind this one.
            counts[names.pop(0)] = None
    return counts


def require_there(options: SourceOptions, counts: Mapping[str, int | None]) -> dict[str, int]:
    """Only those that are there; raises QueueMissing for one that was named and must be."""
    for queue, count in counts.items():
        if count is None and queue in options.queues and not options.wait_for_queues:
            raise QueueMissing(queue, options.endpoints[0].vhost)
    return {queue: count for queue, count in counts.items() if count is not None}
