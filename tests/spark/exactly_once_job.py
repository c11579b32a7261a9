"""The driver that the harness kills: queues to Parquet, for as long as it lives.

``python -m tests.spark.exactly_once_job MASTER URI QUEUES FOLDER``. A query that fails is started
again. While the file ``disk-full`` is in the folder, the ledger's disk takes no segment.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

import warren.spark
from tests.support.spark_cluster import QUICK_JAVA
from warren.errors import LedgerUnusable
from warren.spark.columns import DDL
from warren.spark.drain.drain import Drain
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.source import QueueStreamReader


class RefusingFiles(LocalFiles):
    """A disk that is full for as long as a file says so."""

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        self._refuse()
        return super().put_new(name, data)

    def put_shared(self, names: Sequence[str], data: bytes | bytearray) -> list[bool]:
        self._refuse()
        return super().put_shared(names, data)

    def _refuse(self) -> None:
        folder = Path(self.place).parent
        if (folder / "disk-full").exists():
            (folder / "disk-refused").touch()
            raise LedgerUnusable(self.place, f"[Errno {errno.ENOSPC}] No space left on device")


class RefusingReader(QueueStreamReader):
    def drain(self, ledger: Ledger, run: str) -> Drain:
        return super().drain(Ledger(RefusingFiles(ledger.place)), run)


class RefusingSource(DataSource):
    """``format("rabbitmq")`` on such a disk."""

    @classmethod
    def name(cls) -> str:
        return "rabbitmq_refusing"

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: Any) -> QueueStreamReader:
        return RefusingReader(dict(self.options), schema)


def start(spark: SparkSession, uri: str, queues: str, folder: Path) -> Any:
    frame = (
        spark.readStream.format("rabbitmq_refusing")
        .options(uri=uri, queues=queues, ledger=str(folder / "ledger"))
        .options(maxMessagesPerTrigger=3000, drainTimeoutMs=2000, ledgerRetention="20s")
        .load()
    )
    writer = frame.select("queue", "offset", "body").writeStream.format("parquet")
    writer = writer.options(path=f"{folder}/table", checkpointLocation=f"{folder}/checkpoint")
    return writer.trigger(processingTime="100 milliseconds").start()


def main(master: str, uri: str, queues: str, folder: Path) -> None:
    spark = warren.spark.session("exactly once", master=master, **{
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.pyspark.python": sys.executable,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.cores.max": 2,
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
    })  # fmt: skip
    spark.dataSource.register(RefusingSource)
    while True:
        query = start(spark, uri, queues, folder)
        while query.isActive:
            time.sleep(0.1)
        reason = str(query.exception() or "it ended")
        print("the query failed:", next(iter(reason.splitlines()), ""), flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
