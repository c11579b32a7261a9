"""A session without Spark: what it says, and what it leaves to others."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext

import warren.spark
from warren.errors import ConfigError, SparkMissing
from warren.spark.interrupt import Handler
from warren.spark.session import _settings


def test_without_pyspark_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SparkMissing, match=r"pip install '.\[spark\]'"):
        warren.spark.session()


@pytest.mark.parametrize(
    ("conf", "said"),
    [({}, "SPARK_REMOTE in the environment"), ({"spark.remote": "sc://b"}, "setting spark.remote")],
)
def test_a_master_beside_spark_connect_is_an_error_that_names_both(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], said: str
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://a")
    with pytest.raises(ConfigError, match=rf"master .*{said}: leave that out, or name no master"):
        warren.spark.session(master="local[2]", **conf)


@pytest.mark.parametrize(
    ("given", "said", "master"),
    [
        ({}, {}, "local[2]"),
        ({}, {"spark.master": "yarn"}, "yarn"),
        ({"spark.master": "local[3]"}, {"spark.master": "yarn"}, "local[3]"),
    ],
)
def test_the_master_is_the_callers_then_what_was_said_elsewhere(
    given: dict[str, str], said: dict[str, str], master: str
) -> None:
    assert _settings(given, said)["spark.master"] == master


def test_a_setting_that_is_none_is_left_to_spark() -> None:
    given = dict.fromkeys(["spark.local.dir", "spark.sql.session.timeZone", "spark.master"])

    settings = _settings(given, {})

    assert None not in settings.values()
    assert "spark.sql.session.timeZone" not in settings
    assert settings["spark.master"] == "local[2]"


@pytest.mark.parametrize("master", ["yarn", "spark://far:7077"])
def test_a_cluster_gets_nothing_that_is_meant_for_one_machine(master: str) -> None:
    settings = _settings({}, {"spark.master": master})
    assert settings["spark.sql.session.timeZone"] == "UTC"
    for key in ("spark.driver.host", "spark.driver.memory", "spark.sql.shuffle.partitions"):
        assert key not in settings


def test_what_was_said_elsewhere_holds_unless_the_caller_says_otherwise() -> None:
    said = {"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Dx=y"}
    assert "spark.ui.enabled" not in _settings({}, said)
    assert _settings({"spark.ui.enabled": "false"}, said)["spark.ui.enabled"] == "false"
    assert _settings({}, said)["spark.driver.extraJavaOptions"].endswith(" -Dx=y")


def test_under_spark_submit_java_is_as_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    settings = _settings({}, {"spark.master": "local[3]"})
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.memory" not in settings
    assert "spark.driver.extraJavaOptions" not in settings


def test_ctrl_c_outside_of_a_wait_is_pysparks_to_handle() -> None:
    seen: list[int] = []
    handler = Handler(None, lambda number, _: seen.append(number))  # type: ignore[arg-type]

    handler(signal.SIGINT, sys._getframe())
    handler(signal.SIGINT, None)

    assert seen == [signal.SIGINT, signal.SIGINT]


class _Ending:
    """As much of a session as Ctrl-C needs; its program ends it when the query has stopped."""

    def __init__(self, *, ends: bool) -> None:
        self.ends, self.ended, self.levels = ends, False, list[str]()
        root = SimpleNamespace(getLevel=lambda: SimpleNamespace(toString=lambda: "ERROR"))
        log4j = SimpleNamespace(LogManager=SimpleNamespace(getRootLogger=lambda: root))
        apache = SimpleNamespace(logging=SimpleNamespace(log4j=log4j))
        self._jvm = SimpleNamespace(org=SimpleNamespace(apache=apache))
        self.streams = SimpleNamespace(active=[SimpleNamespace(stop=self._stop, isActive=False)])
        self.streams.active[0].lastProgress = None
        self.sparkContext = self

    def _stop(self) -> None:
        self.ended = self.ends
        if not self.ends:
            raise RuntimeError("the query can't be stopped")

    @property
    def _jsc(self) -> Any:
        tracker = SimpleNamespace(getExecutorInfos=list)
        context = SimpleNamespace(isStopped=lambda: False, statusTracker=lambda: tracker)
        return None if self.ended else SimpleNamespace(sc=lambda: context)

    def setLogLevel(self, level: str) -> None:
        assert not self.ended
        self.levels.append(level)


def _press_while_waiting(handler: Handler) -> None:
    """As PySpark calls it, from a frame that waits for a query."""
    names = {"__name__": "pyspark.sql.streaming.query", "press": handler, "sys": sys}
    exec("def awaitTermination(): press(2, sys._getframe())", names)
    names["awaitTermination"]()  # type: ignore[operator]
    handler.finish()


@pytest.mark.parametrize(("ends", "complaints"), [(True, 0), (False, 1)])
def test_a_program_that_ends_its_session_after_ctrl_c_hears_nothing_of_it(
    ends: bool, complaints: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", heard.append)
    session = _Ending(ends=ends)

    _press_while_waiting(Handler(session, signal.default_int_handler))  # type: ignore[arg-type]

    assert session.levels[0] == "OFF"
    assert len(heard) == complaints


def test_ctrl_c_is_acknowledged_in_the_log_before_the_batch_is_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = _Ending(ends=True)
    told: list[str] = []
    session.streams.active[0].stop = lambda: told.extend(caplog.messages)

    with caplog.at_level(logging.WARNING, "warren.spark.interrupt"):
        _press_while_waiting(Handler(session, signal.default_int_handler))  # type: ignore[arg-type]

    assert told == [
        "Ctrl-C: it ends when the batch that runs is done, in 30 s at the latest; "
        "pressed again, it stops at once"
    ]
