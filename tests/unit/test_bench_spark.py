from __future__ import annotations

from bench.spark_report import Bar, Line


def test_a_line_fails_on_the_broker_that_misses_the_bar() -> None:
    line = Line("share", "ratio", {"warren": 0.9, "rabbitmq": 0.6}, Bar(at_least=0.7))
    assert line.met is False
    assert line.cells() == ("share", "0.90", "0.60", "≥ 0.70", "FAIL: RabbitMQ")


def test_a_bar_for_one_broker_judges_that_one_only() -> None:
    bar = Bar(at_least=60_000, on=["warren"])
    line = Line("to Parquet", "rate", {"warren": 70_000.0, "rabbitmq": 30_000.0}, bar)
    assert line.met is True
    assert line.cells()[3:] == ("≥ 60,000 /s on warren", "pass")


def test_a_time_must_not_be_longer_than_its_bar() -> None:
    values = {"warren": 0.5, "rabbitmq": 1.5}
    assert Line("p50", "time", values, Bar(at_most=1.0)).met is False
    assert Line("p50", "time", values, Bar(at_most=2.0)).met is True


def test_nothing_is_judged_that_was_not_measured_or_has_no_bar() -> None:
    only = Bar(at_least=3.0, on=["rabbitmq"])
    assert Line("times pika", "ratio", {"warren": 9.0}, only).cells()[1:] == (
        "9.00",
        "-",
        "≥ 3.00 on RabbitMQ",
        "",
    )
    assert Line("raw", "rate", {"warren": 1.0}).met is None
