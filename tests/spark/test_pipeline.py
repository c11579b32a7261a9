"""``warren run``'s pipelines: queues to tables, as a file says, in one Spark session."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tests.spark.pipelines import Job, got, order, ready
from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Message
from warren.errors import PipelineError, PipelineStopped
from warren.pipeline import keys, run
from warren.pipeline.run import Progress

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SHOP = """
queues: QUEUE
tables:
  orders:
    take: {type: order, queue: "*"}
    schema: id BIGINT NOT NULL, country STRING, cents INT
    columns: [offset, received_at]
    partition_by: country
  notes:
    take: {routing_key: "#"}
    as: text
    schema: line STRING
    sql: SELECT upper(line) AS line, _message.app_id FROM messages WHERE line <> 'drop'
  words:
    sql: SELECT explode(split(line, ' ')) AS word FROM notes
ignore: [{type: noise}]
publish:
  sold:
    sql: SELECT country AS routing_key, country, sum(cents) AS cents FROM orders GROUP BY country
    exchange: EXCHANGE
    type: sold
statistics: true
"""


class Nowhere(DataSource):
    """A sink that is known in the session in which it was registered."""

    @classmethod
    def name(cls) -> str:
        return "nowhere"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        class Writer(DataSourceWriter):
            def write(self, iterator: Any) -> WriterCommitMessage:
                list(iterator)
                return WriterCommitMessage()

        return Writer()


# -- the whole way ---------------------------------------------------------------------------------
def test_messages_become_rows_of_the_table_that_takes_them(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Any, tmp_path: Path
) -> None:
    queue, exchange, results = name("shop"), name("results"), name("sold")
    channel.declare(queue)
    channel.declare_exchange(exchange, "fanout")
    channel.declare(results)
    channel.bind(results, exchange, "")
    for number in range(30):
        country = "de" if number % 3 else "fr"
        channel.publish(queue, order(number, country), type="order", timestamp=1_767_323_045)
    for line in ("a b", "drop", "c"):
        channel.publish(queue, line.encode(), type="note", app_id="pen")
    channel.publish(queue, b"x", type="noise")
    channel.publish(queue, b"{", type="order")
    channel.sync()
    job = Job(broker.url, tmp_path)

    total = job.run(SHOP.replace("QUEUE", queue).replace("EXCHANGE", exchange))

    assert (total.drained, total.written, total.quarantined, total.ignored) == (35, 33, 1, 1)
    assert total.adds_up
    assert list(total.tables) == ["orders", "notes", "words"]  # as the file has them
    rows = job.rows("orders")
    assert {row["id"]: (row["country"], row["cents"], row["offset"]) for row in rows} == {
        number: ("de" if number % 3 else "fr", 5, number) for number in range(30)
    }
    assert {(row["line"], row["app_id"]) for row in job.rows("notes")} == {
        ("A B", "pen"),
        ("C", "pen"),
    }
    assert sorted(job.column("words", "word")) == ["A", "B", "C"]
    (bad,) = job.rows("quarantine")
    assert (bad["reason"], bad["table"], bad["body"]) == ("not JSON", "orders", b"{")
    told = {message.body: message.properties.type for message in got(channel, results)}
    assert told == {b'{"country":"de","cents":100}': "sold", b'{"country":"fr","cents":50}': "sold"}
    figures = {row["type"]: row for row in job.rows("statistics")}
    assert {kind: row["messages"] for kind, row in figures.items()} == {
        "order": 31,
        "note": 3,
        "noise": 1,
    }
    assert figures["order"]["quarantined"] == 1
    assert figures["note"]["app_id"] == "pen"
    assert figures["order"]["delay_min_ms"] > 0
    assert figures["note"]["delay_min_ms"] is None


def test_the_session_that_it_runs_in_stays_the_active_one(
    job: Job, spark: SparkSession, wire: Channel
) -> None:
    wire.declare("watched")
    spark.dataSource.register(Nowhere)
    job.write("queues: watched\ntables: {orders: {schema: id INT}}")

    job.make().check()

    assert SparkSession.getActiveSession() is spark
    spark.range(3).write.format("nowhere").mode("append").save()


def test_a_run_goes_on_where_the_last_one_ended(job: Job, wire: Channel) -> None:
    wire.declare("again")
    text = "queues: again\ntables: {orders: {schema: id INT, columns: [offset]}}"

    totals = []
    for start in (0, 10):
        for number in range(start, start + 10):
            wire.publish("again", order(number))
        wire.sync()
        totals.append(job.run(text).drained)

    assert totals == [10, 10]
    assert sorted((row["offset"], row["id"]) for row in job.rows("orders")) == [
        (number, number) for number in range(20)
    ]


def test_a_batch_tells_how_much_still_waits(
    job: Job, wire: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_BACKLOG_EVERY_S", 0.0)
    wire.declare("long")
    wire.declare("log", durable=True, arguments={"x-queue-type": "stream"})
    for number in range(30):
        wire.publish("long", order(number))
        wire.publish("log", order(number))
    wire.sync()
    text = "queues: QUEUES\nsource: {maxMessagesPerTrigger: 20}\ntables: {t: {schema: id INT}}"

    job.run(text.replace("QUEUES", "[long, log]"))
    assert [each.backlog for each in job.batches] == [20, 10, 0]
    job.batches.clear()
    job.run(text.replace("QUEUES", "log") + "\nfolder: other")
    assert {each.backlog for each in job.batches} == {None}


def test_rows_of_a_queue_stand_in_its_order(job: Job, wire: Channel) -> None:
    wire.declare("sorted")
    for number in range(500):
        wire.publish("sorted", order(number % 300))
    wire.sync()
    schema = "schema: id INT, columns: [offset]"

    job.run(
        "queues: sorted\n"
        "tables:\n"
        f"  unlike: {{take: {{type: none}}, {schema}}}\n"
        f"  orders: {{{schema}, deduplicate: {{key: id, watermark: 1h}}}}\n"
    )

    assert job.column("orders", "offset") == list(range(300))


# -- exactly once ----------------------------------------------------------------------------------
def test_a_batch_that_is_done_again_changes_nothing(job: Job, wire: Channel) -> None:
    wire.declare("redone")
    wire.declare("redone.sold")
    for number in range(20):
        wire.publish("redone", order(number % 15))
    wire.publish("redone", b"broken")
    wire.sync()
    job.write(
        """
        queues: redone
        tables:
          orders:
            schema: id INT, cents INT
            deduplicate: {key: id, watermark: 1h}
        publish:
          sold:
            sql: SELECT id, cents FROM orders
            exchange: ""
            routing_key: redone.sold
        """
    )

    def die(progress: Progress) -> None:
        raise RuntimeError("the last moment before Spark would call the batch done")

    with pytest.raises(PipelineStopped, match="RuntimeError: the last moment"):
        job.run(told=die)
    total = job.run()

    assert (total.drained, total.written, total.doubles, total.quarantined) == (21, 15, 5, 1)
    assert sorted(job.column("orders", "id")) == list(range(15))
    assert len(job.rows("quarantine")) == 1
    published = Counter(m.properties.message_id for m in got(wire, "redone.sold"))
    assert (len(published), set(published.values())) == (15, {2})


def test_a_batch_that_is_done_again_with_another_file_leaves_nothing_of_the_first(
    job: Job, wire: Channel
) -> None:
    wire.declare("edited")
    for number in range(4):
        wire.publish("edited", order(number), type="order")
        wire.publish("edited", order(f"x{number}"), type="note")
    wire.sync()
    deduplicated = "deduplicate: {key: id, watermark: 1h}"
    first = f"""
    queues: edited
    tables:
      gone: {{take: {{type: order}}, schema: id INT, {deduplicated}}}
      old: {{sql: SELECT * FROM gone}}
      orders: {{schema: id INT, {deduplicated}}}
    statistics: true
    """
    second = f"""
    queues: edited
    tables:
      gone: {{take: {{type: other}}, schema: id INT, {deduplicated}}}
      orders: {{schema: id STRING, {deduplicated}}}
    """

    def die(progress: Progress) -> None:
        raise RuntimeError("the last moment")

    with pytest.raises(PipelineStopped, match="RuntimeError: the last moment"):
        job.run(first, told=die)
    data = job.folder / "job-data"
    assert (len(job.rows("gone")), len(job.rows("quarantine"))) == (4, 4)
    total = job.run(second)

    assert (total.written, total.quarantined) == (8, 0)
    assert sorted(job.column("orders", "id")) == [*"0123", "x0", "x1", "x2", "x3"]
    left = {str(each.parent.relative_to(data)) for each in data.glob("[a-z]*/batch=*")}
    assert left == {"orders"}
    (keys_left,) = data.glob("keys/*/*")
    assert keys_left.parent.name == "orders"

    for number in range(4):
        wire.publish("edited", order(number), type="other")
    wire.sync()
    assert job.run(second).doubles == 0  # in another table they are new


def test_what_is_published_to_one_place_has_ids_of_its_own_in_every_attempt(
    job: Job, wire: Channel
) -> None:
    wire.declare("one")
    wire.declare("one.place")
    for number in range(10):
        wire.publish("one", order(number))
        wire.publish("one", b"broken %d" % number)
    wire.sync()
    query = (
        "SELECT 'x' AS body, map('id', CAST(id AS STRING)) AS headers FROM orders "
        "DISTRIBUTE BY rand() SORT BY rand()"
    )
    entry = f"{{sql: \"{query}\", exchange: '', routing_key: one.place}}"
    job.write(
        f"""
        queues: one
        tables: {{orders: {{schema: id INT}}}}
        publish:
          left: {entry}
          quarantine: {entry}
        quarantine: {{exchange: '', routing_key: one.place}}
        """
    )

    def die(progress: Progress) -> None:
        raise RuntimeError("the last moment before Spark would call the batch done")

    with pytest.raises(PipelineStopped, match="RuntimeError: the last moment"):
        job.run(told=die)
    first = got(wire, "one.place")
    job.run()
    second = got(wire, "one.place")

    assert len({each.properties.message_id for each in first}) == len(first) == 30
    assert [_told(each) for each in second] == [_told(each) for each in first]


def test_rows_that_are_too_long_for_a_message_end_the_run_or_are_shortened(
    job: Job, wire: Channel
) -> None:
    wire.declare("wide")
    wire.declare("wide.out")
    wire.publish("wide", order(1, country="x" * 300))
    wire.sync()
    text = """
    queues: wide
    tables: {orders: {schema: "id INT, country STRING"}}
    publish:
      sold: {sql: "SELECT id, country AS type FROM orders", exchange: "", routing_key: wide.out}
    """

    with pytest.raises(PipelineStopped, match=r"column 'type', row 0 .* 300 octets; 255 is the"):
        job.run(text)
    job.run(text.replace("routing_key: wide.out", "routing_key: wide.out, on_too_long: shorten"))

    (message,) = got(wire, "wide.out")
    assert (message.body, message.properties.type) == (b'{"id":1}', "x" * 255)


def _told(message: Message) -> tuple[Any, ...]:
    return message.properties.message_id, message.properties.headers, message.body


def test_a_key_that_came_before_is_left_out(
    job: Job, wire: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "WHOLE_EVERY", 2)
    wire.declare("keys")
    text = """
    queues: keys
    tables:
      orders:
        schema: id INT, country STRING
        deduplicate: {key: [id, country], watermark: 1h}
    """
    doubles = []
    for country in ("de", "de", "fr", "de", "fr"):
        wire.publish("keys", order(1, country))
        wire.publish("keys", order(None))
        wire.sync()
        doubles.append(job.run(text).doubles)

    assert doubles == [0, 1, 0, 1, 1]
    assert Counter(job.column("orders", "country"))["fr"] == 1
    assert job.column("orders", "id").count(None) == 5  # what has no key is no double
    assert len(list((job.folder / "job-data/keys/orders").iterdir())) <= 4


def test_a_folder_may_have_any_name(job: Job, wire: Channel, tmp_path: Path) -> None:
    wire.declare("bracketed")
    odd = Job(job.url, tmp_path / "job [1] {a,b} *?\\x")
    odd.folder.mkdir()
    text = """
    queues: bracketed
    tables: {orders: {schema: id INT, deduplicate: {key: id, watermark: 1h}}}
    statistics: true
    """
    doubles = []
    for _ in range(3):
        wire.publish("bracketed", order(1))
        wire.publish("bracketed", b"{")
        wire.sync()
        doubles.append(odd.run(text).doubles)

    assert doubles == [0, 1, 1]
    assert (odd.column("orders", "id"), len(odd.rows("quarantine"))) == ([1], 3)


def test_a_key_is_forgotten_after_its_time(job: Job, wire: Channel) -> None:
    wire.declare("late")
    text = """
    queues: late
    tables: {orders: {schema: id INT, deduplicate: {key: id, watermark: 1ms}}}
    """
    doubles = []
    for _ in range(2):
        wire.publish("late", order(1))
        wire.sync()
        doubles.append(job.run(text).doubles)

    assert doubles == [0, 0]


def test_times_keep_their_microseconds(job: Job, wire: Channel) -> None:
    wire.declare("times")
    wire.declare("times.out")
    moments = ["2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123457Z"]
    for at in (*moments, moments[0]):
        wire.publish("times", json.dumps({"at": at, "local": at[:-1]}).encode())
    wire.publish("times", b"{")
    wire.sync()

    total = job.run(
        """
        queues: times
        tables:
          t: {schema: "at TIMESTAMP, local TIMESTAMP_NTZ", deduplicate: {key: at, watermark: 1h}}
          local: {sql: SELECT local FROM t, format: csv}
          days: {sql: SELECT at FROM t, format: json, options: {timestampformat: yyyy-MM-dd}}
        quarantine: {format: json}
        publish:
          out: {sql: SELECT * FROM t, exchange: "", routing_key: times.out}
        """
    )

    assert (total.written, total.doubles) == (2, 1)
    published = [json.loads(message.body) for message in got(wire, "times.out")]
    assert published == [{"at": at, "local": at[:-1]} for at in moments]
    assert written(job, "local") == [at[:-1] for at in moments]
    assert written(job, "days") == ['{"at":"2026-01-02"}'] * 2
    (bad,) = written(job, "quarantine")
    assert re.fullmatch(r"[\d-]+T[\d:]+\.\d{6}Z", json.loads(bad)["received_at"])


def written(job: Job, table: str) -> list[str]:
    """The lines of a table of text."""
    files = sorted((job.folder / "job-data" / table).glob("batch=*/part-*"))
    return [line for file in files for line in file.read_text().splitlines()]


# -- mistakes --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("schema: id INTT", "job.yaml:3: table 't': schema: "),
        ("schema: 'id INT, ID INT'", "job.yaml:3: table 't': schema has the column 'ID' twice"),
        ("schema: id INT, sql: SELECT idd FROM messages", "cannot be resolved. Did you mean"),
        ("schema: id INT, sql: DROP TABLE messages", "table 't': sql: "),
        ("schema: id INT, partition_by: day", "partition_by: there is no column 'day' among id"),
        ("schema: 'id INT, queue INT', columns: queue", "the column 'queue' is there twice"),
        ("schema: batch INT", "the column 'batch' is warren's"),
        ("schema: tags ARRAY<INT>, format: csv", "CSV can't hold the column 'tags'"),
        ("schema: id INT, as: text", "text is one column of type STRING"),
        ("schema: id INT, sql: SELECT null AS x FROM messages", "the column 'x' has no type"),
        ("schema: id VARCHAR(5)", "job.yaml:3: table 't': schema: "),
        ("schema: 'm MAP<INT, INT>'", "can only contain STRING as a key type"),
        ("schema: id INT, csv: {sep: ''}", "table 't': csv: Delimiter cannot be empty"),
        ("schema: id INT, deduplicate: {key: x, watermark: 1h}", "the schema has no column 'x'"),
    ],
)
def test_spark_looks_at_all_of_it_before_anything_is_consumed(
    job: Job, wire: Channel, table: str, told: str
) -> None:
    wire.declare("kept")
    wire.publish("kept", order(1))
    wire.sync()
    job.write(f"queues: kept\ntables:\n  t: {{{table}}}\n")

    with pytest.raises(PipelineError) as error:
        job.make().check()

    assert told in str(error.value)
    assert "==" not in str(error.value)
    assert ready(wire, "kept") > 0


def test_what_the_broker_lacks_is_told_before_anything_is_consumed(job: Job, wire: Channel) -> None:
    wire.declare("there")
    table = "tables: {t: {schema: id INT}}\n"
    job.write(f"queues: [there, gone]\n{table}")
    with pytest.raises(PipelineError, match=r"job.yaml:1: queues: there is no queue 'gone'"):
        job.make().check()

    job.write(f"queues: there\n{table}publish:\n  x: {{sql: SELECT id FROM t, exchange: gone}}\n")
    with pytest.raises(PipelineError, match=r"job.yaml:4: there is no exchange 'gone'"):
        job.make().check()

    job.write(
        f"queues: there\n{table}"
        "publish:\n  x: {sql: 'SELECT 5 AS type, id FROM t', exchange: ''}\n"
    )
    with pytest.raises(PipelineError, match=r"job.yaml:4: publish 'x': column type is int"):
        job.make().check()


def test_a_publish_without_an_address_is_told_before_anything_is_consumed(
    job: Job, wire: Channel
) -> None:
    wire.declare("lost")
    text = (
        "queues: lost\ntables: {t: {schema: 'id INT, country STRING'}}\n"
        "publish:\n  x:\n    sql: SELECT id FROM t\n    exchange: ''\n"
    )
    job.write(text)
    with pytest.raises(PipelineError, match=r"job.yaml:6: publish 'x': nothing says where the"):
        job.make().check()

    job.write(text.replace("SELECT id", "SELECT id, country AS routing_key"))
    job.make().check()
    job.write(f"{text}    routing_key: lost.out\n")
    job.make().check()


def test_a_folder_that_cant_be_written_is_told_in_a_line(job: Job, wire: Channel) -> None:
    wire.declare("nowhere")
    wire.publish("nowhere", order(1))
    wire.sync()

    with pytest.raises(PipelineStopped) as stopped:
        job.run("queues: nowhere\ntables: {t: {schema: id INT, path: job.yaml/t}}")

    assert "IOException: " in str(stopped.value) or "NotDirectory" in str(stopped.value)
    assert "An error occurred while calling" not in str(stopped.value)

    total = job.run("queues: nowhere\ntables: {t: {schema: id INT}}")
    assert (total.drained, job.column("t", "id")) == (1, [1])


def test_a_checkpoint_that_cant_be_written_is_told_in_a_line(job: Job, wire: Channel) -> None:
    wire.declare("unmarked")
    wire.publish("unmarked", order(1))
    wire.sync()

    with pytest.raises(PipelineStopped) as stopped:
        job.run("queues: unmarked\ncheckpoint: job.yaml/c\ntables: {t: {schema: id INT}}")

    assert "\n" not in str(stopped.value)
    assert "An error occurred while calling" not in str(stopped.value)
    assert ready(wire, "unmarked") == 1
