"""How many messages wait in the queues of a query, asked from outside of it."""

from __future__ import annotations

from warren.client.blocking import BlockingConnection
from warren.client.blocking_questions import has_exchange
from warren.errors import WarrenError
from warren.spark.options import SourceOptions
from warren.spark.queues import Catalog
from warren.spark.stream import STREAM


class Backlog:
    """Asks the broker over a connection of its own."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._catalog = Catalog(options)
        self._link: BlockingConnection | None = None

    def require(self) -> dict[str, int]:
        """Ready messages of each queue, streams aside; raises what the source would."""
        link = self._connected()
        queues = self._catalog.queues(link)
        for info in queues.values():
            if info.kind and info.kind != STREAM:
                _ = info.mode  # a quorum queue must have a single active consumer
        return self._catalog.ready(link)

    def messages(self) -> int | None:
        """All of them; None if the broker can't be asked now, or there are only streams.

        It does not tell how much of a stream is still to be read: that would have to be read.
        """
        try:
            ready = self.require()
            return sum(ready.values()) if ready or not self._catalog.reads_streams else None
        except (WarrenError, OSError):
            self.close()
            return None

    def exchange_is_there(self, name: str) -> bool:
        return has_exchange(self._connected(), name)

    def close(self) -> None:
        if self._link is not None:
            self._link.abandon()
            self._link = None

    def _connected(self) -> BlockingConnection:
        if self._link is None or not self._link.is_open:
            # Nobody sends heartbeats between two batches.
            endpoints = [endpoint.but(heartbeat_s=0) for endpoint in self._options.endpoints]
            self._link = BlockingConnection.open(endpoints, name="warren run")
        return self._link
