"""The options of ``format("rabbitmq")``: parsed once into frozen values, unknown ones refused.

Names are compared without case, as Spark does. Where a value can be a secret it never shows in
``repr``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from warren.client.endpoint import HTTP, Endpoint, parse_uri
from warren.errors import ConfigError, QueueMissing
from warren.spark.ledger.paths import whole as whole_path
from warren.spark.secrets import uris

SOURCE = 'format("rabbitmq")'
#: Spark (4.3) has room for them in a table of its catalog, and gives them to nobody.
NOT_KEPT = (
    "a table made with CREATE TABLE keeps no OPTIONS, for Spark drops those of sources written in "
    "Python: use CREATE TEMPORARY VIEW name USING rabbitmq OPTIONS (...), which keeps them"
)


# -- kinds of values -----------------------------------------------------------------------------
def _text(value: str) -> str:
    return value


def _filled(value: str) -> str:
    """Text that says something: without it, another broker or folder would be taken in silence."""
    if not value.strip():
        raise ValueError("it is blank, as when a variable is not set; fill it in or leave it out")
    return value


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if number < least:
            raise ValueError(f"must be at least {least}")
        if most is not None and number > most:
            raise ValueError(f"must be at most {most}")
        return number

    return parse


def _flag(value: str) -> bool:
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError("must be true or false")


def one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value.lower()

    return parse


def _offset(value: str) -> str:
    """Where to begin in a stream: as RabbitMQ's x-stream-offset."""
    text = value.strip().lower()
    if text in ("first", "last", "next") or (text.isascii() and text.isdigit()):
        return text
    raise ValueError("must be first, last, next or an offset")


@dataclass(frozen=True, slots=True)
class Replay:
    """That a batch read begins with what the ledger keeps; of each queue, from an offset on."""

    since: int | None = None


def _replay(value: str) -> Replay | None:
    text = value.strip().lower()
    if text.isascii() and text.isdigit():
        return Replay(int(text))
    if text not in ("true", "false"):
        raise ValueError("must be true, false or an offset")
    return Replay() if text == "true" else None


#: A message id has 255 octets; partition, row and what else tells writes apart take about 50.
_LONGEST_NAME, _LONGEST_ID = 128, 64


def _name(value: str) -> str:
    """A part of message ids."""
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError(f"must be at most {_LONGEST_NAME} octets")
    return value


def _id(value: str) -> str:
    """What message ids begin with."""
    if not 0 < len(value.encode()) <= _LONGEST_ID:
        raise ValueError(f"must be 1 to {_LONGEST_ID} octets")
    return value


def _ledger(value: str) -> str:
    if _filled(value).startswith("~"):
        raise ValueError(
            "write the whole path; ~ is another folder for each user, and executors may be others"
        )
    return whole_path(value)  # by the driver: executors run in folders of their own


_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SPANS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _size(value: str) -> int:
    """Octets: a number, or with a unit as Spark writes it (``64m``)."""
    text = value.strip().lower().removesuffix("ib").removesuffix("b") or value
    unit = text[-1:] if text[-1:] in _UNITS else "b"
    try:
        number = int(text.removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        raise ValueError("must be a whole number, or one with a unit such as 64m") from None
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def span(value: str) -> float:
    """Seconds: a number, or with a unit (``30s``, ``10m``, ``1h``)."""
    text = value.strip().lower()
    unit = next((each for each in sorted(_SPANS, key=len, reverse=True) if text.endswith(each)), "")
    try:
        span = float(text.removesuffix(unit)) * _SPANS.get(unit, 1.0)
    except ValueError:
        raise ValueError("must be a number of seconds, or one with a unit such as 10m") from None
    if not 0 <= span < float("inf"):
        raise ValueError("must be at least 0")
    return span


# -- the table -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, how its text is read, and what it is for."""

    name: str
    parse: Callable[[str], Any]
    doc: str
    default: Any = None
    #: How the default is shown in the docs; None: as it is.
    shown: str | None = None
    secret: bool = False


_OVER = "instead of `uri`; beside one it holds for every broker that is named there"
#: Where the broker is: the same for the source and the sink.
CONNECTION: tuple[Option, ...] = (
    Option("uri", _filled, "`amqp://host:port/vhost`, or `amqps://`, with the "
           "parameters of [the client's URLs](client.md); several, separated by commas, are tried "
           "in order", secret=True),
    Option("url", _filled, "the same, which Spark hides: the one for "
           "`amqp://user:password@host:port/vhost`",
           secret=True),
    Option("host", _filled, _OVER, "127.0.0.1"),
    Option("port", whole(1, 65_535), _OVER, shown="5672, with TLS 5671"),
    Option("vhost", _text, _OVER, "/"),
    Option("user", _filled, "instead of `uri`, or of the name in it", "guest"),
    Option("password", _text, "instead of `uri`, or of the password in it", "guest", secret=True),
    Option("heartbeat", whole(0), "seconds between signs of life; 0: none", 10),
    Option("connectTimeoutMs", whole(1), "how long to wait for a connection", 15_000),
    Option("tls", _flag, "speak TLS", False, shown="true with `amqps://`"),
    Option("tlsCaFile", _filled, "the authority that signed the broker's certificate",
           shown="the system's"),
    Option("tlsCertFile", _filled, "this client's certificate"),
    Option("tlsKeyFile", _filled, "its key"),
    Option("tlsVerify", _flag, "check the broker's certificate and name", True),
)  # fmt: skip

#: What the source knows besides.
READING: tuple[Option, ...] = (
    Option("queues", _text, "names separated by commas; `*`, `?` and `[` make a pattern"),
    Option("ledger", _ledger, "a folder, or a URI, that every executor can reach"),
    Option("managementUri", _filled, "where the management API is, for patterns and for users who "
           "may not configure the queues; several, separated by commas, are tried in order",
           shown="http://host:15672, with TLS https://host:15671", secret=True),
    Option("managementUrl", _filled, "the same as `managementUri`, which Spark hides: the one for "
           "a password", secret=True),
    Option("maxMessagesPerTrigger", whole(1), "the most messages of one micro-batch",
           shown="no limit"),
    Option("maxBytesPerTrigger", _size, "about the most octets of bodies of one micro-batch",
           shown="no limit"),
    Option("minPartitions", whole(1), "tasks to spread the queues over",
           shown="the cores, as far as they are [known](spark.md#on-a-cluster)"),
    Option("prefetch", whole(1, 65_535), "the most unacknowledged messages of one queue; AMQP has "
           "no number above 65535", 20_000),
    Option("drainTimeoutMs", whole(1), "how long a drain waits for messages the broker "
           "announced", 5_000),
    Option("onMissingQueue", one_of("fail", "wait"), "a queue in the list that is not there",
           "fail"),
    Option("ledgerRetention", span, "how long segments are kept after they were needed",
           3600.0, shown="1h"),
    Option("peek", _flag, "`spark.read` only: look at the messages, leave them in the queue",
           False),
    Option("replay", _replay, "`spark.read` only: begin with what the ledger keeps of earlier "
           "reads; or the offset to begin with", shown="false"),
    Option("startingOffset", _offset, "streams only: `first`, `last`, `next` or a number", "first"),
)  # fmt: skip

#: What the sink knows besides: the sink's own module adds the defaults for property columns.
WRITING: tuple[Option, ...] = (
    Option("exchange", _text, "where rows without a column `exchange` go", ""),
    Option("routingKey", _text, "the routing key of rows without a column `routing_key`", ""),
    Option("writeName", _name, "a part of the message ids that the sink makes: tells writes of one "
           "micro-batch apart"),
    Option("writeId", _id, "`df.write` only: what those ids begin with, instead of query and "
           "micro-batch"),
    Option("mandatory", _flag, "a row that no queue takes is noticed", True),
    Option("onUnroutable", one_of("fail", "drop", "deadletter"), "what to do with such a row",
           "fail"),
    Option("deadLetterExchange", _text, "where they go with `onUnroutable=deadletter`"),
    Option("confirmWindow", whole(1), "the most unconfirmed messages of a task", 5_000),
    Option("confirmTimeoutMs", whole(1), "how long to wait for a confirm", 60_000),
    Option("progress", _flag, "say on stderr how the write goes", False),
)  # fmt: skip


# -- reading them --------------------------------------------------------------------------------
def read_options(
    given: Mapping[str, str], known: Iterable[Option], *, others: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Values by option name, defaults filled in; raises ConfigError for what can't be used.

    ``others`` are options that belong elsewhere, in lower case, and the words that say where.
    """
    if "provider" in given_names(given):  # what Spark asks a table's columns with
        raise ConfigError("CREATE TABLE", NOT_KEPT, SOURCE)
    table = {option.name.lower(): option for option in known}
    values: dict[str, Any] = {option.name: option.default for option in table.values()}
    for name, text in given.items():
        option = table.get(name.lower())
        if option is None:
            if name.lower() in _SPARKS_OWN:
                continue
            problem = (others or {}).get(name.lower()) or _unknown(name, table.values())
            raise ConfigError(name, problem, SOURCE)
        try:
            values[option.name] = option.parse(text)
        except ValueError as error:
            shown = "the value" if option.secret else repr(text)
            raise ConfigError(option.name, f"{shown} can't be used: {error}", SOURCE) from None
    return values


#: Spark passes these along by itself.
_SPARKS_OWN = {"path", "paths", "inferschema", "checkpointlocation", "queryname", "outputmode"}


def _unknown(name: str, known: Iterable[Option]) -> str:
    names = {option.name.lower(): option.name for option in known}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean '{names[near[0]]}'?" if near else f"there are {', '.join(names.values())}"
    return f"no such option; {hint}"


def given_names(given: Mapping[str, str]) -> set[str]:
    """Lower-case names of the options that were set."""
    return {name.lower() for name in given}


#: Options of a connection, and what they are called there.
_WHERE = {
    "host": "host",
    "port": "port",
    "vhost": "vhost",
    "user": "user",
    "password": "password",
    "tls": "tls",
    "heartbeat": "heartbeat_s",
    "connectTimeoutMs": "connect_timeout_s",
    "tlsCaFile": "ca_file",
    "tlsCertFile": "cert_file",
    "tlsKeyFile": "key_file",
    "tlsVerify": "verify",
}
#: Those whose defaults hold where neither they nor the URI say anything.
_UNSAID = ("heartbeat", "connectTimeoutMs")


def endpoints(given: Mapping[str, str], values: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    """The brokers to try, in order; what is set beside a ``uri`` wins over what it says."""
    named = given_names(given)
    values = {**values, "connectTimeoutMs": values["connectTimeoutMs"] / 1000}
    silent = {name: values[option] for option, name in _WHERE.items() if option in _UNSAID}
    over = {name: values[option] for option, name in _WHERE.items() if option.lower() in named}
    if values["uri"] and values["url"]:
        raise ConfigError("url", "is the same as 'uri': give one of them", SOURCE)
    said = values["uri"] or values["url"] or ""
    option = "uri" if values["uri"] else "url"
    bases = [
        base for uri in (uris(said) if said else []) for base in _brokers(uri, option, **silent)
    ]
    return tuple(base.but(**over) for base in bases or [Endpoint(**silent)])


def _brokers(uri: str, option: str, **how: Any) -> list[Endpoint]:
    """Those that a URI names; what is wrong with it is told as what an option says."""
    try:
        return parse_uri(uri, option, **how)
    except ConfigError as error:
        if error.source == option:  # a parameter of it
            raise
        raise ConfigError(error.option, error.problem, SOURCE) from None


def _management(values: Mapping[str, Any], broker: Endpoint) -> tuple[Endpoint, ...]:
    """Where it may be, in order; a user is "" where the URI names none, and logs in as at the
    ``broker``."""
    uri, url = values["managementUri"], values["managementUrl"]
    if uri and url:
        raise ConfigError(
            "managementUrl", "is the same as 'managementUri': give one of them", SOURCE
        )
    option = "managementUri" if uri else "managementUrl"
    how = {"kind": HTTP, "user": "", "password": ""}
    said = uris(uri or url) if uri or url else []
    found = [each for text in said for each in _brokers(text, option, **how)]
    return tuple(_with_password(each, broker, option) for each in found)


def _with_password(management: Endpoint, broker: Endpoint, option: str) -> Endpoint:
    user = management.user
    if not user or management.password:
        return management
    known = {"guest": "guest", broker.user: broker.password}
    if user not in known:
        problem = f"names user '{user}' without a password; such as http://{user}:PASSWORD@host"
        raise ConfigError(option, problem, SOURCE)
    return management.but(password=known[user])


#: Of the source, what is said to whoever gives it an option of the sink's.
_FOR_THE_SINK = {
    option.name.lower(): "is for what is written (df.write, writeStream), and this is what is "
    "read; drop it"
    for option in WRITING
}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the source was told; pickles to executors, shows no secret."""

    endpoints: tuple[Endpoint, ...]
    queues: tuple[str, ...]
    ledger: str | None
    #: Of the management API, as far as it is said.
    management: tuple[Endpoint, ...]
    max_messages: int | None
    max_bytes: int | None
    min_partitions: int | None
    prefetch: int
    drain_timeout_s: float
    wait_for_queues: bool
    retention_s: float
    peek: bool
    replay: Replay | None
    starting_offset: str

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SourceOptions:
        values = read_options(given, CONNECTION + READING, others=_FOR_THE_SINK)
        queues = tuple(name.strip() for name in (values["queues"] or "").split(","))
        if not any(queues):
            problem = "name the queues to read: .option('queues', 'a,b.*')"
            if not given_names(given) - _SPARKS_OWN:
                problem += f"; {NOT_KEPT}"
            raise ConfigError("queues", problem, SOURCE)
        if not all(queues):
            problem = f"{values['queues']!r} has a comma with no name before or behind it"
            raise ConfigError("queues", problem, SOURCE)
        if values["peek"] and values["replay"]:
            raise ConfigError("replay", "needs the ledger, and peek does without", SOURCE)
        brokers = endpoints(given, values)
        return cls(
            endpoints=brokers,
            queues=queues,
            ledger=values["ledger"],
            management=_management(values, brokers[0]),
            max_messages=values["maxMessagesPerTrigger"],
            max_bytes=values["maxBytesPerTrigger"],
            min_partitions=values["minPartitions"],
            prefetch=values["prefetch"],
            drain_timeout_s=values["drainTimeoutMs"] / 1000,
            wait_for_queues=values["onMissingQueue"] == "wait",
            retention_s=values["ledgerRetention"],
            peek=values["peek"],
            replay=values["replay"],
            starting_offset=values["startingOffset"],
        )

    def means(self, queue: str) -> bool:
        """Whether the option ``queues`` names this queue, or has a pattern that finds it."""
        return any(fnmatchcase(queue, name) for name in self.queues)

    def require_there(self, queue: str) -> None:
        """A queue is gone: raises QueueMissing if it was named and must be there.

        One that a pattern found may go as it came.
        """
        if queue in self.queues and not self.wait_for_queues:
            raise QueueMissing(queue, self.endpoints[0].vhost)
