"""``format("rabbitmq")`` as a sink, on both brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark import inheritable_thread_target
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import warren.spark
from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Message
from warren.pipeline.quarantine import not_taken

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

Name = Callable[[str], str]
EVERY_PROPERTY = """
    'text/plain' AS content_type, 'identity' AS content_encoding,
    map('tenant', 'blue', 'attempt', '1') AS headers, 1 AS delivery_mode, 7 AS priority,
    'c-1' AS correlation_id, 'answers' AS reply_to, '60000' AS expiration, 'my-id' AS message_id,
    timestamp'2026-01-02 03:04:05' AS timestamp, 'order' AS type, 'guest' AS user_id,
    'shop' AS app_id
"""


def save(rows: DataFrame, broker: TestBroker, **options: str) -> None:
    rows.write.format("rabbitmq").options(uri=broker.url, **options).mode("append").save()


def got(channel: Channel, queue: str) -> list[Message]:
    found = []
    while (message := channel.get(queue)) is not None:
        found.append(message)
    return found


def test_each_column_becomes_a_part_of_the_message(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name
) -> None:
    exchange, queue = name("shop"), name("orders")
    channel.declare_exchange(exchange, "topic")
    channel.declare(queue)
    channel.bind(queue, exchange, "order.#")
    rows = spark.sql(
        f"SELECT 'hello' AS body, '{exchange}' AS exchange, 'order.new' AS routing_key, "
        f"{EVERY_PROPERTY}"
    )

    save(rows, broker)

    (message,) = got(channel, queue)
    told = message.properties
    assert (message.body, message.method.exchange) == (b"hello", exchange)
    assert message.method.routing_key == "order.new"
    assert (told.content_type, told.content_encoding) == ("text/plain", "identity")
    assert told.headers == {"tenant": "blue", "attempt": "1"}
    assert (told.delivery_mode, told.priority, told.expiration) == (1, 7, "60000")
    assert (told.correlation_id, told.reply_to, told.message_id) == ("c-1", "answers", "my-id")
    assert (told.timestamp, told.type, told.user_id, told.app_id) == (
        1767323045,
        "order",
        "guest",
        "shop",
    )


def test_options_stand_in_for_columns_and_their_nulls(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name
) -> None:
    left, right = name("left"), name("right")
    for queue in (left, right):
        channel.declare(queue)
    rows = spark.createDataFrame(
        [(b"\x00\xff", left, None), (b"b", None, "special")],
        "body binary, routing_key string, type string",
    ).coalesce(1)

    save(rows, broker, routingKey=right, type="plain", appId="spark", contentType="x/y")

    (first,), (second,) = got(channel, left), got(channel, right)
    assert (first.body, first.properties.type) == (b"\x00\xff", "plain")
    assert (second.body, second.properties.type) == (b"b", "special")
    assert (second.properties.app_id, second.properties.content_type) == ("spark", "x/y")
    assert second.properties.delivery_mode == 2


def test_rows_of_all_tasks_are_in_the_queue_with_ids_of_their_own(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name
) -> None:
    queue = name("many")
    channel.declare(queue)
    rows = spark.range(0, 25_000, 1, 3).selectExpr("CAST(id AS STRING) AS body")

    save(rows, broker, routingKey=queue, confirmWindow="700")

    channel.consume(queue, no_ack=True)
    messages = channel.deliveries(25_000)
    assert sorted(int(each.body) for each in messages) == list(range(25_000))
    assert len({each.properties.message_id for each in messages}) == 25_000


def test_a_stream_that_is_run_again_publishes_the_same_ids(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name, tmp_path: Path
) -> None:
    queue = name("again")
    channel.declare(queue)
    for _ in range(3):
        spark.range(100).selectExpr("CAST(id AS STRING) AS value").coalesce(1).write.mode(
            "append"
        ).text(str(tmp_path / "in"))
    checkpoint = tmp_path / "checkpoint"
    rows = spark.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "body")

    def run() -> None:
        writer = rows.writeStream.format("rabbitmq").option("checkpointLocation", str(checkpoint))
        options = {"uri": broker.url, "routingKey": queue}
        writer.options(**options).trigger(availableNow=True).start().awaitTermination()

    run()
    first = got(channel, queue)
    # The query dies after the rows were sent and before it noted that: it sends them again.
    for commit in (checkpoint / "commits").glob("*0*"):
        commit.unlink()
    run()
    second = got(channel, queue)

    assert len(first) == 300
    assert {(each.body, each.properties.message_id) for each in first} == {
        (each.body, each.properties.message_id) for each in second
    }
    assert len({each.properties.message_id for each in second}) == 300


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
@pytest.mark.parametrize(
    "writes",
    [
        [(["body"], {"writeName": "left"}), (["body"], {"writeName": "right"})],
        [(["body"], {"type": "left"}), (["body"], {"type": "right"})],
        [(["body"], {}), (["body", "'right' AS type"], {})],
    ],
    ids=["name", "type", "columns"],
)
def test_two_writes_of_a_batch_have_ids_of_their_own_and_the_same_when_it_is_done_again(
    spark: SparkSession,
    broker: TestBroker,
    channel: Channel,
    name: Name,
    tmp_path: Path,
    writes: list[tuple[list[str], dict[str, str]]],
) -> None:
    queue = name("two")
    channel.declare(queue)
    numbers = spark.range(20).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    numbers.write.text(str(tmp_path / "in"))
    rows = spark.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "body")
    checkpoint = tmp_path / "checkpoint"

    def run(host: str) -> list[tuple[bytes, str]]:
        def write(batch: DataFrame, batch_id: int) -> None:
            for columns, options in writes:
                save(batch.selectExpr(*columns), broker, routingKey=queue, appId=host, **options)

        writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        return [(each.body, each.properties.message_id) for each in got(channel, queue)]

    first = run("one")
    for commit in (checkpoint / "commits").glob("*0*"):
        commit.unlink()
    second = run("another")

    assert [int(body) for body, _ in first] == [*range(20), *range(20)]
    assert len({message_id for _, message_id in first}) == 40
    assert second == first


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
@pytest.mark.parametrize("told_by", ["inheritable_thread_target", "writeId"])
def test_writes_in_threads_have_the_same_ids_when_their_batch_is_done_again(
    spark: SparkSession,
    broker: TestBroker,
    channel: Channel,
    name: Name,
    tmp_path: Path,
    told_by: str,
) -> None:
    queue = name("threads")
    channel.declare(queue)
    numbers = spark.range(20).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    numbers.write.text(str(tmp_path / "in"))
    rows = spark.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "body")
    checkpoint = tmp_path / "checkpoint"

    def run() -> list[tuple[bytes, str]]:
        def publish(batch: DataFrame, batch_id: int) -> None:
            session = batch.sparkSession
            options = {"writeId": f"shop-{batch_id}"} if told_by == "writeId" else {}

            def write(kind: str) -> None:
                warren.spark.session()
                save(batch, broker, routingKey=queue, type=kind, **options)

            with ThreadPoolExecutor() as pool:
                inherited = [
                    write if options else inheritable_thread_target(session)(write)
                    for _ in range(2)
                ]
                list(pool.map(lambda each, kind: each(kind), inherited, ("left", "right")))

        writer = rows.writeStream.foreachBatch(publish).option(
            "checkpointLocation", f"{checkpoint}"
        )
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted((each.body, each.properties.message_id) for each in got(channel, queue))

    first = run()
    for commit in (checkpoint / "commits").glob("*0*"):
        commit.unlink()
    second = run()

    assert second == first
    assert len({message_id for _, message_id in first}) == 40


def test_a_row_that_no_queue_takes_fails_the_query_and_names_its_key(
    spark: SparkSession, broker: TestBroker
) -> None:
    rows = spark.sql("SELECT 'x' AS body, 'nobody-reads-this' AS routing_key")
    with pytest.raises(
        PySparkException, match=r"no queue for routing key 'nobody-reads-this'.*option onUnroutable"
    ):
        save(rows, broker)


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
def test_an_exchange_that_is_not_there_fails_the_query_and_says_to_declare_it(
    spark: SparkSession, broker: TestBroker
) -> None:
    rows = spark.sql("SELECT 'x' AS body, 'key' AS routing_key")
    with pytest.raises(PySparkException, match=r"no exchange 'nowhere'.*: declare it"):
        save(rows, broker, exchange="nowhere")


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("'nobody' AS user_id", r"user_id property set to 'nobody' .*: log in as .*, or drop the"),
        ("'amq.rabbitmq.reply-to' AS reply_to", "fast reply consumer does not exist: correct that"),
        ("'soon' AS expiration", "invalid expiration 'soon'.*: correct that column"),
    ],
)
def test_properties_that_the_broker_refuses_fail_the_query_with_a_remedy(
    spark: SparkSession, broker: TestBroker, column: str, problem: str
) -> None:
    with pytest.raises(PySparkException, match=problem):
        save(spark.sql(f"SELECT 'x' AS body, 'q' AS routing_key, {column}"), broker)


def test_a_queue_that_stays_full_fails_the_query_after_so_many_tries_and_says_what_to_do(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name
) -> None:
    queue = name("full")
    channel.declare(queue, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    rows = spark.range(3).coalesce(1).selectExpr("CAST(id AS STRING) AS body")

    refused = f"refuses messages, such as those with routing key '{queue}'"
    with pytest.raises(PySparkException, match=f"{refused}: make room in it") as error:
        save(rows, broker, routingKey=queue, retries="1")
    assert len(got(channel, queue)) == 1
    reason = not_taken(error.value)  # so a pipeline keeps what it quarantines in its table
    assert reason is not None
    assert reason.endswith(refused)


def test_a_broker_short_of_memory_fails_the_query_when_it_was_waited_for(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name
) -> None:
    queue = name("blocked")
    channel.declare(queue)
    rows = spark.range(20_000).coalesce(1).selectExpr("repeat('x', 1000) AS body")
    broker.memory_alarm(True)
    try:
        with pytest.raises(PySparkException, match=r"no messages for 1 s \(low on memory\)"):
            save(rows, broker, routingKey=queue, blockedTimeoutMs="700")
    finally:
        broker.memory_alarm(False)


def test_rows_that_no_queue_takes_can_be_dropped_or_dead_lettered(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name
) -> None:
    exchange, queue, dead = name("dead"), name("taken"), name("dead")
    channel.declare_exchange(exchange, "fanout")
    channel.declare(queue)
    channel.declare(dead)
    channel.bind(dead, exchange)
    rows = spark.createDataFrame(
        [("a", queue), ("b", "nowhere")], "body string, routing_key string"
    )

    save(rows, broker, onUnroutable="drop")
    save(rows, broker, onUnroutable="deadletter", deadLetterExchange=exchange)

    assert [each.body for each in got(channel, queue)] == [b"a", b"a"]
    assert [each.body for each in got(channel, dead)] == [b"b"]


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ("'x' AS bodi", {}, "did you mean 'body'"),
        ("1 AS body", {}, "column body .* is int, but must be binary or string"),
        ("'x' AS body, 'high' AS priority", {}, "is string, but must be tinyint"),
        ("'x' AS body, 'x' AS BODY2, 1 AS total", {}, r"to_json\(struct"),
        ("'x' AS body, array('a') AS headers", {}, "must be map<string,string>"),
        ("'x' AS type", {}, "column body .* is missing"),
        ("'x' AS body", {"routingkey2": "q"}, "did you mean 'routingKey'"),
        ("'x' AS body", {"onUnroutable": "deadletter"}, "needs a deadLetterExchange"),
        ("'x' AS body", {"writeName": "é" * 65}, "must be at most 128 octets"),
        ("'x' AS body", {"writeId": "é" * 33}, "must be 1 to 64 octets"),
        ("'x' AS body", {"writeId": ""}, "must be 1 to 64 octets"),
        ("'x' AS body", {"priority": "300"}, "300 is not between 0 and 255"),
        (
            "'x' AS body",
            {"routingKey": "é" * 128},
            "routingKey .* 256 octets; 255 is the most; option onTooLong=shorten makes it fit",
        ),
        ("'x' AS body", {"exchange": "e" * 256}, "exchange .* has 256 octets; 255 is the most"),
        ("'x' AS body", {"onUnroutable": "drop"}, "nothing says where the rows go"),
        ("'x' AS body", {"routingKey": "q", "queues": "q"}, "queues .* is for what is read"),
    ],
)
def test_a_table_or_option_that_can_not_be_used_is_refused_before_anything_is_sent(
    spark: SparkSession,
    broker: TestBroker,
    columns: str,
    options: dict[str, str],
    problem: str,
) -> None:
    with pytest.raises(AnalysisException, match=problem) as refused:
        save(spark.sql(f"SELECT {columns}"), broker, **options)
    assert "guest:guest" not in str(refused.value)


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("CAST(NULL AS STRING) AS body, 'q' AS routing_key", "column 'body', row 0 .* is null"),
        ("'x' AS body, repeat('k', 256) AS routing_key", "column 'routing_key', row 0 .* 256 oct"),
        (
            "'x' AS body, 'q' AS routing_key, map('h', repeat('x', 300000)) AS headers",
            "column 'headers', row 0 .* the properties are 3000.. octets; the broker takes 1310",
        ),
        (
            "'x' AS body, 'q' AS routing_key, 256 AS priority",
            "column 'priority', row 0 .* not between 0 and 255",
        ),
        (
            "'x' AS body, 'q' AS routing_key, map('h', double('NaN')) AS headers",
            "column 'headers', row 0 .* 'h' is nan, and a header holds finite numbers only",
        ),
        (
            "'x' AS body, 'q' AS routing_key, map('h', timestamp'1960-01-01') AS headers",
            "column 'headers', row 0 .* 'h' is a time before 1970",
        ),
    ],
)
def test_a_value_that_no_message_can_have_is_named_with_its_column_and_row(
    spark: SparkSession, broker: TestBroker, row: str, problem: str
) -> None:
    with pytest.raises(PySparkException, match=problem):
        save(spark.sql(f"SELECT {row}"), broker)


@pytest.fixture
def far_east(spark: SparkSession) -> Iterator[None]:
    """A session's time zone that Python does not know."""
    spark.conf.set("spark.sql.session.timeZone", "GMT+8")
    yield
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize("broker", ["warren"], indirect=True)
def test_times_are_published_in_any_time_zone_of_sparks(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Name
) -> None:
    queue = name("times")
    channel.declare(queue)
    at = "timestamp'2026-01-01 08:00:00'"

    save(
        spark.sql(f"SELECT 'x' AS body, {at} AS timestamp, map('at', {at}) AS headers"),
        broker,
        routingKey=queue,
    )

    (message,) = got(channel, queue)
    assert message.properties.timestamp == 1767225600
    assert message.properties.headers["at"].timestamp() == 1767225600


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
def test_a_password_shows_in_no_error(spark: SparkSession, broker: TestBroker, capfd: Any) -> None:
    secret = "hunter2-do-not-show"
    uri = broker.url.replace("guest:guest", f"guest:{secret}")
    rows = spark.sql("SELECT 'x' AS body, 'q' AS routing_key")
    with pytest.raises(PySparkException, match="refused the login of 'guest'") as refused:
        rows.write.format("rabbitmq").options(url=uri, retries="0").mode("append").save()
    assert secret not in str(refused.value)
    shown = capfd.readouterr()
    assert secret not in shown.out + shown.err


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
def test_a_broker_that_is_not_there_is_named_at_once_with_the_remedy(
    spark: SparkSession, broker: TestBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = spark.sql("SELECT 'x' AS body, 'q' AS routing_key")
    with pytest.raises(PySparkException, match=r"no broker answers at guest@127.0.0.1:9 "):
        rows.write.format("rabbitmq").options(uri="amqp://guest:guest@127.0.0.1:9/").mode(
            "append"
        ).save()
    assert "trying again" not in capfd.readouterr().err
