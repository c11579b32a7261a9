from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import StringType, StructType

from warren.errors import ConfigError
from warren.spark.sink.writer import BatchWriter, StreamWriter

GIVEN = {"uri": "amqp://localhost", "routingKey": "q", "writeId": "shop-7"}


def test_a_stream_takes_no_id_that_all_its_batches_would_have() -> None:
    rows = StructType().add("body", StringType())

    BatchWriter(GIVEN, rows, overwrite=False)
    with pytest.raises(ConfigError, match=r"writeId.* is for df.write: a stream has ids for each"):
        StreamWriter(GIVEN, rows, overwrite=False)
