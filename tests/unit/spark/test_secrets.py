"""Which options have a secret in them that Spark would show."""

from __future__ import annotations

import pytest

from warren.errors import ConfigError
from warren.spark.secrets import hidden, require_hidden

SHOWN = [
    ("uri", "amqp://ann:pw@mq/", "'url'"),
    ("URI", "AMQPS://ann:pw@mq,other:5671/v?heartbeat=5", "'url'"),
    ("uri", "amqp://guest:guest@a/, amqp://guest:pw@b/", "'url'"),
    ("uri", "amqp://ann:p/w@mq/", "'url'"),
    ("uri", "ann:pw@mq", "'url'"),
    ("uri", "amqp://ann:p@w@mq:nonsense/", "'url'"),
    ("host", "ann:pw@mq", "'url'"),
    ("managementUri", "http://ann:pw@mq", "'managementUrl'"),
    ("path", "amqp://ann:pw@mq/", "'url'"),
    ("brokerUri", "amqp://ann:pw@mq/", "'url'"),
    ("ledger", "s3://key:pw@bucket/ledger", "environment variables"),
    ("ledger", "s3://key:p/w@bucket/ledger", "environment variables"),
]
TAKEN = [
    ("url", "amqp://ann:pw@mq/"),
    ("managementUrl", "http://ann:pw@mq"),
    ("password", "pw"),
    ("uri", "amqp://mq"),
    ("uri", "amqp://ann@mq:5672/team@x"),
    ("uri", "amqp://ann:@mq"),
    ("uri", "amqp://guest:guest@mq:5672/?name=etl@node"),
    ("uri", "amqp://mq:5672/?name=etl@node"),
    ("host", "::1"),
    ("queues", "a:b@c,d://e"),
    ("ledger", "/data/a:b@c"),
    ("ledger", "hdfs://nn:8020/user/a@b"),
    ("ledger", "abfs://box@account.dfs.core.windows.net/ledger"),
    ("ledger", "file:///data/x:y@z"),
]


@pytest.mark.parametrize(("name", "value", "remedy"), SHOWN)
def test_a_secret_that_would_be_shown_is_refused_with_the_remedy(
    name: str, value: str, remedy: str
) -> None:
    with pytest.raises(ConfigError, match=remedy) as refused:
        require_hidden({"queues": "q", name: value}, "here")
    assert "pw" not in str(refused.value)
    assert "p/w" not in str(refused.value)


@pytest.mark.parametrize(("name", "value"), TAKEN)
def test_what_is_hidden_or_no_secret_is_taken(name: str, value: str) -> None:
    require_hidden({name: value}, "here")


def test_options_have_the_names_that_spark_hides() -> None:
    assert hidden({"uri": "a", "managementURI": "b", "host": "c", "queues": None}) == {
        "url": "a",
        "managementUrl": "b",
        "host": "c",
    }


def test_of_two_that_say_the_same_none_is_dropped() -> None:
    both = {"managementUri": "a", "managementUrl": "b"}
    assert hidden(both) == both
    assert hidden({"managementUri": "a", "managementUrl": None}) == {"managementUrl": "a"}
