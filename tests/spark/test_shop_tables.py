"""What the shop's jobs, the example and the demo, do with a batch that is done again, or anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import warren
from tests.spark.queries import in_query
from tests.spark.test_examples import EXAMPLES, module
from tests.support.wire import Channel, Connection
from warren.cli.scenes import shop_job

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

RESULTS = "shop.results"
Write = Callable[[DataFrame, int], None]


@pytest.fixture
def embedded() -> Iterator[warren.Broker]:
    """A broker for each test: both jobs publish to the same exchange."""
    with warren.Broker.in_thread() as broker:
        yield broker


@pytest.fixture
def results(embedded: warren.Broker) -> Iterator[Channel]:
    """A channel, and a queue of all that is published."""
    connection = Connection.open(embedded.url)
    channel = connection.channel()
    channel.declare_exchange(RESULTS, "topic")
    channel.declare(RESULTS)
    channel.bind(RESULTS, RESULTS, "#")
    yield channel
    connection.close()


@pytest.fixture(params=["example", "demo"])
def write(request: pytest.FixtureRequest, embedded: warren.Broker, tmp_path: Path) -> Write:
    if request.param == "demo":
        return shop_job.Tables(embedded.url, str(tmp_path)).write
    example = module(EXAMPLES / "shop-pyspark" / "shop.py")
    return example.Tables(embedded.url, str(tmp_path))


def orders(spark: SparkSession, countries: dict[int, str]) -> DataFrame:
    """A batch of orders, by their numbers."""
    rows = []
    for number, country in countries.items():
        order = {"order_id": number, "country": country, "customer": "c", "items": 1, "cents": 5}
        body = bytearray(json.dumps(order).encode())
        rows.append((str(number), "shop.de", number, "order", None, body))
    columns = "message_id STRING, queue STRING, offset LONG, type STRING, content_encoding STRING"
    return spark.createDataFrame(rows, f"{columns}, body BINARY").coalesce(1)


def numbers(folder: Path) -> list[int]:
    return sorted(pq.read_table(folder / "orders").column("order_id").to_pylist())


def got(channel: Channel) -> list[tuple[str, bytes]]:
    found = []
    while (message := channel.get(RESULTS, no_ack=True)) is not None:
        found.append((message.properties.message_id, message.body))
    return found


def test_the_first_batch_of_a_new_query_overwrites_nothing_of_the_old_one(
    spark: SparkSession, write: Write, results: Channel, tmp_path: Path
) -> None:
    with in_query(spark, "old"):
        write(orders(spark, {1: "de"}), 0)
        write(orders(spark, {1: "de"}), 0)
    with in_query(spark, "new"):
        write(orders(spark, {2: "de"}), 0)

    assert numbers(tmp_path) == [1, 2]


def test_results_have_the_same_ids_in_whatever_order_their_orders_come(
    spark: SparkSession, write: Write, results: Channel
) -> None:
    countries = dict(enumerate(["de", "fr", "us", "jp", "it", "es"]))
    published = []
    with in_query(spark, "query"):
        for batch in (countries, dict(reversed(countries.items()))):
            write(orders(spark, batch), 0)
            published.append(got(results))

    first, second = published
    assert len({message_id for message_id, _ in first}) == 6
    assert second == first
