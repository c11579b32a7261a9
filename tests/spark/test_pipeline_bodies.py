"""What a pipeline makes of bodies: those it reads, and those it quarantines, with the reason."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from typing import Any

import pytest

from tests.spark.pipelines import Job, got, order, send
from tests.support.wire import Channel

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def test_bodies_are_read_as_their_properties_say(job: Job, wire: Channel) -> None:
    wire.declare("kinds")
    raw = order(1)
    bodies: list[tuple[bytes, dict[str, Any]]] = [
        (raw, {}),
        (raw, {"content_type": "application/json; charset=utf-8"}),
        (raw, {"content_type": "application/vnd.shop+json"}),
        (raw, {"content_type": "text/plain"}),
        (b"1,de,5", {"content_type": "text/csv"}),
        (gzip.compress(raw), {"content_encoding": "gzip"}),
        (zlib.compress(raw), {"content_encoding": "deflate"}),
        (raw.decode().encode("utf-16"), {"content_type": "application/json; charset=utf-16"}),
    ]
    for body, properties in bodies:
        wire.publish("kinds", body, **properties)
    wire.sync()

    total = job.run("queues: kinds\ntables: {t: {schema: 'id INT, country STRING, cents INT'}}")

    assert (total.written, total.quarantined) == (len(bodies), 0), total.reasons
    assert {(row["id"], row["country"], row["cents"]) for row in job.rows("t")} == {(1, "de", 5)}


def short(reason: str) -> str:
    """As the count has it: without what is different in each message."""
    parts = reason.split(":")
    return ":".join(parts[: 2 if parts[0] == "content-encoding" else 1])


@pytest.mark.parametrize("packed", [False, True])
def test_what_cant_be_read_is_kept_with_the_reason(job: Job, wire: Channel, packed: bool) -> None:
    queue = f"broken.{packed}"
    wire.declare(queue)
    bad: dict[str, tuple[bytes, dict[str, Any]]] = {
        "not JSON": (b'{"id": 1', {}),
        "field 'cents' is not INT": (order(1, cents="many"), {}),
        "no field 'id'": (order(None), {}),
        "not a JSON object of its schema": (b"[1]", {}),
        "empty": (b"", {}),
        "not UTF-8": (b"\xff\xfe", {}),
        "its content-type is not known": (b"x", {"content_type": "image/png"}),
        "no table takes it": (order(1), {"type": "other"}),
        "not CSV, or of other types than its schema's": (b"x,y", {"content_type": "text/csv"}),
    }
    if packed:  # with one of these, bodies are read one by one
        bad["content-encoding: not decodable as gzip"] = (order(1), {"content_encoding": "gzip"})
        bad["content-encoding: not known"] = (order(2), {"content_encoding": "lz77"})
        bad["its charset is not known"] = (order(1), {"content_type": "text/json; charset=klingon"})
    for body, properties in bad.values():
        wire.publish(queue, body, **{"type": "order", "app_id": "shop", **properties})
    wire.publish(queue, order(1), type="order")
    wire.sync()

    total = job.run(
        f"queues: {queue}\n"
        "tables: {t: {take: {type: order}, schema: 'id INT NOT NULL, country STRING, cents INT'}}"
    )

    assert total.reasons == Counter(list(bad))
    assert (total.written, total.quarantined) == (1, len(bad))
    kept = {short(row["reason"]): row for row in job.rows("quarantine")}
    assert {reason: row["body"] for reason, row in kept.items()} == {
        reason: body for reason, (body, _) in bad.items()
    }
    assert {row["app_id"] for row in kept.values()} == {"shop"}


def test_a_quarantine_may_be_an_exchange(job: Job, wire: Channel) -> None:
    for queue in ("sick", "ward"):
        wire.declare(queue)
    headers = {"tenant": "blue", "CC": ["nowhere"]}
    wire.publish("sick", b"{", type="order", headers=headers, message_id="m", expiration="90000")
    wire.sync()

    total = job.run(
        "queues: sick\n"
        "tables: {t: {schema: id INT}}\n"
        'quarantine: {exchange: "", routing_key: ward}\n'
    )

    assert total.quarantined == 1
    (message,) = got(wire, "ward")
    told = message.properties
    assert (message.body, told.type, told.message_id, told.expiration) == (b"{", "order", "m", None)
    assert told.headers == {"tenant": "blue", "x-warren-reason": "not JSON"}
    assert not (job.folder / "job-data" / "quarantine").exists()


def test_headers_whose_names_become_one_are_no_reason_to_stop(job: Job, wire: Channel) -> None:
    for queue in ("unread", "unread.ward"):
        wire.declare(queue)
    headers = dict(zip(("\udcff", "\udcfe"), ("first", "second"), strict=True))
    send(job.url, "unread", b"{", headers=headers)

    job.run(
        "queues: unread\n"
        "tables: {t: {schema: id INT}}\n"
        'quarantine: {exchange: "", routing_key: unread.ward}\n'
    )

    (message,) = got(wire, "unread.ward")
    assert message.properties.headers == {"\ufffd": "first", "x-warren-reason": "not JSON"}


def test_a_body_is_one_json_object_and_nothing_follows_it(job: Job, wire: Channel) -> None:
    wire.declare("tails")
    good = [b'{"id":1}', b' {"id": 2}\n']
    for body in [
        *good,
        b'{"id":3}{"id":4}',
        b'{"id":5}\n{"id":6}\n',
        b'{"id":7},{"id":8}',
        b'{"id":9}}',
        b'{"id":10} and so on',
        b'{"id":12},"x":2',
        b'{"id":13},"_end":true}',
        b'{"id":14}],"x":[2',
        b'[{"id":11}]',
        b"null",
        b" ",
        b'{"id":15, "note": "a\tb"}',
    ]:
        wire.publish("tails", body)
    wire.sync()

    total = job.run("queues: tails\ntables: {t: {schema: id INT}}")

    assert sorted(job.column("t", "id")) == [1, 2]
    assert total.quarantined == 12
    assert total.reasons["more than one JSON object"] == 7
    assert total.reasons["more than one JSON object, or a bare tab or line break in a text"] == 2
    assert total.reasons["not a JSON object of its schema"] == 2


def test_what_must_be_there_must_be_there_however_deep(job: Job, wire: Channel) -> None:
    wire.declare("deep")
    for body in (
        b'{"at":{"zip":1},"lines":[{"sku":"a"},{"sku":"b"}],"by":{"x":{"n":1}}}',
        b"{}",
        b'{"at":{}}',
        b'{"lines":[{"sku":"a"},{}]}',
        b'{"by":{"x":{}}}',
    ):
        wire.publish("deep", body)
    wire.sync()

    total = job.run(
        """
        queues: deep
        tables:
          t:
            schema: >
              at STRUCT<zip: INT NOT NULL>, lines ARRAY<STRUCT<sku: STRING NOT NULL>>,
              by MAP<STRING, STRUCT<n: INT NOT NULL>>
        """
    )

    assert total.written == 2
    assert total.reasons == Counter(
        ["no field 'at.zip'", "no field 'lines.sku'", "no field 'by.n'"]
    )


def test_csv_is_read_as_others_write_it(job: Job, wire: Channel) -> None:
    wire.declare("sheets")
    csv = {"content_type": "text/csv"}
    for body in (b"1,de,5\r\n", b'2,"d""e, f",6\n', b'3,"two\nlines",7', b"4,,8"):
        wire.publish("sheets", body, **csv)
    for body in (b"\n", b"5,de,5\n6,de,5\n"):
        wire.publish("sheets", body, **csv)
    wire.publish("sheets", b"7,de", type="nested", **csv)
    wire.publish("sheets", b'{"id":8,"tags":["a"]}', type="nested")
    wire.sync()

    total = job.run(
        """
        queues: sheets
        tables:
          nested: {take: {type: nested}, schema: "id INT, tags ARRAY<STRING>"}
          t: {schema: "id INT, country STRING, cents INT"}
        """
    )

    assert {row["id"]: row["country"] for row in job.rows("t")} == {
        1: "de",
        2: 'd"e, f',
        3: "two\nlines",
        4: None,
    }
    assert job.column("nested", "tags") == [["a"]]
    assert total.reasons == Counter(
        [
            "empty",
            "not CSV, or of other types than its schema's",
            "its table has columns that CSV can't hold",
        ]
    )


def test_columns_may_have_any_name(job: Job, wire: Channel) -> None:
    wire.declare("names")
    wire.declare("names.out")
    row = {"key": "k", "at": 1, "a.b": 2, "c`d": 3, "e f": 4, "g'h": 5}
    for _ in range(2):
        wire.publish("names", json.dumps(row).encode())
    wire.publish("names", json.dumps(row | {"g'h": "x"}).encode())
    wire.sync()

    total = job.run(
        """
        queues: names
        tables:
          t:
            schema: "key STRING, at INT, `a.b` INT, `c``d` INT, `e f` INT, `g'h` INT"
            deduplicate: {key: [key, c`d], watermark: 1h}
        publish:
          out: {sql: SELECT * FROM t, exchange: "", routing_key: names.out}
        """
    )

    (written,) = job.rows("t")
    written.pop("batch")
    assert written == row
    assert (total.doubles, total.quarantined) == (1, 1)
    assert [json.loads(message.body) for message in got(wire, "names.out")] == [row]
