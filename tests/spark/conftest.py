"""One Spark session for all tests that need one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import warren
import warren.spark
from tests.spark.drains import Task
from tests.spark.pipelines import Job
from tests.support.brokers import TestBroker
from tests.support.servers import missing
from tests.support.spark_cluster import QUICK_JAVA
from tests.support.wire import Channel, Connection
from warren.errors import JavaMissing


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores; a test in it is marked ``spark``."""
    folder = tmp_path_factory.mktemp("spark with spaces")
    try:
        session = warren.spark.session(
            "warren tests",
            master="local[2,2]",  # a task that dies is tried again, once
            **{
                "spark.local.dir": str(folder),
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.sql.shuffle.partitions": 2,
                "spark.pyspark.python": sys.executable,
                "spark.driver.extraJavaOptions": QUICK_JAVA,
                # As `warren run` has it: columns are made three times as fast.
                "spark.python.sql.dataFrameDebugging.enabled": "false",
            },
        )
    except JavaMissing as error:
        missing("Java", str(error))
    yield session
    session.stop()


@pytest.fixture
def task(broker: TestBroker, tmp_path: Path) -> Task:
    """Drains of a broker's queues into a ledger of the test's own."""
    return Task(broker.url, tmp_path / "ledger")


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """Where a query keeps what it has done."""
    return str(tmp_path / "checkpoint")


@pytest.fixture(scope="module")
def embedded() -> Iterator[warren.Broker]:
    """A broker in this process."""
    with warren.Broker.in_thread() as broker:
        yield broker


@pytest.fixture
def wire(embedded: warren.Broker) -> Iterator[Channel]:
    """A channel to it."""
    connection = Connection.open(embedded.url)
    yield connection.channel()
    connection.close()


@pytest.fixture
def job(embedded: warren.Broker, tmp_path: Path, spark: SparkSession) -> Job:
    """A pipeline on it, in a folder of the test's own."""
    return Job(embedded.url, tmp_path)
