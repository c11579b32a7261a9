from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import StringType, StructField, StructType

from warren.errors import ConfigError
from warren.spark.columns import COLUMNS
from warren.spark.datasource import RabbitDataSource
from warren.spark.ledger.ledger import Ledger
from warren.spark.options import CONNECTION, READING, SourceOptions
from warren.spark.sink.options import SinkOptions, bind_columns, require_address


def parse(**given: str) -> SourceOptions:
    return SourceOptions.parse({"queues": "a", **given})


def test_defaults_lead_to_the_broker_of_this_machine() -> None:
    (endpoint,) = parse().endpoints

    assert endpoint.address == ("127.0.0.1", 5672)
    assert (endpoint.user, endpoint.password, endpoint.vhost) == ("guest", "guest", "/")


def test_what_is_set_beside_a_uri_wins() -> None:
    (endpoint,) = parse(uri="amqps://ann:secret@mq:1234/v%2Fh", password="other").endpoints

    assert endpoint.address == ("mq", 1234)
    assert (endpoint.user, endpoint.password, endpoint.vhost) == ("ann", "other", "v/h")
    assert endpoint.tls


def test_several_uris_are_several_brokers() -> None:
    one, two = parse(uri="amqp://one, amqp://two:5673").endpoints

    assert (one.address, two.address) == (("one", 5672), ("two", 5673))


def test_a_uri_may_name_several_hosts_as_it_does_for_the_client() -> None:
    found = parse(uri="amqp://ann:secret@one,two:5673/v,amqp://three").endpoints

    assert [each.address for each in found] == [("one", 5672), ("two", 5673), ("three", 5672)]
    assert [each.vhost for each in found] == ["v", "v", "/"]


def test_an_option_wins_over_the_uri_and_the_uri_over_a_default() -> None:
    (silent,) = parse(uri="amqp://h").endpoints
    (told,) = parse(uri="amqps://h?heartbeat=5&connection_timeout=900&verify=verify_none").endpoints
    (over,) = parse(uri="amqp://h?heartbeat=5", heartbeat="7", connectTimeoutMs="800").endpoints

    assert (silent.heartbeat_s, silent.connect_timeout_s) == (10, 15.0)
    assert (told.heartbeat_s, told.connect_timeout_s, told.verify) == (5, 0.9, False)
    assert (over.heartbeat_s, over.connect_timeout_s) == (7, 0.8)


def test_url_is_another_name_of_uri() -> None:
    (endpoint,) = parse(url="amqp://ann:secret@mq/v").endpoints

    assert (endpoint.host, endpoint.user, endpoint.vhost) == ("mq", "ann", "v")


def test_the_management_api_too_may_be_named_so_that_spark_hides_it() -> None:
    found = parse(managementUrl="http://ann:secret@mq:1234").management

    assert found == parse(managementUri="http://ann:secret@mq:1234").management
    assert [(at.host, at.port, at.user) for at in found] == [("mq", 1234, "ann")]


@pytest.mark.parametrize("given", ["http://one,two:1234", "http://one, http://two:1234"])
def test_the_management_api_may_be_at_several_places(given: str) -> None:
    found = parse(managementUrl=given).management

    assert [at.address for at in found] == [("one", 15672), ("two", 1234)]


@pytest.mark.parametrize(
    ("given", "login"),
    [
        ("http://mq", ("", "")),
        ("http://guest@mq", ("guest", "guest")),
        ("http://me@mq", ("me", "sesame")),
        ("http://other:word@mq", ("other", "word")),
    ],
)
def test_who_logs_in_at_the_management_api_does_it_with_a_password(
    given: str, login: tuple[str, str]
) -> None:
    (found,) = parse(host="mq", user="me", password="sesame", managementUrl=given).management
    assert (found.user, found.password) == login


def test_a_password_that_nobody_knows_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"names user 'ann' without a password; such as http://"):
        parse(url="amqp://me:sesame@mq", managementUrl="http://ann@mq:15672")


@pytest.mark.parametrize("name", ["managementUri", "managementUrl"])
def test_what_is_wrong_with_the_management_api_names_the_option_that_was_given(name: str) -> None:
    for slip in ("amqp://mq", "mq:15672"):
        with pytest.raises(ConfigError, match=r"does not begin with http://.*such as http:") as no:
            parse(**{name: slip})
        assert no.value.option == name


@pytest.mark.parametrize("given", ["first", "Last", " next", "0", "17"])
def test_a_stream_may_begin_where_rabbitmq_says(given: str) -> None:
    assert parse(startingOffset=given).starting_offset == given.strip().lower()


@pytest.mark.parametrize("given", ["frist", "-1", "1.5", ""])
def test_a_stream_begins_nowhere_else(given: str) -> None:
    with pytest.raises(ConfigError, match="must be first, last, next or an offset"):
        parse(startingOffset=given)


def test_queues_are_split_at_commas() -> None:
    assert parse(queues="orders, returns.*").queues == ("orders", "returns.*")


@pytest.mark.parametrize("given", [{"queue": "a"}, {"Queus": "a"}])
def test_an_unknown_option_names_the_nearest(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="did you mean 'queues'"):
        SourceOptions.parse(given)


@pytest.mark.parametrize("name", ["exchange", "ROUTINGKEY", "onUnroutable"])
def test_an_option_of_the_sink_is_refused_by_the_source(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} .* is for what is written"):
        parse(**{name: "drop"})


@pytest.mark.parametrize("name", ["queues", "Ledger", "maxMessagesPerTrigger", "peek"])
def test_an_option_of_the_source_is_refused_by_the_sink(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} .* is for what is read"):
        SinkOptions.parse({"routingKey": "q", name: "1"})


def test_a_sink_is_told_where_its_rows_go() -> None:
    nowhere = SinkOptions.parse({"onUnroutable": "drop"})
    with pytest.raises(ConfigError, match="nothing says where the rows go"):
        require_address(nowhere, {"body": 0})
    for column in ("exchange", "routing_key"):
        require_address(nowhere, {"body": 0, column: 1})
    for option in ("exchange", "routingKey"):
        require_address(SinkOptions.parse({option: "x"}), {"body": 0})


BODY = StructType([StructField("body", StringType())])


@pytest.mark.parametrize("given", [{}, {"routingKey": "q"}, {"checkpointLocation": "c"}])
def test_a_sink_that_nobody_has_told_of_a_broker_sends_nothing_to_that_of_this_machine(
    given: dict[str, str],
) -> None:
    source = RabbitDataSource(given)
    for writer in (source.writer, source.streamWriter):
        with pytest.raises(ConfigError, match=r"^url .* broker the rows go to.*keeps no OPTIONS"):
            writer(BODY, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("URL", "amqp://mq"), ("uri", "amqp://mq"), ("host", "mq"), ("port", "5673"), ("user", "me")],
)
def test_one_word_about_the_broker_is_enough(name: str, value: str) -> None:
    RabbitDataSource({name: value, "routingKey": "q"}).writer(BODY, False)


@pytest.mark.parametrize(
    "given",
    [
        {"location": "file:/x", "provider": "rabbitmq", "url": "amqp://mq", "owner": "me"},
        {"path": "/x"},
        {},
    ],
)
def test_options_that_a_table_of_sql_does_not_keep_are_told_so(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"keeps no OPTIONS.*CREATE TEMPORARY VIEW"):
        SourceOptions.parse(given)


def test_source_and_sink_can_be_told_of_the_broker_in_the_same_words() -> None:
    given = {"url": "amqp://mq", "heartbeat": "7", "managementUrl": "http://mq"}

    assert parse(**given).endpoints == SinkOptions.parse(given).endpoints


@pytest.mark.parametrize("given", ["~/ledger", "~", "~ann/ledger"])
def test_a_ledger_is_not_looked_for_in_somebody_s_home(given: str) -> None:
    with pytest.raises(ConfigError, match=r"ledger .* write the whole path"):
        parse(ledger=given)
    assert parse(ledger="/data/~/ledger").ledger == "/data/~/ledger"


@pytest.mark.parametrize("given", ["dbfs:/mnt/ledger", "hdfs:/ledger", "s3a:/bucket/ledger"])
def test_a_ledger_is_not_made_here_where_a_slash_is_missing(given: str) -> None:
    scheme = given.partition(":")[0]
    with pytest.raises(ConfigError, match=rf"ledger .* write {scheme}://HOST/PATH"):
        parse(ledger=given)


def test_a_file_is_found_as_spark_and_others_write_it() -> None:
    for given in ("file:/data/ledger", "FILE:/data/ledger", "file:///data/ledger", "/data/ledger"):
        assert Ledger.at(parse(ledger=given).ledger or "").place == "/data/ledger"
        assert Ledger.at(given).place == "/data/ledger"  # as `warren ledger` has it
    with pytest.raises(ConfigError, match="write dbfs://HOST/PATH"):
        Ledger.at("dbfs:/data/ledger")


def test_a_ledger_lies_where_the_driver_runs_and_not_where_each_task_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planned = pickle.dumps([parse(ledger=given) for given in ("data/ledger", "s3://data/ledger")])
    monkeypatch.chdir("/")

    here, there = pickle.loads(planned)

    assert here.ledger == str(tmp_path / "data" / "ledger")
    assert there.ledger == "s3://data/ledger"


@pytest.mark.parametrize("name", ["uri", "url"])
def test_what_is_wrong_with_an_address_is_told_as_an_option_of_the_table(name: str) -> None:
    for wrong in ("amqp://ann:secret@mq:70000", "mq:5672", "http://mq"):
        with pytest.raises(ConfigError, match=rf'{name} \(format\("rabbitmq"\)\): ') as failed:
            parse(**{name: wrong})
        assert "secret" not in str(failed.value)
    with pytest.raises(ConfigError, match=r'managementUrl \(format\("rabbitmq"\)\): '):
        parse(managementUrl="http://mq:70000")


@pytest.mark.parametrize(
    ("given", "problem"),
    [("", "name the queues"), (" ,", "name the queues"), ("a,b,", "'a,b,' has a comma with no")],
)
def test_queues_without_a_name_are_told(given: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse(queues=given)


def test_a_column_that_is_none_is_told_in_whole_sentences() -> None:
    with pytest.raises(ConfigError, match=r"app_id\. Other columns go into the body"):
        bind_columns(StructType([StructField("zzzzzz", StringType())]))


def test_one_address_is_not_given_under_two_names() -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        parse(uri="amqp://a/", url="amqp://b/")
    with pytest.raises(ConfigError, match="give one of them"):
        parse(managementUri="http://a", managementUrl="http://b")


def test_names_are_read_without_case() -> None:
    assert parse(maxmessagespertrigger="5").max_messages == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxMessagesPerTrigger", "0"),
        ("maxMessagesPerTrigger", "many"),
        ("maxBytesPerTrigger", "-1m"),
        ("maxBytesPerTrigger", "1.5g"),
        ("ledgerRetention", "-1s"),
        ("ledgerRetention", "nan"),
        ("ledgerRetention", "soon"),
        ("onMissingQueue", "shrug"),
        ("peek", "perhaps"),
        ("uri", "http//nowhere"),
    ],
)
def test_a_value_that_can_not_be_used_names_its_option(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as failed:
        parse(**{name: value})
    assert failed.value.option == name
    assert "invalid literal" not in str(failed.value)
    assert "could not convert" not in str(failed.value)


@pytest.mark.parametrize("value", ["", " "])
@pytest.mark.parametrize(
    "name",
    ["uri", "url", "host", "user", "ledger", "managementUri", "managementUrl",
     "tlsCaFile", "tlsCertFile", "tlsKeyFile"],
)  # fmt: skip
def test_an_option_that_is_blank_is_taken_for_a_variable_that_is_not_set(
    name: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} .* is blank, as when a variable is not set"):
        parse(**{name: value})


def test_what_may_be_blank_is_taken() -> None:
    (endpoint,) = parse(password="").endpoints
    assert endpoint.password == ""
    assert SinkOptions.parse({"exchange": "", "routingKey": "", "contentType": ""}).exchange == ""


@pytest.mark.parametrize(("port", "problem"), [("65536", "at most 65535"), ("0", "at least 1")])
def test_a_port_that_can_not_be_is_refused(port: str, problem: str) -> None:
    assert parse(port="65535").endpoints[0].port == 65_535
    with pytest.raises(ConfigError, match=f"^port .*'{port}' can't be used: must be {problem}$"):
        parse(port=port)


def test_a_prefetch_that_amqp_has_no_number_for_is_refused() -> None:
    assert parse(prefetch="65535").prefetch == 65_535
    with pytest.raises(ConfigError, match=r"^prefetch .*'65536' can't be used: must be at most"):
        parse(prefetch="65536")


def test_where_it_is_beside_a_uri_holds_for_every_broker_of_it() -> None:
    given = parse(uri="amqp://one:1/a,amqps://two:2/b", host="mq", port="9", vhost="v").endpoints
    assert [(each.host, each.port, each.vhost) for each in given] == [("mq", 9, "v")] * 2


def test_sizes_and_spans_have_units() -> None:
    options = parse(maxBytesPerTrigger="64m", ledgerRetention="10m")

    assert (options.max_bytes, options.retention_s) == (64 << 20, 600.0)


def test_without_queues_the_error_says_how_to_name_them() -> None:
    with pytest.raises(ConfigError, match=r"\.option\('queues', 'a,b\.\*'\)$"):
        SourceOptions.parse({"url": "amqp://mq"})


@pytest.mark.parametrize(
    "given",
    [
        {"uri": "amqp://ann:sesame@mq/"},
        {"password": "sesame"},
        {"managementUri": "http://ann:sesame@mq:15672"},
        {"managementUrl": "http://ann:sesame@mq:15672"},
    ],
)
def test_a_password_shows_nowhere_but_travels_along(given: Any) -> None:
    options = parse(**given)

    assert "sesame" not in repr(options) + str(options)
    assert pickle.loads(pickle.dumps(options)) == options


def test_a_bad_uri_does_not_quote_the_password() -> None:
    with pytest.raises(ConfigError) as failed:
        parse(uri="ampq://ann:sesame@mq/")
    assert "sesame" not in str(failed.value)


@pytest.mark.parametrize("row", [*CONNECTION, *READING, *COLUMNS], ids=lambda row: row.name)
def test_every_option_and_column_is_on_the_page(row: Any) -> None:
    page = Path(__file__).parents[3] / "docs" / "guide" / "spark-source.md"
    line = next(
        line for line in page.read_text().splitlines() if line.startswith(f"| `{row.name}`")
    )
    assert line.endswith(f"| {row.doc} |")


def test_a_routing_key_that_is_too_long_is_shortened_where_that_is_wanted() -> None:
    given = {"url": "amqp://mq", "routingKey": "é" * 128}
    with pytest.raises(ConfigError, match="256 octets; 255 is the most; option onTooLong=shorten"):
        SinkOptions.parse(given)
    assert SinkOptions.parse({**given, "onTooLong": "shorten"}).routing_key == "é" * 127
    with pytest.raises(ConfigError, match=r"exchange .* has 256 octets; 255 is the most$"):
        SinkOptions.parse({**given, "onTooLong": "shorten", "exchange": "e" * 256})
