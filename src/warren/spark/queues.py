"""Which queues there are, what kind they are, and how many messages wait in them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from warren.client.blocking import BlockingConnection
from warren.client.blocking_questions import count_ready, queue_kind
from warren.client.blocking_reader import EXCLUSIVE, SINGLE_ACTIVE
from warren.client.endpoint import Endpoint
from warren.client.management import Management
from warren.errors import (
    ApiLoginRefused,
    ApiRefused,
    ApiTimedOut,
    ApiUnreachable,
    ApiUntrusted,
    ConfigError,
    ConnectionLost,
    KindUnknown,
    ManagementError,
    NotFound,
    NotManagement,
    NotSingleActive,
    OtherBroker,
    PreconditionFailed,
    QueueAutoDeletes,
    QueueMissing,
)
from warren.spark.options import SOURCE, SourceOptions
from warren.spark.plan import is_pattern
from warren.spark.returns import dead_letters, said_limit, warn_of_limit
from warren.spark.stream import STREAM

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """What is known of a queue; kind "" if it is not there."""

    name: str
    kind: str = ""
    single_active: bool = False
    auto_delete: bool = False
    #: As far as it is said: after how many returns a quorum queue drops a message.
    delivery_limit: int | None = None
    #: What it drops goes to a dead-letter exchange.
    dead_letters: bool = False

    @property
    def counts(self) -> bool:
        """May it count deliveries? Of one that is not there yet nobody knows."""
        return self.kind != "classic"

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
        self._listing = Listing(options)
        self._known: dict[str, QueueInfo] = {}
        self._warned = False
        #: Quorum queues that were looked at for a delivery limit.
        self._weighed: set[str] = set()
        #: Queues whose node is down.
        self._down: set[str] = set()

    def queues(self, link: BlockingConnection) -> dict[str, QueueInfo]:
        """All of them; a queue that is not there yet has no kind.

        Raises QueueAutoDeletes, KindUnknown.
        """
        self._listing.cluster = str(link.session.server_properties.get("cluster_name") or "")
        names = [name for name in self._options.queues if not is_pattern(name)]
        patterns = [name for name in self._options.queues if is_pattern(name)]
        if patterns:
            self._list(patterns)
        for name in names:
            if name not in self._known or not self._known[name].kind:
                self._known[name] = self._ask(link, name)
        self._require_lasting()
        self._warn_of_limits(link)
        if not self._known and not self._warned:
            log.warning("no queue matches %s yet", ", ".join(patterns))
            self._warned = True
        return {name: self._known[name] for name in sorted(self._known)}

    def kinds(self, link: BlockingConnection, names: Iterable[str]) -> dict[str, QueueInfo]:
        """What is known of these queues, whether the option means them or not; after ``queues``.

        Raises KindUnknown.
        """
        return {name: self._known.get(name) or self._ask(link, name) for name in names}

    def ready(self, link: BlockingConnection) -> dict[str, int]:
        """Ready messages of those that are there, streams aside; after ``queues``.

        A queue whose node is down has none for anybody until it is back: that is told once. One
        that is gone may come back as another kind, so its kind is forgotten.
        Raises QueueMissing for one that was named and must be there.
        """
        plain = [name for name, info in self._known.items() if info.kind != STREAM]
        ready: dict[str, int] = {}
        for name, count in count_ready(link, sorted(plain)).items():
            if isinstance(count, int):
                ready[name] = count
                self._down.discard(name)
            elif count is not None:
                ready[name] = 0
                if name not in self._down:
                    log.warning("left out until it is back: %s", count)
                self._down.add(name)
            else:
                self._known[name] = QueueInfo(name)
                self.require_there(name)
        return ready

    def require_there(self, name: str) -> None:
        """A queue is gone: raises QueueMissing if it was named and must be there."""
        if name in self._options.queues and not self._options.wait_for_queues:
            raise QueueMissing(name, self._options.endpoints[0].vhost)

    def _list(self, patterns: list[str]) -> None:
        """New queues of the patterns; those that are gone go."""
        try:
            found = {info.name: info for info in self._listing.queues()}
        except ManagementError as error:
            raise ConfigError(
                "queues",
                f"a pattern needs the management API, which can't be asked ({why(error)}): say "
                "where it is with the option managementUrl, or name the queues one by one",
                SOURCE,
            ) from None
        plain = {name: info for name, info in self._known.items() if name in self._options.queues}
        self._known = {
            name: info
            for name, info in found.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        } | plain

    def _require_lasting(self) -> None:
        for name, info in self._known.items():
            if info.auto_delete:
                wanted = self._options.queues
                by = "" if name in wanted else next(p for p in wanted if fnmatchcase(name, p))
                raise QueueAutoDeletes(name, by)

    def _warn_of_limits(self, link: BlockingConnection) -> None:
        """Once a queue; to look gives messages back once, and no more."""
        quorum = {name for name, info in self._known.items() if info.kind == "quorum"}
        for name in sorted(quorum - self._weighed):
            if not self._known[name].dead_letters and not self._options.peek:
                said = self._known[name].delivery_limit
                warn_of_limit(name, said, link.session.server_properties)
        self._weighed |= quorum

    def _ask(self, link: BlockingConnection, name: str) -> QueueInfo:
        try:
            kind = queue_kind(link, name)
        except NotFound:
            return QueueInfo(name)
        except PreconditionFailed:
            return self._look_up(name, cut=True)
        if kind is None:  # users who only read may not configure queues, so they are not told
            return self._look_up(name)
        return QueueInfo(
            name,
            kind.type,
            kind.single_active,
            kind.auto_delete,
            kind.delivery_limit,
            kind.dead_letters,
        )

    def _look_up(self, name: str, *, cut: bool = False) -> QueueInfo:
        try:
            return self._listing.queue(name)
        except ManagementError as error:
            user = self._options.endpoints[0].user
            raise KindUnknown(name, user, why(error), cut) from None


class Listing:
    """What the management API tells of the vhost's queues.

    It goes and comes back with the broker. So once it has answered, a call that nobody answers is
    a lost connection: who asked may ask again for a while.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._answered = False
        #: The broker's, as AMQP tells it; "": it does not.
        self.cluster = ""

    def queues(self) -> list[QueueInfo]:
        """All of them, without those that belong to one connection: nobody else may even count
        what is in them. Raises ManagementError, ConnectionLost."""
        rows: list[dict[str, Any]] = self._get(what="list queues")
        return [_info(row) for row in rows if not row.get("exclusive")]

    def queue(self, name: str) -> QueueInfo:
        """One of them; raises ManagementError, ConnectionLost."""
        return _info(self._get(name, what=f"look up queue '{name}'"))

    def _get(self, *name: str, what: str) -> Any:
        vhost = self._options.endpoints[0].vhost
        with management(self._options) as api:
            if self._options.management_uri is None and not self._answered:
                self._require_same_broker(api)
            try:
                answer = api.get("queues", vhost, *name, what=what)
            except ManagementError as error:
                if self._answered and is_passing(error):
                    raise ConnectionLost(api.address, why(error)) from None
                raise
        self._answered = True
        return answer

    def _require_same_broker(self, api: Management) -> None:
        """Where it is was a guess: raises OtherBroker if that is surely another's.

        Two of one name can't be told apart.
        """
        try:
            told = api.get("overview", what="tell whose it is")
        except ManagementError:
            return  # what is wrong is told by the call that matters
        found = told.get("cluster_name") if isinstance(told, dict) else None
        if found and self.cluster and found != self.cluster:
            raise OtherBroker(api.address, str(found), self.cluster)


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


def management(options: SourceOptions) -> Management:
    """The management API: with the broker's login, if it has none of its own, and its TLS."""
    amqp = options.endpoints[0]
    scheme = "https" if amqp.tls else "http"
    at = options.management_uri or Endpoint(host=amqp.host, scheme=scheme)
    own_login = options.management_uri is not None and at.user != "guest"
    login = at if own_login else amqp
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
