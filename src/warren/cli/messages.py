"""``warren publish``, ``warren get``, ``warren purge``: messages by hand."""

from __future__ import annotations

import argparse
import base64
import difflib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from warren.cli import output
from warren.cli.options import JSON, VHOST, add_command, open_api, vhost_of
from warren.cli.output import clean, shown
from warren.cli.resources import EXCHANGES, QUEUES, not_there, page_of, rows_of
from warren.cli.values import pairs, value_of
from warren.client.management import Management
from warren.errors import ApiMissing, ApiRefused, ConfigError

#: Properties of a message, and the type of their values.
PROPERTIES: dict[str, type] = {
    "content_type": str,
    "content_encoding": str,
    "delivery_mode": int,
    "priority": int,
    "correlation_id": str,
    "reply_to": str,
    "expiration": str,
    "message_id": str,
    "timestamp": int,
    "type": str,
    "user_id": str,
    "app_id": str,
}


def add_parser(commands: Any) -> None:
    _add_publish(commands)
    _add_get(commands)
    parser = add_command(commands, "purge", "drop the messages that wait in a queue", _purge, VHOST)
    parser.add_argument("queue", metavar="QUEUE", help="name of the queue")


def _add_publish(commands: Any) -> None:
    parser = add_command(
        commands,
        "publish",
        "publish a message",
        _publish,
        VHOST,
        JSON,
        description="Publish a message, to a queue or to an exchange. The exit code is 1 if no "
        "queue has taken it.",
    )
    parser.add_argument(
        "routing_key", metavar="KEY", help="routing key; without --exchange, a queue"
    )
    parser.add_argument(
        "body", metavar="BODY", help="the message; - for standard input, @FILE for a file"
    )
    parser.add_argument("--exchange", default="", metavar="NAME", help="publish to this exchange")
    parser.add_argument(
        "--lines", action="store_true", help="a message for each line of the file or standard input"
    )
    parser.add_argument("--persistent", action="store_true", help="the message survives a restart")
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="such as content_type=text/plain; may be given more than once",
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="numbers, true and false are taken as such; may be given more than once",
    )


def _add_get(commands: Any) -> None:
    parser = add_command(
        commands,
        "get",
        "look at the next messages of a queue, or take them",
        _get,
        VHOST,
        JSON,
        description="Look at the next messages of a queue. They stay in it (marked as redelivered) "
        "unless they are taken.",
    )
    parser.add_argument("queue", metavar="QUEUE", help="name of the queue")
    parser.add_argument(
        "--count", type=int, default=1, metavar="N", help="at most this many (default 1)"
    )
    parser.add_argument("--take", action="store_true", help="remove them from the queue")
    parser.add_argument("--raw", action="store_true", help="print the bodies and nothing else")


# -- publish -------------------------------------------------------------------------------------
def _publish(options: argparse.Namespace) -> int:
    properties = _properties(options)
    vhost, exchange, key = vhost_of(options), options.exchange, options.routing_key
    sent = routed = 0
    with open_api(options) as api:
        for body in _bodies(options):
            sent += 1
            routed += _publish_one(api, options, properties, body)
        hint = _remedy(api, options) if routed < sent else ""
    if options.json:
        output.say_json({"published": sent, "routed": routed})
    to = f"exchange '{exchange}' with routing key '{key}'" if exchange else f"queue '{key}'"
    if routed < sent:
        lost = "the message" if sent == 1 else f"{sent - routed} of {sent} messages"
        why = f"{_unrouted(options)}: {lost} went nowhere; {hint}"
        raise ApiRefused(f"publish to {to} in vhost '{vhost}'", 200, why)
    if not options.json:
        output.say(f"published {_count(sent)} to {to}")
    return 0


def _unrouted(options: argparse.Namespace) -> str:
    return "nothing is bound there for that key" if options.exchange else "there is no such queue"


def _remedy(api: Management, options: argparse.Namespace) -> str:
    """What to do about a message that no queue has taken."""
    exchange, key, vhost = options.exchange, options.routing_key, vhost_of(options)
    where = "" if options.vhost is None else f" --vhost {vhost}"
    if exchange:
        bind = f"warren bindings declare {exchange} QUEUE --routing-key {key}{where}"
        return f"'{bind}' binds a queue"
    names = [row["name"] for row in rows_of(api, QUEUES, vhost)]
    near = difflib.get_close_matches(key, names, 1)
    make = f"'warren queues declare {key}{where}' makes it, 'warren topology apply' a whole file"
    return f"did you mean '{near[0]}'? {make}" if near else make


def _publish_one(
    api: Management, options: argparse.Namespace, properties: dict[str, Any], body: bytes
) -> bool:
    try:
        payload, encoding = body.decode(), "string"
    except UnicodeDecodeError:
        payload, encoding = base64.b64encode(body).decode(), "base64"
    name, vhost = options.exchange or "amq.default", vhost_of(options)
    what = f"publish to exchange '{options.exchange}'"
    message = {
        "properties": properties,
        "routing_key": options.routing_key,
        "payload": payload,
        "payload_encoding": encoding,
    }
    try:
        answer = api.post("exchanges", vhost, name, "publish", body=message, what=what)
    except ApiRefused as refusal:
        if refusal.status == 404 or "NOT_FOUND - no exchange" in refusal.reason:
            raise not_there(api, EXCHANGES, options.exchange, vhost) from None
        raise
    return bool(answer["routed"])


def _bodies(options: argparse.Namespace) -> Iterator[bytes]:
    body: str = options.body
    if body != "-" and not body.startswith("@"):
        if options.lines:
            raise ConfigError("--lines", "BODY must be - or @FILE then")
        yield body.encode(errors="surrogateescape")
    elif body == "-":
        yield from _messages_in(sys.stdin.buffer, options.lines)
    else:
        try:
            with open(body[1:], "rb") as file:
                yield from _messages_in(file, options.lines)
        except OSError as error:
            raise ConfigError("BODY", f"{body[1:]} can't be read: {error.strerror}") from None


def _messages_in(file: BinaryIO, lines: bool) -> Iterable[bytes]:
    return (line.rstrip(b"\r\n") for line in file) if lines else (file.read(),)


def _properties(options: argparse.Namespace) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, text in pairs(options.property, "--property"):
        name = name.replace("-", "_")
        if name not in PROPERTIES:
            near = difflib.get_close_matches(name, PROPERTIES, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(PROPERTIES)}"
            raise ConfigError("--property", f"a message has no property {name!r}; {hint}")
        try:
            properties[name] = PROPERTIES[name](text)
        except ValueError:
            raise ConfigError("--property", f"{name} must be a number, not {text!r}") from None
    if options.persistent:
        properties["delivery_mode"] = 2
    if options.header:
        properties["headers"] = {
            name: value_of(text) for name, text in pairs(options.header, "--header")
        }
    return properties


# -- get -----------------------------------------------------------------------------------------
def _get(options: argparse.Namespace) -> int:
    if options.count < 1:
        raise ConfigError("--count", "must be at least 1")
    vhost = vhost_of(options)
    request = {
        "count": options.count,
        "ackmode": "ack_requeue_false" if options.take else "ack_requeue_true",
        "encoding": "auto",
    }
    what = f"get from queue '{options.queue}' in vhost '{vhost}'"
    with open_api(options) as api:
        try:
            messages = api.post("queues", vhost, options.queue, "get", body=request, what=what)
        except ApiMissing:
            raise not_there(api, QUEUES, options.queue, vhost) from None
    if options.json:
        output.say_json(messages)
    elif options.raw:
        _write(messages)
    elif messages:
        for number, message in enumerate(messages, 1):
            _say_message(number, message)
        left = messages[-1]["message_count"]
        word = "taken" if options.take else "seen"
        output.say(f"{_count(len(messages))} {word}, {left} more in queue '{options.queue}'", "dim")
    else:
        output.say(f"queue '{options.queue}' is empty", "dim")
    return 0


def _write(messages: list[dict[str, Any]]) -> None:
    sys.stdout.flush()
    for message in messages:
        sys.stdout.buffer.write(_body(message) + (b"\n" if len(messages) > 1 else b""))
    sys.stdout.buffer.flush()


def _body(message: dict[str, Any]) -> bytes:
    payload: str = message["payload"]
    return (
        base64.b64decode(payload) if message["payload_encoding"] == "base64" else payload.encode()
    )


def _say_message(number: int, message: dict[str, Any]) -> None:
    properties = dict(message["properties"] or {})  # RabbitMQ sends [] if there are none
    headers = properties.pop("headers", {})
    facts = [
        ("exchange", shown(message["exchange"]) or "(default)"),
        ("routing key", shown(message["routing_key"])),
        ("redelivered", shown(message["redelivered"])),
        *((name, shown(value)) for name, value in properties.items()),
        *((f"header {clean(str(name))}", shown(value)) for name, value in headers.items()),
    ]
    output.facts(facts, title=f"{number}. {output.size(message['payload_bytes'])}")
    if message["payload_encoding"] == "base64":
        output.say("  (octets, in base64)", "dim")
    if message["payload"]:
        output.say("  " + clean(message["payload"], lines=True).replace("\n", "\n  "))
    output.say("")


# -- purge ---------------------------------------------------------------------------------------
def _purge(options: argparse.Namespace) -> int:
    vhost, queue = vhost_of(options), options.queue
    with open_api(options) as api:
        page_of(api, QUEUES, queue, vhost)
        api.delete("queues", vhost, queue, "contents", what=f"purge queue '{queue}'")
    output.say(f"purged queue '{queue}' in vhost '{vhost}'")
    return 0


def _count(number: int) -> str:
    return "1 message" if number == 1 else f"{number:,} messages"


def read_file(name: str, option: str) -> str:
    """The text of a file, or of standard input for ``-``."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text()
    except FileNotFoundError:
        raise ConfigError(option, f"there is no file {name}") from None
    except UnicodeDecodeError:
        raise ConfigError(option, f"{name} is not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(option, f"{name} can't be read: {error.strerror}") from None
