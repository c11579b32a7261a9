from __future__ import annotations

import pyarrow as pa

from warren.spark.sink.options import SinkOptions
from warren.spark.sink.rows import RowEncoder


def test_counts_of_deliveries_are_not_published_and_other_headers_are() -> None:
    options = SinkOptions.parse({"uri": "amqp://localhost", "exchange": "shop"})
    headers = [
        [("x-delivery-count", "3"), ("mine", "1"), ("x-acquired-count", "4")],
        None,
        [("x-delivery-count", "3")],
    ]
    batch = pa.record_batch(
        {
            "body": pa.array([b"a", b"b", b"c"]),
            "headers": pa.array(headers, pa.map_(pa.string(), pa.string())),
        }
    )

    (messages,) = RowEncoder(options, {"body": 0, "headers": 1}, "id-").encode(batch, 131_072)

    octets = b"".join(messages)
    assert b"mine" in octets
    assert b"-count" not in octets
