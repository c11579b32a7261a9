"""The client beside pika and aio-pika, on each broker.

The table's two columns are the brokers; the rows say what each library does on them, and how many
times faster ours is on the same broker in the same round.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.load.clients import consume, publish
from bench.model import Context, Goal, Metric, Numbers, Scenario

COUNT = {"warren": 100_000, "iterate": 100_000, "pika": 50_000, "aio_pika": 20_000}
TITLES = {
    "warren": "warren's client",
    "iterate": "warren's client, async for",
    "pika": "pika",
    "aio_pika": "aio-pika",
}


def _publishing(context: Context) -> Numbers:
    rates = {
        client: context.load(publish, client=client, count=context.scaled(COUNT[client]))["rate"]
        for client in ("warren", "pika", "aio_pika")
    }
    return _numbers("client_publish", rates)


def _consuming(context: Context) -> Numbers:
    rates = {
        client: context.load(consume, client=client, count=context.scaled(COUNT[client]))["rate"]
        for client in ("warren", "iterate", "pika", "aio_pika")
    }
    return _numbers("client_consume", rates)


def _numbers(name: str, rates: dict[str, float]) -> Numbers:
    numbers = {f"{name}_{client}": rate for client, rate in rates.items()}
    for peer in ("pika", "aio_pika"):
        numbers[f"{name}_ahead_of_{peer}"] = rates["warren"] / rates[peer]
    return numbers


def _metrics(
    name: str, title: str, clients: Sequence[str], goals: dict[str, Goal]
) -> tuple[Metric, ...]:
    rates = [Metric(f"{name}_{each}", f"{title}: {TITLES[each]}", "rate") for each in clients]
    ratios = [
        Metric(
            f"{name}_ahead_of_{peer}",
            f"{title}: times faster than {TITLES[peer]}",
            "ratio",
            goals.get(peer),
        )
        for peer in ("pika", "aio_pika")
    ]
    return (*rates, *ratios)


SCENARIOS = (
    Scenario(
        "client_publish",
        _metrics(
            "client_publish",
            "Publish, confirmed",
            ("warren", "pika", "aio_pika"),
            {"pika": Goal(at_least=1.0), "aio_pika": Goal(at_least=3.0)},
        ),
        _publishing,
    ),
    Scenario(
        "client_consume",
        _metrics(
            "client_consume",
            "Consume, acked",
            ("warren", "iterate", "pika", "aio_pika"),
            {"pika": Goal(at_least=1.0), "aio_pika": Goal(at_least=3.0)},
        ),
        _consuming,
    ),
)
