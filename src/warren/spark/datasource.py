"""``format("rabbitmq")``: what Spark asks for, and which module answers."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from warren.spark.columns import DDL
from warren.spark.options import SOURCE, SourceOptions
from warren.spark.plainly import plainly
from warren.spark.secrets import require_hidden
from warren.spark.sink.options import require_broker


@plainly
class RabbitDataSource(DataSource):
    """Queues as a table, a table as messages; batch and streaming."""

    def __init__(self, options: dict[str, str]) -> None:
        from warren.spark.read_plan import new_token

        # Here, for it is the first that any source or sink does.
        require_hidden(options, SOURCE)
        super().__init__(options)
        # Made by load(), and pickled to whoever plans what it reads: the same for all of them.
        self._token = new_token()

    @classmethod
    def name(cls) -> str:
        return "rabbitmq"

    def schema(self) -> str:
        # Asked first when something is read: a slip in an option is told by load() already.
        SourceOptions.parse(dict(self.options))
        return DDL

    def reader(self, schema: StructType) -> Any:
        from warren.spark.batch import QueueReader

        return QueueReader(dict(self.options), schema, self._token)

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802
        from warren.spark.source import QueueStreamReader

        return QueueStreamReader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from warren.spark.sink.writer import BatchWriter

        require_broker(self.options)
        return BatchWriter(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        from warren.spark.sink.writer import StreamWriter

        require_broker(self.options)
        return StreamWriter(dict(self.options), schema, overwrite)
