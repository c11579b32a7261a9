"""A pipeline's file: what it says, and what is told of one that can't be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warren.errors import PipelineError
from warren.pipeline.load import load
from warren.pipeline.model import Deduplicate, Pipeline, Take

ROOT = Path(__file__).parents[3]
TABLE = "tables:\n  orders: {schema: id INT}\n"
SMALL = f"queues: orders\n{TABLE}"


def read(text: str, **more: str) -> Pipeline:
    return load(text, "/jobs/shop.yaml", **more)  # type: ignore[arg-type]


def problem(text: str, **environ: str) -> str:
    with pytest.raises(PipelineError) as error:
        load(text, "/jobs/shop.yaml", environ=environ)
    return str(error.value)


def test_the_smallest_file_has_a_default_for_all_else() -> None:
    pipeline = read(SMALL)

    assert pipeline.name == "shop"
    assert pipeline.broker == "amqp://guest:guest@127.0.0.1:5672/"
    assert pipeline.queues == ("orders",)
    assert pipeline.ledger == "/jobs/shop-data/ledger"
    assert pipeline.checkpoint == "/jobs/shop-data/checkpoint"
    assert [table.files.path for table in pipeline.tables] == ["/jobs/shop-data/orders"]
    assert pipeline.quarantine.files.path == "/jobs/shop-data/quarantine"
    assert (pipeline.publish, pipeline.statistics, pipeline.ignore) == ((), None, ())


@pytest.mark.parametrize(
    ("said", "keeps_all"),
    [
        ("{exchange: sick}", False),
        ("{exchange: sick, format: orc}", True),
        ("{exchange: '', routing_key: orders.sick}", False),
        ("{path: bad}", True),
        ("{exchange: sick, routing_key: orders}", False),
    ],
)
def test_a_quarantine_has_a_table_whatever_else_it_has(said: str, keeps_all: bool) -> None:
    place = read(f"quarantine: {said}\n{SMALL}").quarantine

    assert place.keeps_all is keeps_all
    assert place.files.path == f"/jobs/{'bad' if 'path' in said else 'shop-data/quarantine'}"


def test_a_table_says_what_it_takes_and_how() -> None:
    pipeline = read(
        """
        queues: [a, b.*]
        tables:
          orders:
            take: {type: [order, order.*], routing_key: "eu.#"}
            as: csv
            csv: {sep: ";"}
            schema: id INT
            columns: [queue, received_at]
            deduplicate: {key: id, watermark: 10m}
            format: orc
            path: s3a://bucket/orders
            partition_by: day
            options: {compression: zstd}
        """
    )

    (table,) = pipeline.tables
    assert table.take == Take(type=("order", "order.*"), routing_key=("eu.#",), line=5)
    assert (table.body, table.csv, table.columns) == ("csv", {"sep": ";"}, ("queue", "received_at"))
    assert table.deduplicate == Deduplicate(("id",), 600.0, line=10)
    assert (table.files.path, table.files.format) == ("s3a://bucket/orders", "orc")
    assert (table.files.partition_by, table.files.options) == (("day",), {"compression": "zstd"})


def test_words_of_the_environment_are_filled_in() -> None:
    text = f"broker: amqp://shop:${{SECRET}}@host/\nevery: ${{EVERY:-5}}\n{SMALL}"

    pipeline = load(text, environ={"SECRET": "pa$$", "EVERY": ""})

    assert pipeline.broker == "amqp://shop:pa$$@host/"
    assert pipeline.every_s == 5


@pytest.mark.parametrize(
    "written", ["0123456", "1_000", "Yes", "12:30", "1.10", "2026-01-02", "1e3", "null", "~", ""]
)
def test_a_word_of_the_environment_stays_what_it_is(written: str) -> None:
    text = f"source:\n  password: ${{PW}}\nname: ${{PW:-x}}\nfolder: data\n{SMALL}"

    pipeline = load(text, environ={"PW": written})

    assert pipeline.source == {"password": written}
    assert pipeline.name == (written or "x")


@pytest.mark.parametrize("written", ["0123456", "1_000", "Yes", "12:30", "1.10", "2026-13-02"])
def test_options_are_taken_as_they_are_written(written: str) -> None:
    pipeline = read(
        f"""
        queues: q
        source: {{password: {written}}}
        spark: {{conf: {{spark.app: {written}}}}}
        tables: {{t: {{schema: id INT, options: {{a: {written}}}, csv: {{sep: {written}}}}}}}
        """
    )

    (table,) = pipeline.tables
    found = [pipeline.source, pipeline.conf, table.files.options, table.csv]
    assert [list(each.values()) for each in found] == [[written]] * 4


@pytest.mark.parametrize(("word", "wanted"), [("true", True), ("false", False)])
def test_a_switch_can_come_from_the_environment(word: str, wanted: bool) -> None:
    pipeline = load(f"statistics: ${{S}}\n{SMALL}", environ={"S": word})

    assert (pipeline.statistics is not None) is wanted


def test_two_dollars_are_one() -> None:
    text = "queues: q\ntables: {t: {schema: id INT, sql: \"SELECT '$${x}' AS x FROM messages\"}}"

    assert load(text, environ={}).tables[0].sql == "SELECT '${x}' AS x FROM messages"


def test_no_password_is_shown() -> None:
    pipeline = read(
        f"broker: amqp://u:geheim@h/\nsource: {{managementUri: http://u:geheim@h}}\n{SMALL}"
    )

    assert "geheim" not in repr(pipeline)


def test_a_broker_of_the_command_line_is_taken_instead() -> None:
    assert read(f"broker: amqp://a/\n{SMALL}", broker="amqp://b/").broker == "amqp://b/"


def test_paths_are_meant_from_the_files_folder(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"

    pipeline = load(f"folder: out\nledger: /else/ledger\n{SMALL}", str(file))

    assert pipeline.checkpoint == str(tmp_path / "out/checkpoint")
    assert pipeline.ledger == "/else/ledger"


@pytest.mark.parametrize(
    "page", ["README.md", "docs/guide/pipeline.md", "examples/shop-file/pipeline.yaml"]
)
def test_files_that_pages_show_can_be_used(page: str) -> None:
    text = (ROOT / page).read_text()
    shown = [text] if page.endswith(".yaml") else re.findall(r"(?ms)^```yaml\n(.*?)^```$", text)

    pipelines = [load(each, environ={}) for each in shown]

    assert [table.name for each in pipelines for table in each.tables][:2] == ["orders", "payments"]


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[4]",
        "local[*,3]",
        "local-cluster[2,1,1024]",
        "yarn",
        "spark://a:7077",
        "spark://a:7077,b:7077",
        "k8s://https://host:6443",
    ],
)
def test_any_master_of_sparks_will_do(master: str) -> None:
    text = f"spark: {{master: '{master}', conf: {{spark.executor.memory: 2G}}}}\n{SMALL}"

    assert read(text).master == master


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "/jobs/shop.yaml: the file is empty"),
        ("queues: [a", "/jobs/shop.yaml:1: not YAML: "),
        (
            "queues: a\nname: \0x",
            "/jobs/shop.yaml:2: not YAML: a character that no text has, #x0000",
        ),
        ("queues: " + "[" * 2000, "/jobs/shop.yaml: not YAML that can be read: too many brackets"),
        (
            f"name: 2026-13-02\n{SMALL}",
            ":1: can't be read: month must be in 1..12; in quotes it is",
        ),
        (f"every: 12:30\n{SMALL}", ":1: every: must be a number of seconds"),
        (f"source:\n  user:\n{SMALL}", ":2: source: user must be text or a number; nothing is"),
        (f"source:\n  user: [a]\n{SMALL}", ":2: source: user must be text or a number"),
        (
            "queues: a\ntables:\n  t: {schema: id INT, csv: {nullValue: NULL}}",
            ":3: table 't': csv: nullValue must be text or a number; write 'NULL'",
        ),
        (f"quues: a\n{TABLE}", ":1: the file: unknown key 'quues'; did you mean 'queues'?"),
        (TABLE, "/jobs/shop.yaml: which queues? Say 'queues: [orders, payments.*]'"),
        ("queues: a", "which tables?"),
        ("queues: a\ntables:", ":2: which tables?"),
        ("queues: a\ntables: {}", ":2: which tables?"),
        ("queues: a\ntables: {t: {sql: SELECT 1 AS a}}", ":2: no table takes messages"),
        (f"folder: ''\n{SMALL}", ":1: folder: must not be empty"),
        (f"ignore: [{{type: x}}, {{}}]\n{SMALL}", ":1: ignore: {} is every message; say which"),
        (f"ignore: {{}}\n{SMALL}", ":1: ignore: {} is every message; say which"),
        (f"broker: amqp://x?heartbeat=y\n{SMALL}", ":1: broker: heartbeat: 'y' is not a whole"),
        (f"source:\n  peek: true\n{SMALL}", ":2: source: peek leaves the messages in the queue"),
        (f"source:\n  replay: true\n{SMALL}", ":2: source: replay is for spark.read; a pipeline"),
        (f"source:\n  Replay: 7\n{SMALL}", ":2: source: replay is for spark.read; a pipeline"),
        (f"source:\n  mandatory: false\n{SMALL}", ":2: source: 'mandatory' is for what is written"),
        (f"source:\n  retries: 3\n{SMALL}", ":2: source: 'retries' is for what is written"),
        (f"source:\n  queryName: x\n{SMALL}", ":2: source: 'queryName' stands at the top of the"),
        (f"source:\n  path: x\n{SMALL}", ":2: source: 'path' means nothing here"),
        (
            f"source:\n  prefetch: 5\n  managementUri: ftp://x\n{SMALL}",
            ":3: managementUri: 'ftp:...' does not begin with",
        ),
        (
            f"source:\n  managementUri: amqp://x\n{SMALL}",
            ":2: managementUri: 'amqp:...' does not begin with http:// or https://",
        ),
        (
            f"source:\n  managementUri: http://x?heartbeat=y\n{SMALL}",
            ":2: managementUri: heartbeat: 'y' is not a whole number",
        ),
        (
            f"quarantine:\n  exchange: x\n  options: {{compression: zstd}}\n{SMALL}",
            ":3: quarantine: options are for files; say a path or a format too, or drop them",
        ),
        (
            f"publish:\n  p:\n    sql: SELECT 1\n    exchange: x\n    type: {'t' * 256}\n{SMALL}",
            ":5: publish 'p': type: ",
        ),
        (
            f"publish:\n  p: {{sql: SELECT 1, exchange: x, routing_key: {'é' * 128}}}\n{SMALL}",
            ":2: publish 'p': routing_key is longer than 255 octets",
        ),
        (
            f"publish:\n  {'p' * 121}: {{sql: SELECT 1, exchange: x}}\n{SMALL}",
            f":2: publish '{'p' * 121}': writeName: ",
        ),
        (
            f"quarantine: {{exchange: {'x' * 256}}}\n{SMALL}",
            ":1: quarantine: exchange is longer than 255 octets",
        ),
        ("queues: 5\n" + TABLE, ":1: the file: queues must be text, or a list of texts"),
        ("queues: []\n" + TABLE, ":1: queues must be names or patterns"),
        (f"every: soon\n{SMALL}", ":1: every: must be a number of seconds"),
        (f"broker: http://x\n{SMALL}", ":1: broker: "),
        (f"broker: ${{NONE}}\n{SMALL}", ":1: the environment has no NONE"),
        (f"source:\n  prefetsh: 3\n{SMALL}", ":2: prefetsh: no such option; did you mean"),
        (f"source:\n  prefetch: x\n{SMALL}", ":2: prefetch: 'x' can't be used: must be a whole"),
        (f"source:\n  uri: amqp://x\n{SMALL}", ":2: source: 'uri' stands at the top of the file"),
        ("queues: a\ntables:\n  or-ders: {schema: id INT}", ":3: table 'or-ders': a name has"),
        (
            "queues: a\ntables:\n  a: {schema: id INT, path: x}\n  b: {schema: id INT, path: ./x/}",
            ":4: table 'b': path /jobs/x is where table 'a' is; each needs a folder of its own",
        ),
        (
            "queues: a\ntables:\n  a: {schema: id INT, path: /q}\nquarantine: {path: /q}",
            ":3: table 'a': path /q is where quarantine is",
        ),
        (
            "queues: a\ntables:\n  a: {schema: id INT, columns: queue, sql: SELECT 1 AS b}",
            ":3: table 'a': the query says which columns there are",
        ),
        ("queues: a\ntables:\n  ledger: {schema: id INT}", ":3: table 'ledger': the name is taken"),
        (
            "queues: a\ntables:\n  a: {schema: id INT}\n  A: {schema: id INT}",
            ":4: table 'A': there is 'a' already",
        ),
        ("queues: a\ntables:\n  t:", ":3: table 't' needs a schema"),
        ("queues: a\ntables:\n  t: {sql: SELECT 1, take: {type: x}}", ":3: table 't': take is for"),
        ("queues: a\ntables:\n  t: {schema: id INT, as: xml}", ":3: table 't': as: unknown format"),
        (
            "queues: a\ntables:\n  t: {schema: id INT, as: avro}",
            ":3: table 't': as: avro needs 'avro: {schema: FILE}'",
        ),
        (
            "queues: a\ntables:\n  t:\n    schema: id INT\n    avro: {schema: no.avsc}",
            ":5: table 't': avro: schema: /jobs/no.avsc can't be read: No such file",
        ),
        (
            "queues: a\ntables:\n  t:\n    schema: id INT\n    options:\n      Compression: zsdt",
            ":6: table 't': options: unknown compression of parquet 'zsdt'; did you mean 'zstd'?",
        ),
        (
            f"statistics: {{format: orc, options: {{compression: gzip}}}}\n{SMALL}",
            ":1: statistics: options: unknown compression of orc 'gzip'; known are none,",
        ),
        ("queues: a\ntables:\n  t: {schema: id INT, format: xls}", ":3: table 't': unknown format"),
        (
            "queues: a\ntables:\n  t: {schema: id INT, take: {typ: x}}",
            ":3: table 't': take: unknown key 'typ'; did you mean 'type'?",
        ),
        (
            "queues: a\ntables:\n  t: {schema: id INT, columns: [que]}",
            ":3: table 't': unknown column of a message 'que'; did you mean 'queue'?",
        ),
        (
            "queues: a\ntables:\n  t: {schema: id INT, deduplicate: {key: id}}",
            ":3: table 't': deduplicate needs a key and a watermark",
        ),
        (
            "queues: a\ntables:\n  t: {schema: id INT, deduplicate: {key: id, watermark: long}}",
            ":3: table 't': deduplicate: watermark must be",
        ),
        (f"spark:\n  master: lokal\n{SMALL}", ":2: spark: master: 'lokal' is no master of Spark's"),
        (f"spark:\n  master: local[x]\n{SMALL}", ":2: spark: master: 'local[x]' is no master"),
        (
            f"spark:\n  conf:\n    spark.driver.memory: lots\n{SMALL}",
            ":3: spark: spark.driver.memory: 'lots' is no size; write 512m or 4g",
        ),
        (f"quarantine: {{routing_key: x}}\n{SMALL}", ":1: quarantine: routing_key is for an"),
        (
            f"quarantine:\n  exchange: ''\n{SMALL}",
            ":2: quarantine: the default exchange takes a message to the queue that its",
        ),
        (
            f"quarantine: {{exchange: '', routing_key: ''}}\n{SMALL}",
            "came from; say to which queue: 'routing_key: NAME'",
        ),
        (
            f"quarantine:\n  exchange: ''\n  routing_key: orders\n{SMALL}",
            ":3: quarantine: routing_key 'orders' is a queue that is read ('orders' in",
        ),
        (
            f"quarantine: {{exchange: '', routing_key: a.sick}}\nqueues: [b, a.*]\n{TABLE}",
            ":1: quarantine: routing_key 'a.sick' is a queue that is read ('a.*' in queues)",
        ),
        (
            f"quarantine:\n  format: csv\n{SMALL}",
            ":2: quarantine: CSV can't hold a message; there are parquet, orc and json",
        ),
        (
            f"publish:\n  p:\n    sql: SELECT 1\n    exchange: x\n    on_too_long: cut\n{SMALL}",
            ":5: publish 'p': unknown on_too_long 'cut'",
        ),
        (f"publish:\n  sold: {{sql: SELECT 1}}\n{SMALL}", ":2: publish 'sold' needs an exchange"),
        (f"publish:\n  sold: {{exchange: x}}\n{SMALL}", ":2: publish 'sold' needs a query"),
        (
            f"statistics: maybe\n{SMALL}",
            ":1: the file: statistics must be true or false, or a mapping with 'path', 'format'",
        ),
        (f"ignore: [{{tipe: x}}]\n{SMALL}", ":1: ignore: unknown key 'tipe'; did you mean 'type'?"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str) -> None:
    assert told in problem(text)
