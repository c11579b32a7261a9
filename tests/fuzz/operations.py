"""Random things that clients do: mostly sensible, few names, every argument, now and then nonsense.

A step is (what, who, data) with data of plain values, so that a script can be shortened and shown.
"""

from __future__ import annotations

import random
from typing import Any

from pika import spec

from tests.fuzz.arena import body, header, method
from tests.support.wire_frames import Field

QUEUES = ["q0", "q1", "q2", "q3", "q4"]
EXCHANGES = ["e0", "e1", "e2", "e3", "amq.topic", "amq.headers"]
KEYS = [*QUEUES, "a", "a.b", "a.*", "#", "a.#.b", "1", "3", ""]
TAGS = ["c0", "c1", "c2"]
REPLY_TO = "amq.rabbitmq.reply-to"
TYPES = ["direct", "fanout", "topic", "headers", "x-consistent-hash"]
SIZES = [0, 1, 5, 20, 1500]
QUEUE_ARGUMENTS: dict[str, list[Any]] = {
    "x-message-ttl": [0, 1, 50, 60_000],
    "x-expires": [1, 100, 60_000],
    "x-max-length": [0, 1, 3],
    "x-max-length-bytes": [0, 5, 50],
    "x-overflow": ["drop-head", "reject-publish", "reject-publish-dlx"],
    "x-max-priority": [1, 5, 255],
    "x-dead-letter-exchange": ["", "", "e0", "e1", "gone"],
    "x-dead-letter-routing-key": [*QUEUES, "k" * 300],
    "x-single-active-consumer": [True, False],
    "x-delivery-limit": [0, 1, 2],
    "x-queue-mode": ["lazy", "default"],
    "x-max-age": ["1s", "7D", "9" * 5000 + "D"],
    "x-queue-leader-locator": ["client-local"],
}
#: What each type of queue takes.
KNOWN = {
    "classic": [key for key in QUEUE_ARGUMENTS if key not in ("x-delivery-limit", "x-max-age")],
    "quorum": [
        "x-expires", "x-max-length", "x-message-ttl", "x-dead-letter-exchange", "x-delivery-limit",
        "x-dead-letter-routing-key", "x-single-active-consumer", "x-delivery-limit",
    ],
    "stream": ["x-max-length-bytes", "x-max-age", "x-queue-leader-locator"],
}  # fmt: skip
CONSUMER_ARGUMENTS: dict[str, list[Any]] = {
    "x-priority": [-5, 0, 10],
    "x-stream-offset": ["first", "last", "next", 0, 3, "1h"],
}
BINDING_ARGUMENTS: dict[str, list[Any]] = {
    "x-match": ["all", "any", "all-with-x", "any-with-x"],
    "h": [1, "one", True, Field("d", 1.5), None],
    "x-h": [1],
}
EXCHANGE_ARGUMENTS: dict[str, list[Any]] = {
    "alternate-exchange": EXCHANGES,
    "hash-header": ["h"],
    "hash-property": ["message_id", "timestamp"],
}
DEATH = {"queue": "q0", "reason": "rejected", "count": 1, "exchange": "", "routing-keys": ["q0"]}
HEADERS: dict[str, list[Any]] = {
    "CC": [["q1"], ["q1", "q2"], ["a.b"], "q1", [1]],
    "BCC": [["q3"], []],
    "h": [1, "one", True, None, [1], {"h": 1}],
    "x-death": [[DEATH], "gibberish", [], [1], [{}], [{**DEATH, "count": "many"}]],
    "x-delivery-count": [1],
    "x-stream-offset": ["next"],
}
ODD = [
    Field("s", -1), Field("B", 255), Field("i", 2**32 - 1), Field("l", -(2**63)), Field("f", 0.5),
    Field("x", b"\xff"), Field("T", 2**60), True, None, -1, 2**40, "", "é" * 200, [[[]]], {"a": {}},
]  # fmt: skip

Step = tuple[str, int, Any]


class Script:
    """Steps without end, the same for the same seed."""

    def __init__(self, seed: int, nonsense: float = 0.05) -> None:
        self._random = random.Random(seed)
        self._nonsense = nonsense
        self._acts = [
            (act, weight) for name, weight in WEIGHTS.items() for act in [getattr(self, "_" + name)]
        ]

    def steps(self, count: int) -> list[Step]:
        """Queues and exchanges first; then ``count`` steps of any kind."""
        acts = [act for act, _ in self._acts]
        weights = [weight for _, weight in self._acts]
        begin = [self._declare_queue] * 10 + [self._declare_exchange] * 6 + [self._bind_queue] * 6
        return [act() for act in (*begin, *self._random.choices(acts, weights, k=count))]

    # -- pieces --------------------------------------------------------------------------------
    def _one(self, values: list[Any]) -> Any:
        return self._random.choice(values)

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    def _some(self, known: dict[str, list[Any]], most: int) -> dict[str, Any]:
        chosen = self._random.sample(sorted(known), min(len(known), self._random.randint(0, most)))
        return {
            key: self._one(ODD) if self._maybe(self._nonsense) else self._one(known[key])
            for key in chosen
        }

    def _send(self, value: Any) -> Step:
        return "send", self._random.randint(0, 1), (self._random.randint(1, 2), value)

    # -- acts ----------------------------------------------------------------------------------
    def _declare_queue(self) -> Step:
        kind = self._one(["classic"] * 8 + ["quorum", "stream"])
        replicated = kind != "classic"
        known = QUEUE_ARGUMENTS
        if not self._maybe(self._nonsense):
            known = {key: QUEUE_ARGUMENTS[key] for key in KNOWN[kind]}
        arguments = self._some(known, 4)
        if replicated or self._maybe(0.3):
            arguments["x-queue-type"] = kind
        if "x-dead-letter-routing-key" in arguments:
            arguments.setdefault("x-dead-letter-exchange", "")
        return self._send(
            spec.Queue.Declare(
                queue="" if self._maybe(0.03) else self._one(QUEUES),
                durable=replicated or self._maybe(0.5),
                exclusive=not replicated and self._maybe(0.15),
                auto_delete=not replicated and self._maybe(0.15),
                nowait=self._maybe(0.1),
                arguments=arguments,
            )
        )

    def _declare_exchange(self) -> Step:
        return self._send(
            spec.Exchange.Declare(
                exchange=self._one(EXCHANGES[:4]),
                type=self._one(TYPES),
                auto_delete=self._maybe(0.3),
                internal=self._maybe(0.1),
                arguments=self._some(EXCHANGE_ARGUMENTS, 1),
            )
        )

    def _bind_queue(self) -> Step:
        return self._send(
            spec.Queue.Bind(
                queue=self._one(QUEUES),
                exchange=self._one(EXCHANGES),
                routing_key=self._one(KEYS),
                arguments=self._some(BINDING_ARGUMENTS, 2),
            )
        )

    def _unbind_queue(self) -> Step:
        return self._send(
            spec.Queue.Unbind(
                queue=self._one(QUEUES),
                exchange=self._one(EXCHANGES),
                routing_key=self._one(KEYS),
                arguments=self._some(BINDING_ARGUMENTS, 1),
            )
        )

    def _bind_exchange(self) -> Step:
        kind = spec.Exchange.Bind if self._maybe(0.8) else spec.Exchange.Unbind
        return self._send(
            kind(
                destination=self._one(EXCHANGES[:4]),
                source=self._one(EXCHANGES),
                routing_key=self._one(KEYS),
                arguments=self._some(BINDING_ARGUMENTS, 1),
            )
        )

    def _delete(self) -> Step:
        if self._maybe(0.4):
            return self._send(
                spec.Exchange.Delete(exchange=self._one(EXCHANGES[:4]), if_unused=self._maybe(0.3))
            )
        return self._send(
            spec.Queue.Delete(
                queue=self._one(QUEUES), if_unused=self._maybe(0.2), if_empty=self._maybe(0.2)
            )
        )

    def _purge(self) -> Step:
        return self._send(spec.Queue.Purge(queue=self._one(QUEUES)))

    def _publish(self) -> Step:
        properties: dict[str, Any] = {}
        if self._maybe(0.4):
            properties["headers"] = self._some(HEADERS, 3)
        if self._maybe(0.2):
            properties["expiration"] = self._one(["0", "1", "50", "60000", "soon", "-1", "٣"])
        if self._maybe(0.2):
            properties["priority"] = self._one([0, 1, 5, 255])
        if self._maybe(0.5):
            properties["delivery_mode"] = self._one([1, 2, 2])
        if self._maybe(0.1):
            properties["reply_to"] = self._one([REPLY_TO, "q0"])
        if self._maybe(0.1):
            properties["message_id"] = self._one(["m1", "m2"])
        exchange = "" if self._maybe(0.6) else self._one(EXCHANGES)
        key = self._one(QUEUES) if not exchange else self._one(KEYS)
        data = bytes(self._one(SIZES))
        publish = (exchange, key, self._maybe(0.2), properties, data)
        return "publish", self._random.randint(0, 1), (self._random.randint(1, 2), publish)

    def _consume(self) -> Step:
        queue = REPLY_TO if self._maybe(0.1) else self._one(QUEUES)
        return self._send(
            spec.Basic.Consume(
                queue=queue,
                consumer_tag=self._one(TAGS),
                no_ack=queue == REPLY_TO or self._maybe(0.3),
                exclusive=self._maybe(0.1),
                arguments=self._some(CONSUMER_ARGUMENTS, 1),
            )
        )

    def _cancel(self) -> Step:
        return self._send(spec.Basic.Cancel(self._one(TAGS)))

    def _get(self) -> Step:
        return self._send(spec.Basic.Get(queue=self._one(QUEUES), no_ack=self._maybe(0.3)))

    def _settle(self) -> Step:
        # Tags are known only when the step is played: -1 is the newest, 1 the oldest.
        how = self._one(["ack", "ack", "nack", "requeue", "reject"])
        data = (how, self._random.choices([1, -1, 0, 99], [20, 10, 5, 1])[0], self._maybe(0.3))
        return "settle", self._random.randint(0, 1), (self._random.randint(1, 2), data)

    def _recover(self) -> Step:
        return self._send(spec.Basic.Recover(requeue=self._maybe(0.9)))

    def _qos(self) -> Step:
        return self._send(
            spec.Basic.Qos(prefetch_count=self._one([0, 1, 2, 5]), global_qos=self._maybe(0.3))
        )

    def _mode(self) -> Step:
        return self._send(
            self._one([spec.Confirm.Select(), spec.Confirm.Select(), spec.Tx.Select()])
        )

    def _end_transaction(self) -> Step:
        return self._send(self._one([spec.Tx.Commit(), spec.Tx.Commit(), spec.Tx.Rollback()]))

    def _close_channel(self) -> Step:
        return self._send(spec.Channel.Close(200, "bye", 0, 0))

    def _vanish(self) -> Step:
        return "vanish", self._random.randint(0, 1), None

    def _wait(self) -> Step:
        return "wait", 0, self._random.choices([0.001, 0.05, 0.1, 60.0, 1000.0], [9, 9, 9, 3, 1])[0]

    def _read(self) -> Step:
        """The client stops reading what it is sent, or begins again."""
        return "read", self._random.randint(0, 1), self._maybe(0.5)

    def _alarm(self) -> Step:
        return "alarm", 0, self._maybe(0.25)


WEIGHTS = {
    "declare_queue": 6, "declare_exchange": 2, "bind_queue": 4, "unbind_queue": 1,
    "bind_exchange": 2, "delete": 0.7, "purge": 0.5, "publish": 35, "consume": 8, "cancel": 1,
    "get": 8, "settle": 25, "recover": 1, "qos": 2, "mode": 1, "end_transaction": 0.5,
    "close_channel": 1, "vanish": 0.5, "wait": 3, "alarm": 0.4,
    "read": 3,
}  # fmt: skip


def octets(step: Step) -> bytes:
    """What goes over the wire for a send or a publish."""
    what, _, (channel, data) = step
    if what == "send":
        return method(data, channel)
    exchange, key, mandatory, properties, content = data
    head = method(
        spec.Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory), channel
    )
    head += header(len(content), channel, **properties)
    return head + (body(content, channel) if content else b"")
