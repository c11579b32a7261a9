"""A copy of what is below a prefix in etcd, kept up to date through every kind of loss."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from warren.groups.coordination.etcd_client import EtcdClient
from warren.groups.coordination.etcd_errors import EtcdCompacted, EtcdError
from warren.groups.coordination.etcd_values import Batch, Entry, Event, Listing

log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 2.0
_FIRST_PAUSE_S = 0.05


class Mirror:
    """``entries`` is what etcd has below ``prefix``, as of ``revision``.

    A watch that ends is taken up where it was; where etcd has forgotten what came since, or is
    another one than before, it is listed again and the differences are told as events.
    """

    def __init__(
        self, client: EtcdClient, prefix: str, *, reached: Callable[[bool], None] | None = None
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.revision = 0
        self._cluster = ""
        self._client, self._prefix = client, prefix
        self._reached = reached or (lambda _: None)

    async def follow(self) -> AsyncGenerator[Batch, None]:
        """What changes, for ever; ``entries`` has it already. The first batch is all there is.

        ``reached`` is called with False when etcd can't be reached, and with True when it can.
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async with aclosing(self._follow_once()) as batches:
                    async for batch in batches:
                        pause_s = _FIRST_PAUSE_S
                        yield batch
            except EtcdCompacted:
                self._cluster = ""
            except EtcdError as error:
                log.debug("the watch of %s ended: %s", self._prefix, error)
                self._reached(False)
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _follow_once(self) -> AsyncGenerator[Batch, None]:
        if not self._cluster:
            listing = await self._client.list(self._prefix)
            events = self._take(listing)
            self._reached(True)
            yield Batch(events, self.revision, self._cluster)
        async with aclosing(self._client.watch(self._prefix, self.revision + 1)) as batches:
            async for batch in batches:
                # Restored from a backup or made anew, then its revisions are not those we know;
                # or a member that lags behind the one we listed at, which takes a moment.
                if batch.cluster_id != self._cluster or batch.revision < self.revision:
                    self._cluster = ""
                    await asyncio.sleep(_FIRST_PAUSE_S)
                    return
                self._reached(True)
                if batch.events:
                    self._apply(batch)
                    yield batch

    def _take(self, listing: Listing) -> tuple[Event, ...]:
        gone = [Event(key, None) for key in self.entries if key not in listing.entries]
        come = [
            Event(key, entry)
            for key, entry in listing.entries.items()
            if self.entries.get(key) != entry
        ]
        self.entries = dict(listing.entries)
        self.revision, self._cluster = listing.revision, listing.cluster_id
        return (*gone, *come)

    def _apply(self, batch: Batch) -> None:
        for event in batch.events:
            if event.entry is None:
                self.entries.pop(event.key, None)
            else:
                self.entries[event.key] = event.entry
        self.revision = batch.revision
