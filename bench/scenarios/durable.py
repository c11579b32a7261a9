"""Persistent messages in durable queues: a confirm means that it is on disk."""

from __future__ import annotations

import selectors
import time
from statistics import quantiles

from bench.load import frames
from bench.load.consuming import Consumer
from bench.load.link import Link, LoadError, received
from bench.load.publishing import BATCH, Confirms, Publisher
from bench.load.setup import durable_queue, expect_ready
from bench.model import Context, Goal, Metric, Numbers, Scenario

BODY = bytes(200)
COUNT = 100_000
WARM_UP = 2_000
MANY = 100  # publishers, each with its own connection and queue
EACH_WINDOW = 20  # unconfirmed messages of each of them
#: Messages a second for the latency: half of what RabbitMQ confirms to one publisher on two cores.
PACE = 8_000
PACED_S = 4.0


def publish(url: str, count: int) -> Numbers:
    """One publisher, 2,000 unconfirmed messages at the most."""
    with Link(url) as link:
        queue, publisher = durable_queue(link), Publisher(link)
        publisher.fill(queue, BODY, WARM_UP, persistent=True)
        link.call(frames.purge(queue), (50, 31))
        took = publisher.fill(queue, BODY, count, persistent=True)
        expect_ready(link, queue, count)
        link.call(frames.delete_queue(queue), (50, 41))
        link.close()
    return {"rate": count / took.seconds, "busy": took.busy}


def consume(url: str, count: int) -> Numbers:
    """Drain a durable queue, an ack for each message."""
    with Link(url) as link:
        queue, publisher, consumer = durable_queue(link), Publisher(link), Consumer(link)
        publisher.fill(queue, BODY, WARM_UP, persistent=True)
        consumer.drain(queue, WARM_UP)
        publisher.fill(queue, BODY, count, persistent=True)
        took = consumer.drain(queue, count)
        link.call(frames.delete_queue(queue), (50, 41))
        link.close()
    return {"rate": count / took.seconds, "busy": took.busy}


def publish_many(url: str, count: int) -> Numbers:
    """A hundred publishers at once, each with a small window of its own."""
    links = [Link(url) for _ in range(MANY)]
    queues = [durable_queue(link) for link in links]
    blobs = [frames.publish("", queue, BODY, persistent=True) * EACH_WINDOW for queue in queues]
    confirms = [Confirms() for _ in links]
    rounds = count // (MANY * EACH_WINDOW)
    sent = [0] * MANY
    selector = selectors.DefaultSelector()
    for place, link in enumerate(links):
        link.call(frames.confirm_select(), (85, 11))
        selector.register(link.sock, selectors.EVENT_READ, place)
    began = time.perf_counter()
    for place, link in enumerate(links):
        link.sock.sendall(blobs[place])
        sent[place] = 1
    done = 0
    while done < MANY:
        for key, _ in selector.select(60):
            place = key.data
            confirms[place].feed(received(links[place].sock.recv(1 << 16)))
            if confirms[place].count == sent[place] * EACH_WINDOW:
                if sent[place] == rounds:
                    done += 1
                else:
                    links[place].sock.sendall(blobs[place])
                    sent[place] += 1
    seconds = time.perf_counter() - began
    for link, queue in zip(links, queues, strict=True):
        link.call(frames.delete_queue(queue), (50, 41))
        link.close()
    return {"rate": rounds * MANY * EACH_WINDOW / seconds}


def latency(url: str, seconds: float) -> Numbers:
    """From publish to confirm, at a steady pace."""
    waits: list[float] = []
    with Link(url) as link:
        queue = durable_queue(link)
        link.call(frames.confirm_select(), (85, 11))
        blob = frames.publish("", queue, BODY, persistent=True)
        confirms, sent_at = Confirms(), [0.0]
        link.sock.setblocking(False)
        selector = selectors.DefaultSelector()
        selector.register(link.sock, selectors.EVENT_READ)
        total, began = round(PACE * seconds), time.perf_counter()
        while confirms.upto < total:
            now = time.perf_counter()
            if now - began > 10 * seconds + 30:
                raise LoadError(f"{confirms.upto} of {total} confirmed in {now - began:.0f} s")
            due = min(total, int((now - began) * PACE), len(sent_at) - 1 + BATCH)
            while len(sent_at) <= due:
                link.sock.send(blob)
                sent_at.append(time.perf_counter())
            wait = max(0.0, len(sent_at) / PACE - (now - began))
            if selector.select(wait if len(sent_at) <= total else 5):
                before = confirms.upto
                confirms.feed(received(link.sock.recv(1 << 16)))
                now = time.perf_counter()
                waits += [now - at for at in sent_at[before + 1 : confirms.upto + 1]]
        link.sock.setblocking(True)
        link.call(frames.delete_queue(queue), (50, 41))
        link.close()
    cuts = quantiles(waits, n=100)
    return {"p50": cuts[49], "p99": cuts[98]}


def _publish(context: Context) -> Numbers:
    numbers = context.load(publish, count=context.scaled(COUNT))
    return {"durable_publish": numbers["rate"], "busy": numbers["busy"]}


def _consume(context: Context) -> Numbers:
    numbers = context.load(consume, count=context.scaled(COUNT))
    return {"durable_consume": numbers["rate"], "busy": numbers["busy"]}


def _publish_many(context: Context) -> Numbers:
    return {"durable_publish_100": context.load(publish_many, count=context.scaled(COUNT))["rate"]}


def _latency(context: Context) -> Numbers:
    numbers = context.load(latency, seconds=PACED_S / 4 if context.quick else PACED_S)
    return {"durable_latency_p50": numbers["p50"], "durable_latency_p99": numbers["p99"]}


def _rate(name: str, title: str) -> tuple[Metric, ...]:
    return (Metric(name, title, "rate", Goal(times=3.0)),)


SCENARIOS = (
    Scenario(
        "durable_publish", _rate("durable_publish", "Durable publish, 1"), _publish, data=True
    ),
    Scenario(
        "durable_publish_100",
        _rate("durable_publish_100", "Durable publish, 100"),
        _publish_many,
        data=True,
        rounds=9,  # a hundred clients and one disk: single rounds differ by half
    ),
    Scenario("durable_consume", _rate("durable_consume", "Durable consume"), _consume, data=True),
    Scenario(
        "durable_latency",
        (
            Metric("durable_latency_p50", "Durable confirm, p50", "latency", None, False),
            Metric(
                "durable_latency_p99", "Durable confirm, p99", "latency", Goal(times=1.0), False
            ),
        ),
        _latency,
        data=True,
    ),
)
