"""Topic routing with 100,000 bindings, of which a message matches about one."""

from __future__ import annotations

import random
from itertools import cycle, islice

from bench.load import frames
from bench.load.clock import Stopwatch
from bench.load.link import Link, LoadError
from bench.load.publishing import Batch, Publisher
from bench.model import Context, Goal, Metric, Numbers, Scenario

EXCHANGE = "bench-topic"
QUEUES = tuple(f"bench-topic-{at}" for at in range(50))
BINDINGS = 100_000
COUNT = 50_000
WARM_UP = 1_000
KEYS = 10_000  # different routing keys
BODY_BYTES = 200
EACH = 50  # messages a send
SEED = 20_230_601


def patterns_and_keys(bindings: int) -> tuple[list[str], list[str]]:
    """Binding patterns (a third plain, a third with ``*``, a third with ``#``) and keys.

    Every key is made from a binding and so matches it. A thousand words a level make it rare
    that a key matches another one too.
    """
    chance = random.Random(SEED)
    words = [tuple(chance.randrange(1000) for _ in range(3)) for _ in range(bindings)]
    shapes = ("a{0}.b{1}.c{2}", "a{0}.*.c{2}", "a{0}.b{1}.#")
    patterns = [shapes[at % 3].format(*word) for at, word in enumerate(words)]
    chosen = chance.choices(words, k=KEYS)
    return patterns, ["a{}.b{}.c{}".format(*word) for word in chosen]


def bind_all(url: str, bindings: int) -> Numbers:
    patterns, _ = patterns_and_keys(bindings)
    binds = [
        frames.bind(QUEUES[at % len(QUEUES)], EXCHANGE, pattern, nowait=True)
        for at, pattern in enumerate(patterns)
    ]
    with Link(url) as link:
        link.call(frames.declare_exchange(EXCHANGE, "topic"), (40, 11))
        for queue in QUEUES:
            link.call(frames.declare_queue(queue), (50, 11))
        watch = Stopwatch()
        for blob in frames.batched(binds, 500):
            link.sock.sendall(blob)
            link.ready(QUEUES[0])  # keeps in step, so that no silence lasts long
        took = watch.stop()
        link.close()
    return {"rate": bindings / took.seconds}


def publish(url: str, count: int, bindings: int) -> Numbers:
    _, keys = patterns_and_keys(bindings)
    messages = [frames.publish(EXCHANGE, key, bytes(BODY_BYTES)) for key in keys]
    batches: list[Batch] = [(blob, EACH) for blob in frames.batched(messages, EACH)]
    with Link(url) as link:
        for queue in QUEUES:
            link.call(frames.purge(queue), (50, 31))
        publisher, turn = Publisher(link), cycle(batches)
        publisher.run(islice(turn, WARM_UP // EACH))
        took = publisher.run(islice(turn, count // EACH))
        routed = sum(link.ready(queue) for queue in QUEUES)
        link.close()
    published = WARM_UP + count
    if routed < published:
        raise LoadError(f"{published} messages arrived {routed} times")
    return {"topic_100k": count / took.seconds, "busy": took.busy, "routed": routed / published}


def delete_all(url: str) -> Numbers:
    with Link(url) as link:
        link.call(frames.delete_exchange(EXCHANGE), (40, 21))
        for queue in QUEUES:
            link.call(frames.delete_queue(queue), (50, 41))
        link.close()
    return {}


def _prepare(context: Context) -> None:
    context.load(bind_all, bindings=context.scaled(BINDINGS))


def _measure(context: Context) -> Numbers:
    bindings = context.scaled(BINDINGS)
    return context.load(publish, count=context.scaled(COUNT), bindings=bindings)


def _finish(context: Context) -> None:
    context.load(delete_all)


SCENARIO = Scenario(
    "topic",
    (
        Metric(
            "topic_100k", "Publish by topic, 100,000 bindings, confirmed", "rate", Goal(times=1.0)
        ),
    ),
    _measure,
    prepare=_prepare,
    finish=_finish,
)
