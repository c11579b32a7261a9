"""Where a pipeline puts messages that it can't read, whatever is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.pipelines import Job, got, order, ready, send
from tests.support.brokers import TestBroker
from tests.support.wire import Channel
from warren.errors import PipelineStopped

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

REASON = "x-warren-reason"
TABLE = "tables: {t: {schema: id INT}}\n"
#: Surrogates stand for octets that are not UTF-8. All of these are good to the broker.
ODD: list[dict[str, Any]] = [
    {"correlation_id": "\udce9" * 255, "message_id": "\udce9" * 255, "reply_to": "\udce9" * 255},
    {"headers": {"\udce9" * 255: "name", "other": "\udce9" * 255}},
    {"headers": {"binary": b"\xff" * 130_900}},
    {"headers": {str(number): b"\xff" * 80 for number in range(1_450)}},
    {"headers": {"CC": ["nowhere"], "BCC": ["nowhere"], "x-death": [{"queue": "q"}]}},
    {"headers": {"deep": [[[[]]]], "table": {"a": {"b": None}}, "none": None}},
    {"timestamp": 2**63, "priority": 255, "delivery_mode": 1, "expiration": "4000000000"},
    {"user_id": "guest", "app_id": "", "type": "\0", "content_encoding": "\udcff"},
]


def test_the_exchange_gets_any_message_with_its_reason(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Any, tmp_path: Path
) -> None:
    queue, ward = name("odd"), name("ward")
    for each in (queue, ward):
        channel.declare(each)
    for properties in ODD:
        send(broker.url, queue, b"{", **properties)
    job = Job(broker.url, tmp_path)

    total = job.run(f"queues: {queue}\n{TABLE}quarantine: {{exchange: '', routing_key: {ward}}}\n")

    found = got(channel, ward)
    assert (total.quarantined, len(found)) == (len(ODD), len(ODD))
    assert [each.properties.headers[REASON].partition(":")[0] for each in found] == [
        *["not JSON"] * (len(ODD) - 1),
        "content-encoding",
    ]
    assert found[0].properties.correlation_id == "\ufffd" * 85
    assert found[1].properties.headers["\ufffd" * 85] == "name"
    assert set(found[2].properties.headers) == {REASON}
    assert set(found[4].properties.headers) == {REASON, "x-death"}
    assert not (job.folder / "job-data" / "quarantine").exists()


@pytest.mark.parametrize("kind", ["parquet", "orc", "json"])
def test_the_table_gets_any_message_as_it_came(job: Job, wire: Channel, kind: str) -> None:
    queue = f"odd.{kind}"
    wire.declare(queue)
    for properties in ODD:
        send(job.url, queue, b"{", **properties)

    total = job.run(f"queues: {queue}\n{TABLE}quarantine: {{format: {kind}}}\n")

    assert total.quarantined == len(ODD)
    (file,) = (job.folder / "job-data" / "quarantine").glob(f"batch=*/part-*.{kind}")
    assert file.stat().st_size > 0


def test_what_cant_name_a_folder_is_no_reason_to_stop(job: Job, wire: Channel) -> None:
    wire.declare("named")
    fitting = ["x" * 247, "/" * 82, "ü€", "..", "", " \t\n", "\x01"]
    unfit = ["x" * 248, "/" * 83, "€" * 83, "\0", "a\0"]
    for country in (*fitting, *unfit):
        wire.publish("named", order(1, country), type=country[:9])
    wire.publish("named", order(2, "de"), type="x" * 251)
    wire.sync()

    total = job.run(
        "queues: named\n"
        "tables:\n"
        "  t: {schema: 'id INT, country STRING', columns: type, partition_by: [type, country]}\n"
    )

    assert (total.written, total.quarantined) == (len(fitting), len(unfit) + 1)
    assert total.reasons == {
        "field 'country' can't be the name of a folder": len(unfit) - 2,
        "field 'type' can't be the name of a folder": 3,
    }


def test_what_no_queue_of_the_exchange_takes_is_kept_in_the_table(
    job: Job, wire: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    for queue in ("stray", "stray.ward"):
        wire.declare(queue)
    wire.declare_exchange("stray.sick", "direct")
    wire.bind("stray.ward", "stray.sick", "elsewhere")
    text = f"queues: stray\n{TABLE}quarantine: {{exchange: stray.sick}}\n"
    wire.publish("stray", b"{")
    wire.sync()

    first = job.run(text)
    second = job.run(text)

    assert (first.quarantined, second.drained) == (1, 0)
    assert [(row["reason"], row["body"]) for row in job.rows("quarantine")] == [("not JSON", b"{")]
    (told,) = [each for each in caplog.messages if each.startswith("quarantine: ")]
    assert told == (
        "quarantine: exchange 'stray.sick' has no queue for routing key 'stray' (312 NO_ROUTE); "
        f"that of this batch is in {job.folder / 'job-data' / 'quarantine'}"
    )


@pytest.mark.parametrize("key", ["odd\nkey", "it's\r\nTraceback: x", '"' * 9])
def test_no_routing_key_keeps_a_message_from_being_put_away(
    job: Job, wire: Channel, key: str
) -> None:
    wire.declare("keyed")
    wire.declare_exchange("keyed.in", "fanout")
    wire.declare_exchange("keyed.sick", "direct")
    wire.bind("keyed", "keyed.in")
    wire.publish(key, b"{", exchange="keyed.in")
    wire.sync()

    total = job.run(f"queues: keyed\n{TABLE}quarantine: {{exchange: keyed.sick}}\n")

    assert total.quarantined == 1
    (row,) = job.rows("quarantine")
    assert (row["routing_key"], row["body"]) == (key, b"{")


def test_what_the_exchange_takes_in_the_end_is_not_in_the_table_as_well(
    job: Job, wire: Channel
) -> None:
    for queue in ("twice", "twice.ward", "twice.out"):
        wire.declare(queue)
    wire.declare_exchange("twice.sick", "direct")
    wire.declare_exchange("twice.done", "fanout")
    text = (
        f"queues: twice\n{TABLE}quarantine: {{exchange: twice.sick}}\n"
        "publish: {done: {sql: SELECT string(id) AS body FROM t, exchange: twice.done}}\n"
    )
    for body in (b"{", b'{"id": 1}'):
        wire.publish("twice", body)
    wire.sync()
    with pytest.raises(PipelineStopped, match=r"twice\.done"):
        job.run(text)
    assert len(job.rows("quarantine")) == 1

    wire.bind("twice.ward", "twice.sick", "twice")
    wire.bind("twice.out", "twice.done")
    total = job.run(text)

    assert (total.written, total.quarantined) == (1, 1)
    assert (ready(wire, "twice.ward"), ready(wire, "twice.out")) == (1, 1)
    assert list((job.folder / "job-data" / "quarantine").rglob("*.parquet")) == []


def test_a_message_that_comes_back_is_kept_in_the_table(job: Job, wire: Channel) -> None:
    wire.declare("round")
    wire.declare_exchange("round.sick", "fanout")
    wire.bind("round", "round.sick", "")
    text = f"queues: round\n{TABLE}quarantine: {{exchange: round.sick}}\n"
    wire.publish("round", b"{", headers={"tenant": "blue"})
    wire.sync()

    counts = [job.run(text).quarantined for _ in range(3)]

    assert counts == [1, 1, 0]
    assert ready(wire, "round") == 0
    (row,) = job.rows("quarantine")
    assert (row["body"], dict(row["headers"])) == (b"{", {"tenant": "blue", REASON: "not JSON"})
