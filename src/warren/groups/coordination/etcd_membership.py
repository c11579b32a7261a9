"""A member's own keys in etcd, under a lease that lives as long as the member is heard of."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from warren.errors import Fenced
from warren.groups.coordination import etcd_values as etcd
from warren.groups.coordination.base import Report
from warren.groups.coordination.etcd_client import NOT_FOUND, EtcdClient
from warren.groups.coordination.etcd_deaths import Deaths
from warren.groups.coordination.etcd_errors import EtcdError, EtcdRefused
from warren.groups.coordination.etcd_keys import Keys, Word, encode_word

#: etcd takes 128 operations in a transaction, unless it is told otherwise.
OPERATIONS = 100
#: How long what outlives its writer is kept when nobody is in the group any more.
GROUP_TTL_S = 30
#: How long a goodbye may take; and when etcd has not answered before.
LEAVE_S, LOST_S = 5.0, 0.5
_LONGEST_PAUSE_S = 1.0
_LOOK_S = 0.25


class Membership:
    """Registers a member and keeps it registered, with its newest report.

    ``lease`` is 0 while it is not registered. ``renewed`` is called after every success, with
    whether the lease is a new one; ``failed`` after every failure; ``emptied`` when the group's
    lease had run out, and with it all that outlives its writer.
    """

    def __init__(
        self,
        client: EtcdClient,
        keys: Keys,
        report: Report,
        *,
        group: str,
        ttl_s: int,
        deaths: Deaths | None = None,
        renewed: Callable[[bool], Any],
        failed: Callable[[str], None],
        emptied: Callable[[], None],
    ) -> None:
        self.lease = 0
        self.member = report.member
        self.life = deaths.life if deaths is not None else ""
        self._deaths = deaths
        self._client, self._keys, self._group, self._ttl_s = client, keys, group, ttl_s
        self._key = keys.members + report.member
        self._newest = report
        self._claimed: set[str] = set()
        self._former = 0
        self._is_written = False
        self._renewed, self._failed, self._emptied = renewed, failed, emptied
        self._nudged = asyncio.Event()
        self._lock = asyncio.Lock()

    def nudge(self) -> None:
        """Something failed: look at once how things are."""
        self._nudged.set()

    async def keep_loop(self) -> None:
        """Renew the lease for ever, and register again whenever it has run out."""
        pause_s = self._ttl_s / 3
        while True:
            await self._pause(pause_s)
            try:
                is_new = await self.renew()
            except (EtcdError, Fenced) as error:
                self._failed(str(error))
                pause_s = min(max(0.1, random.uniform(0.7, 1.0) * pause_s * 2), _LONGEST_PAUSE_S)
            else:
                await self._renewed(is_new)
                pause_s = self._ttl_s / 3

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._nudged.wait()
            await asyncio.sleep(0.02)  # one nudge for a burst of failures
        except TimeoutError:
            pass
        self._nudged.clear()

    async def renew(self) -> bool:
        """One round; whether the lease is a new one.

        Raises:
            EtcdError: it is not known how things are.
            Fenced: another process is there under this name.
        """
        is_new = not self.lease or not await self._client.keep_alive(self.lease)
        if is_new and self._deaths is not None and not self._deaths.is_open:
            return False  # declared dead, and rightly: the group is about to leave
        if is_new:
            await self._register()
        if not self._is_written:
            await self._write()
        if not await self._client.keep_alive(self._keys.lease):
            await self._client.grant(GROUP_TTL_S, self._keys.lease)
            self._emptied()
        return is_new

    # -- registering -----------------------------------------------------------------------------
    async def _register(self) -> None:
        self.lease, self._is_written = 0, False
        self._claimed.clear()
        if self._former:  # if it is there after all, it would keep us out
            await self._client.revoke(self._former)
        await self._client.grant(GROUP_TTL_S, self._keys.lease)
        self._former = lease = await self._client.grant(self._ttl_s)
        # Nothing that an earlier life of this name was assigned is to be taken up.
        then = [
            etcd.put(self._key, self._word(), lease=lease),
            etcd.delete(self._keys.assignments + self.member),
        ]
        try:
            while not await self._is_registered(lease, then):
                await self._client.keep_alive(lease)
        except BaseException:
            await self._forget(lease)
            raise
        self.lease = lease

    async def _is_registered(self, lease: int, then: Sequence[etcd.Json]) -> bool:
        outcome = await self._client.transact(
            [etcd.is_absent(self._key)], then, [etcd.get(self._key)], twice=True
        )
        if outcome.succeeded or any(entry.lease == lease for entry in outcome.found):
            return True
        for entry in outcome.found:
            await self._outlive(entry.lease)
        return False

    async def _outlive(self, lease: int) -> None:
        """Return when a lease of a former life has run out; refuse if somebody renews it."""
        loop = asyncio.get_running_loop()
        left_s = await self._client.time_to_live(lease)
        over_at = (
            loop.time() + left_s + 1.5
        )  # whole seconds are told, and etcd looks twice a second
        while left_s >= 0:
            await asyncio.sleep(_LOOK_S)
            now_s = await self._client.time_to_live(lease)
            if now_s > left_s or (now_s >= 0 and loop.time() > over_at):
                raise Fenced(self._group, self.member)
            left_s = now_s

    async def _forget(self, lease: int) -> None:
        try:
            async with asyncio.timeout(_LOOK_S):
                await self._client.revoke(lease)
        except (EtcdError, TimeoutError):
            pass  # it runs out by itself

    # -- reporting -------------------------------------------------------------------------------
    async def report(self, report: Report) -> None:
        """Show the newest report; if that fails now, it is done by ``keep_loop``."""
        self._newest, self._is_written = report, False
        lease = self.lease
        if not lease:
            return
        try:
            await self._write()
        except EtcdError as error:
            ran_out = isinstance(error, EtcdRefused) and error.code == NOT_FOUND
            if ran_out and lease == self.lease:
                self.lease = 0  # while we were not looking
            self.nudge()

    def _word(self, *, leaving: bool = False) -> bytes:
        return encode_word(Word(self._newest, leaving, self.life))

    async def _write(self) -> None:
        async with self._lock:
            report = self._newest
            held = set(report.held)
            ops = [etcd.put(self._key, self._word(), lease=self.lease)]
            ops += [
                etcd.put(self._keys.claims + queue, self.member, lease=self.lease)
                for queue in sorted(held - self._claimed)
            ]
            # The next holder may have claimed it already: only what is ours is deleted.
            for queue in sorted(self._claimed - held):
                key = self._keys.claims + queue
                ops.append(etcd.only_if(etcd.is_under(key, self.lease), etcd.delete(key)))
            for at in range(0, len(ops), OPERATIONS // 2):
                await self._client.transact([], ops[at : at + OPERATIONS // 2], twice=True)
            self._claimed, self._is_written = held, report is self._newest

    # -- going -----------------------------------------------------------------------------------
    async def leave(self, *, goodbye: bool, within_s: float = LEAVE_S) -> None:
        """Take all that is ours away, and all of the group if nobody else is in it."""
        if not self.lease:
            return
        lease, self.lease = self.lease, 0
        try:
            async with asyncio.timeout(within_s):
                if goodbye:
                    await self._client.put(self._key, self._word(leaving=True), lease=lease)
                await self._client.revoke(lease)
                nobody = [etcd.is_empty(self._keys.members)]
                await self._client.transact(nobody, [etcd.delete_all(self._keys.root)], twice=True)
        except (EtcdError, TimeoutError):
            pass  # the leases run out by themselves
