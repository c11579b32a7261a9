"""Declares the shop's exchanges and queues, and publishes events: some gzip'd, some broken.

python publish_events.py amqp://guest:guest@localhost:5672/ 10000
"""

import argparse
import asyncio
import gzip
import json
import random
from typing import Any

import warren

COUNTRIES = ("de", "fr", "us", "jp")


def event(number: int) -> tuple[str, str, str | None, bytes]:
    """Country, type, content encoding and body; one in twenty-five belongs in no table."""
    country, kind = random.choice(COUNTRIES), random.choice(("order", "payment", "shipment"))
    fields: dict[str, Any] = {"order_id": number, "country": country}
    if kind == "shipment":
        fields["carrier"] = random.choice(("dhl", "ups", "post"))
    else:
        fields["cents"] = random.randrange(500, 50_000)
    if kind == "payment":
        fields["method"] = random.choice(("card", "transfer"))
    body = json.dumps(fields).encode()
    if number % 50 == 0:
        return country, kind, None, body[:20]
    if number % 50 == 25:
        return country, "coupon", None, body
    if number % 3 == 0:
        return country, kind, "gzip", gzip.compress(body)
    return country, kind, None, body


async def declare(channel: Any) -> None:
    await channel.declare_exchange("shop", "topic", durable=True)
    await channel.declare_exchange("shop.results", "topic", durable=True)
    await channel.declare_queue("shop.results", durable=True)
    await channel.bind_queue("shop.results", "shop.results", "#")
    for country in COUNTRIES:
        await channel.declare_queue(f"shop.{country}", durable=True)
        await channel.bind_queue(f"shop.{country}", "shop", f"{country}.*")


async def publish(url: str, count: int) -> None:
    async with warren.connect(url, name="shop") as connection:
        channel = await connection.channel()
        await declare(channel)
        for number in range(count):
            country, kind, encoding, body = event(number)
            properties = warren.Properties(
                content_type="application/json",
                content_encoding=encoding,
                message_id=str(number),
                type=kind,
                delivery_mode=2,
            )
            channel.publish(
                body, exchange="shop", routing_key=f"{country}.{kind}", properties=properties
            )
        await channel.confirmed()
    print(f"{count} events published")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Declares the shop's exchanges and queues, and publishes events."
    )
    parser.add_argument("url", help="such as amqp://guest:guest@localhost:5672/")
    parser.add_argument("count", type=int, help="how many events")
    options = parser.parse_args()
    try:
        asyncio.run(publish(options.url, options.count))
    except warren.WarrenError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
