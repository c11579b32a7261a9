"""What the sink was told: options and columns, checked before anything is sent."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warren.client.blocking_publisher import PublishRules
from warren.client.endpoint import Endpoint
from warren.client.publish_columns import ValueRefused, encode_column
from warren.errors import ConfigError
from warren.spark.columns import BY_NAME, WRITABLE
from warren.spark.options import (
    CONNECTION,
    NOT_KEPT,
    READING,
    SOURCE,
    WRITING,
    Option,
    endpoints,
    given_names,
    one_of,
    read_options,
    whole,
)
from warren.spark.sent_on import cut

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


#: Options that stand in for a property column, and where the column has no value.
DEFAULTS: dict[str, Option] = {
    "content_type": Option("contentType", str, "such as `application/json`"),
    "content_encoding": Option("contentEncoding", str, "such as `gzip`"),
    "delivery_mode": Option("deliveryMode", whole(1), "2 is persistent, 1 is not", 2),
    "priority": Option("priority", whole(0), "0 to 255"),
    "correlation_id": Option("correlationId", str, "what the messages are an answer to"),
    "reply_to": Option("replyTo", str, "where answers go"),
    "expiration": Option("expiration", str, "milliseconds, as text"),
    "type": Option("type", str, "what kind of messages they are"),
    "user_id": Option("userId", str, "must be the user who is logged in"),
    "app_id": Option("appId", str, "which program publishes"),
}

#: All that the sink knows besides where the broker is.
SINK: tuple[Option, ...] = (
    *WRITING,
    Option("blockedTimeoutMs", whole(1), "how long to wait for a broker that is short of "
           "memory or disk", 300_000),
    Option("reconnectTimeoutMs", whole(0), "how long to try to reach a broker that has gone "
           "away", 60_000),
    Option("retries", whole(0), "how often in a row to try a message again that the broker "
           "refuses", 8),
    Option("onTooLong", one_of("fail", "shorten"), "what to do with a text of more than 255 "
           "octets, or headers that leave no room in a frame", "fail"),
    *DEFAULTS.values(),
)  # fmt: skip


#: Where the broker is, too: taken, so that source and sink can be told so in the same words.
_MANAGEMENT = tuple(option for option in READING if option.name.startswith("management"))
_FOR_THE_SOURCE = {
    option.name.lower(): "is for what is read (spark.read, readStream), and this is what is "
    "written; drop it"
    for option in READING
}


#: What to do about a text that is too long, unless it is an exchange's name.
SHORTEN = "option onTooLong=shorten makes it fit"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the sink was told; pickles to executors, shows no secret."""

    endpoints: tuple[Endpoint, ...]
    exchange: str
    routing_key: str
    #: Tells writes of one micro-batch apart, where nothing else does.
    write_name: str | None
    #: Stands for query and micro-batch, where Spark does not tell them to the task.
    write_id: str | None
    mandatory: bool
    #: What is too long is made to fit.
    shorten: bool
    #: How the write goes is said on stderr.
    progress: bool
    rules: PublishRules
    #: Property to its encoded value, for rows that have none of their own.
    constants: Mapping[str, bytes]

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SinkOptions:
        values = read_options(given, CONNECTION + SINK + _MANAGEMENT, others=_FOR_THE_SOURCE)
        dead_letters = _dead_letters(values, given_names(given))
        shorten = values["onTooLong"] == "shorten"
        return cls(
            endpoints=endpoints(given, values),
            exchange=_short("exchange", values["exchange"]),
            routing_key=cut(values["routingKey"]) or ""
            if shorten
            else _short("routingKey", values["routingKey"], f"; {SHORTEN}"),
            write_name=values["writeName"],
            write_id=values["writeId"],
            mandatory=values["mandatory"],
            shorten=shorten,
            progress=values["progress"],
            rules=PublishRules(
                window=values["confirmWindow"],
                confirm_timeout_s=values["confirmTimeoutMs"] / 1000,
                blocked_timeout_s=values["blockedTimeoutMs"] / 1000,
                reconnect_s=values["reconnectTimeoutMs"] / 1000,
                retries=values["retries"],
                unroutable=values["onUnroutable"],
                dead_letter_exchange=dead_letters,
            ),
            constants=_constants(values),
        )


def _dead_letters(values: Mapping[str, Any], named: set[str]) -> str:
    """The exchange for rows that no queue takes; "": there is none."""
    wanted = values["onUnroutable"] == "deadletter"
    if wanted and not values["deadLetterExchange"]:
        raise ConfigError("onUnroutable", "deadletter needs a deadLetterExchange", SOURCE)
    if not values["mandatory"] and "onunroutable" in named:
        raise ConfigError("onUnroutable", "needs mandatory=true, which is the default", SOURCE)
    if values["deadLetterExchange"] and not wanted:
        problem = "needs onUnroutable=deadletter and mandatory=true: no row would go there"
        raise ConfigError("deadLetterExchange", problem, SOURCE)
    return _short("deadLetterExchange", values["deadLetterExchange"] or "")


def _short(name: str, text: str, remedy: str = "") -> str:
    """A text of as many octets as an address may have."""
    if len(text.encode()) > 255:
        problem = f"has {len(text.encode())} octets; 255 is the most{remedy}"
        raise ConfigError(name, problem, SOURCE)
    return text


def _constants(values: Mapping[str, Any]) -> dict[str, bytes]:
    constants = {}
    for name, option in DEFAULTS.items():
        value = values[option.name]
        if value is not None:
            try:
                constants[name] = encode_column(name, [value])[0]
            except ValueRefused as refused:
                raise ConfigError(option.name, refused.problem, SOURCE) from None
    return constants


# -- columns -------------------------------------------------------------------------------------
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("timestamp", "timestamp_ntz")
_HEADER_VALUES = ("string", "binary", "boolean", "double", "float", *_WHOLE, *_TIMES)
#: Spark types that a column may have, by the type that the source gives it.
_TAKES: dict[str, tuple[str, ...]] = {
    "STRING": ("string",),
    "BINARY": ("binary", "string"),
    "INT": _WHOLE,
    "TIMESTAMP": _TIMES,
    "MAP<STRING, STRING>": tuple(f"map<string,{value}>" for value in _HEADER_VALUES),
}


def bind_columns(schema: StructType) -> dict[str, int]:
    """Column name to its place in the table; raises ConfigError for a table that can't be sent.

    Columns that the source has and nobody can set (``queue``, ``offset``, …) are left out, so that
    what was read can be written.
    """
    places: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        name = field.name.lower()
        if name not in BY_NAME:
            raise ConfigError(f"column {field.name}", _unknown(name), SOURCE)
        if name in places:
            raise ConfigError(f"column {field.name}", "is there twice", SOURCE)
        if name in WRITABLE:
            _check_type(name, field.dataType.simpleString())
            places[name] = place
    if "body" not in places:
        raise ConfigError(
            "column body", "is missing: the table needs one of type string or binary", SOURCE
        )
    return places


def require_broker(given: Mapping[str, str]) -> None:
    """Raises ConfigError where nothing says which broker is meant: rows can't be called back."""
    if not given_names(given) & {option.name.lower() for option in CONNECTION}:
        raise ConfigError(
            "url",
            "nothing says which broker the rows go to: give it, or host=127.0.0.1 for that of this "
            f"machine; {NOT_KEPT}",
            SOURCE,
        )


def require_address(options: SinkOptions, places: Mapping[str, int]) -> None:
    """Raises ConfigError where nothing says to whom rows go: none of them could get anywhere."""
    said = options.exchange or options.routing_key
    if not said and "exchange" not in places and "routing_key" not in places:
        raise ConfigError(
            "routingKey",
            "nothing says where the rows go: set the option exchange, or routingKey to a queue's "
            "name, or give the table a column 'exchange' or 'routing_key'",
            SOURCE,
        )


def _check_type(name: str, found: str) -> None:
    takes = _TAKES[WRITABLE[name].sql]
    if found.partition("(")[0] not in takes:  # varchar(10) is a string to Spark by now
        shown = "map<string,string>" if name == "headers" else " or ".join(takes)
        raise ConfigError(f"column {name}", f"is {found}, but must be {shown}", SOURCE)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, WRITABLE, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(WRITABLE)}."
    return f"is no part of a message; {hint} Other columns go into the body: to_json(struct(*))"
