"""One of the shop's publishers, as a process of its own: confirmed, at a steady rate.

Told by the command line: url, name, the first event and the one behind the last, events a second.
Tells on stdout how many are confirmed, a line each now and then.
"""

from __future__ import annotations

import sys
import time

from warren.cli.scenes.shop_events import EXCHANGE, Event, event
from warren.client.blocking_publisher import BlockingPublisher, PublishRules
from warren.client.endpoint import Endpoint
from warren.client.publish_columns import Routes, encode_column, encode_messages, join_properties
from warren.errors import WarrenError

_AT_ONCE = 200
_CONSTANTS = {
    "content_type": encode_column("content_type", ["application/json"])[0],
    "delivery_mode": encode_column("delivery_mode", [2])[0],
}


def encode(name: str, events: list[Event], routes: Routes, frame_max: int) -> list[bytes]:
    constants = _CONSTANTS | {"app_id": encode_column("app_id", [name])[0]}
    columns = {
        "content_encoding": encode_column("content_encoding", [e.content_encoding for e in events]),
        "message_id": encode_column("message_id", [str(e.number) for e in events]),
        "type": encode_column("type", [e.type for e in events]),
    }
    return encode_messages(
        [routes.frame(EXCHANGE, each.routing_key) for each in events],
        join_properties(columns, constants, len(events)),
        [each.body for each in events],
        frame_max,
    )


def publish(url: str, name: str, numbers: range, rate: float) -> None:
    # Without the broker there is nothing to do: no second try.
    rules = PublishRules(reconnect_s=0, retries=0)
    with BlockingPublisher([Endpoint.from_uri(url)], rules, name=name) as publisher:
        routes, started = Routes(mandatory=True), time.monotonic()
        for first in range(0, len(numbers), _AT_ONCE):
            events = [event(number) for number in numbers[first : first + _AT_ONCE]]
            publisher.publish(encode(name, events, routes, publisher.frame_max))
            publisher.finish()
            print(publisher.counts.confirmed, flush=True)
            ahead = publisher.counts.confirmed / rate - (time.monotonic() - started)
            if ahead > 0:
                time.sleep(ahead)


if __name__ == "__main__":
    _, url, name, first, end, rate = sys.argv
    try:
        publish(url, name, range(int(first), int(end)), float(rate))
    except (WarrenError, BrokenPipeError) as error:
        sys.exit(f"the publisher {name} broke off: {error}")
