"""What the management API tells of queues: which there are, and of which kind."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import inf
from typing import Any
from urllib.parse import quote

from warren.client.blocking import BlockingConnection
from warren.client.endpoint import Endpoint
from warren.client.management import Management
from warren.errors import (
    ApiLoginRefused,
    ApiRefused,
    ApiTimedOut,
    ApiUnreachable,
    ApiUntrusted,
    ConnectionLost,
    ManagementError,
    NotManagement,
    OtherBroker,
)
from warren.spark.options import SourceOptions
from warren.spark.queue_info import QueueInfo
from warren.spark.returns import dead_letters, said_limit

#: Without this RabbitMQ adds up each queue's statistics, which takes three times as long.
_COLUMNS = {"columns": "name,type,arguments,auto_delete,exclusive,effective_policy_definition"}
#: A list counts for so long, or for so many times what it took: an idle query asks all the time.
_COUNTS_S, _COUNTS_TIMES, _COUNTS_AT_MOST_S = 1.0, 20.0, 30.0


class Listing:
    """What the management API tells of the vhost's queues.

    It goes and comes back with the broker. So once it has answered, a call that nobody answers is
    a lost connection: who asked may ask again for a while.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        #: The broker's node that we are connected to, and its cluster; "": it does not tell.
        self._node: Endpoint | None = None
        self._cluster = ""
        #: Where it answered last.
        self._answered: Endpoint | None = None
        self._rows: list[QueueInfo] = []
        self._rows_count_until = -inf

    def begin(self, link: BlockingConnection) -> None:
        """What is told from now on is of this broker."""
        self._node = link.endpoint
        self.forget()
        self._cluster = str(link.session.server_properties.get("cluster_name") or "")

    def forget(self) -> None:
        """What was told may not be so any more."""
        self._rows_count_until = -inf

    def queues(self) -> list[QueueInfo]:
        """All of them, without those that belong to one connection: nobody else may even count
        what is in them; as they were a moment ago. Raises ManagementError, ConnectionLost."""
        began = time.monotonic()
        if began > self._rows_count_until:
            rows: list[dict[str, Any]] = self._get(what="list queues")
            self._rows = [_info(row) for row in rows if not row.get("exclusive")]
            now = time.monotonic()
            counts_s = max(_COUNTS_S, min(_COUNTS_AT_MOST_S, _COUNTS_TIMES * (now - began)))
            self._rows_count_until = now + counts_s
        return self._rows

    def queue(self, name: str) -> QueueInfo:
        """One of them; raises ManagementError, ConnectionLost."""
        return _info(self._get(name, what=f"look up queue '{name}'"))

    def _get(self, *name: str, what: str) -> Any:
        """Asked where it may be, one after the other, first where it answered last. What is wrong
        is told of the first that did answer, or of the first."""
        failed: list[tuple[str, ManagementError]] = []
        where = places(self._options, self._node)
        for at in sorted(where, key=lambda each: each != self._answered):
            with management(self._options, at) as api:
                try:
                    answer = self._asked(api, *name, what=what)
                except ManagementError as error:
                    failed.append((api.address, error))
                    if not is_passing(error):
                        break
                else:
                    self._answered = at
                    return answer
        address, first = min(failed, key=lambda each: is_passing(each[1]))
        if self._answered and is_passing(first):
            raise ConnectionLost(address, why(first)) from None
        raise first

    def _asked(self, api: Management, *name: str, what: str) -> Any:
        if not self._options.management and not self._answered:
            self._require_same_broker(api)
        vhost = self._options.endpoints[0].vhost
        return api.get("queues", vhost, *name, what=what, query=_COLUMNS)

    def _require_same_broker(self, api: Management) -> None:
        """Where it is was a guess: raises OtherBroker if that is surely another's.

        Two of one name can't be told apart.
        """
        try:
            told = api.get("overview", what="tell whose it is")
        except ManagementError:
            return  # what is wrong is told by the call that matters
        found = told.get("cluster_name") if isinstance(told, dict) else None
        if found and self._cluster and found != self._cluster:
            raise OtherBroker(api.address, str(found), self._cluster)


def _info(row: Mapping[str, Any]) -> QueueInfo:
    arguments = row.get("arguments") or {}
    return QueueInfo(
        row["name"],
        row.get("type") or arguments.get("x-queue-type") or "classic",
        bool(arguments.get("x-single-active-consumer")),
        bool(row.get("auto_delete")),
        said_limit(row),
        dead_letters(row),
    )


def places(options: SourceOptions, node: Endpoint | None = None) -> list[Endpoint]:
    """Where the management API may be: as it is said, or on the brokers' hosts, first on that of
    the node that we are connected to."""
    if options.management:
        return list(options.management)
    brokers = [*([node] if node else []), *options.endpoints]
    hosts: dict[str, str] = {}
    for broker in brokers:
        hosts.setdefault(broker.host, "https" if broker.tls else "http")
    return [Endpoint(host=host, scheme=scheme, user="") for host, scheme in hosts.items()]


def management(options: SourceOptions, at: Endpoint) -> Management:
    """The management API: with the broker's login, if it has none of its own, and its TLS."""
    amqp = options.endpoints[0]
    login = at if at.user else amqp
    host = f"[{at.host}]" if ":" in at.host else at.host
    url = f"{at.scheme}://{quote(login.user, safe='')}@{host}:{at.address[1]}"
    return Management(
        url,
        password=login.password,
        timeout_s=10.0,
        ca_file=amqp.ca_file,
        certificate=amqp.cert_file,
        key=amqp.key_file,
        verify=amqp.verify,
    )


def is_passing(error: ManagementError) -> bool:
    """Whether the broker, or a proxy before it, may be on its way back."""
    if isinstance(error, ApiRefused):
        return error.status >= 500
    return isinstance(error, ApiUnreachable | ApiTimedOut | NotManagement)


def why(error: ManagementError) -> str:
    """What is wrong, without remedies that are for a command line."""
    match error:
        case ApiUnreachable():
            return f"nothing answers at {error.address}: {error.reason}"
        case ApiTimedOut():
            return f"{error.address} has not answered within {error.timeout_s:g} s"
        case NotManagement():
            return f"{error.address} is no management API: {error.what}"
        case ApiUntrusted():
            return (
                f"the certificate of {error.address} is not to be trusted: {error.reason}; the "
                "option tlsCaFile names the file of its authority"
            )
        case ApiLoginRefused():
            return f"{error.address} does not let user '{error.user}' in: {error.reason}"
    return str(error)
