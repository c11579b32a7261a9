"""Standing for election in etcd, and what the one who was elected does there.

The dispatcher is who made the key ``dispatcher``. All that it writes is on the condition that the
key is still the one it made: the revision of that is its fencing number.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from warren.groups.coordination import etcd_values as etcd
from warren.groups.coordination.base import (
    Assignment,
    Commanded,
    Deposed,
    Elected,
    Event,
    GroupState,
    Left,
    Reported,
)
from warren.groups.coordination.etcd_client import EtcdClient
from warren.groups.coordination.etcd_deaths import Deaths
from warren.groups.coordination.etcd_errors import EtcdError
from warren.groups.coordination.etcd_keys import (
    Keys,
    decode_assignment,
    decode_command,
    decode_dispatcher,
    decode_state,
    decode_word,
    encode_assignment,
    encode_dispatcher,
    encode_state,
)
from warren.groups.coordination.etcd_membership import OPERATIONS, Membership
from warren.groups.coordination.etcd_mirror import Mirror
from warren.groups.coordination.etcd_values import Entry, Json, Listing

log = logging.getLogger(__name__)

_TRANSACTION_BYTES = 500_000
_AGAIN_S = 0.2


class Election:
    """Makes a member the dispatcher when there is none, and carries what a dispatcher says."""

    def __init__(
        self,
        client: EtcdClient,
        keys: Keys,
        membership: Membership,
        tell: Callable[[Event], None],
        deaths: Deaths | None = None,
    ) -> None:
        self._client, self._keys, self._membership, self._tell = client, keys, membership, tell
        self._deaths = deaths
        #: The revision at which we made the key, 0 if we are not the dispatcher.
        self._fence = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._is_told = False
        self._gone: set[str] = set()
        #: What we know to be in etcd below quotas, queues and state.
        self._written: dict[str, bytes] = {}
        self._lock = asyncio.Lock()

    # -- becoming it -----------------------------------------------------------------------------
    async def stand_loop(self) -> None:
        """Watch who is the dispatcher, and stand whenever nobody is."""
        mirror = Mirror(self._client, self._keys.dispatcher)
        async for _ in mirror.follow():
            entry = mirror.entries.get(self._keys.dispatcher)
            if entry is None:
                self.end("the dispatcher's key is gone")
                await self._stand()
            elif not self._begin_if_ours(entry):
                member, life = decode_dispatcher(entry.value)
                self.end(f"{member} is the dispatcher")
                self._watch(member, life)

    async def look(self) -> None:
        """After etcd was away: nothing may have changed, and so nothing be told."""
        if self._fence:
            return
        try:
            entry = await self._client.get(self._keys.dispatcher)
        except EtcdError:
            self._membership.nudge()
            return
        if entry is None:
            await self._stand()
        else:
            self._begin_if_ours(entry)

    def _begin_if_ours(self, entry: Entry) -> bool:
        if not self._membership.lease or entry.lease != self._membership.lease:
            return False
        if self._fence != entry.create_revision:
            self.end("elected anew")
            self._fence = entry.create_revision
            self._tasks = [asyncio.create_task(self._reign(), name="etcd reports to dispatcher")]
        return True

    async def _stand(self) -> None:
        lease, key = self._membership.lease, self._keys.dispatcher
        if not lease:
            return
        me = encode_dispatcher(self._membership.member, self._membership.life)
        try:
            await self._client.transact(
                [etcd.is_absent(key)], [etcd.put(key, me, lease=lease)], twice=True
            )
        except EtcdError:
            self._membership.nudge()

    def end(self, reason: str) -> None:
        """We are not the dispatcher any more; nothing to do if we were not."""
        tasks, self._tasks, self._fence = self._tasks, [], 0
        for task in tasks:
            if task is not asyncio.current_task():
                task.cancel()
        if self._is_told:
            self._is_told = False
            self._tell(Deposed(reason))

    def stop(self) -> list[asyncio.Task[None]]:
        """Tell nothing any more; the tasks that are ending."""
        tasks, self._is_told = self._tasks, False
        self.end("it leaves")
        return tasks

    # -- hearing ---------------------------------------------------------------------------------
    async def _reign(self) -> None:
        members = Mirror(self._client, self._keys.members)
        async for batch in members.follow():
            if not self._is_told:
                await self._take_over(members)
                continue
            for event in batch.events:
                self._hear(event)

    async def _take_over(self, members: Mirror) -> None:
        fence = self._fence
        listing = await self._listing()
        if fence != self._fence:
            return
        state = decode_state(self._keys, listing.entries)
        generation = state.generation if state else 0
        self._written = {}
        for key, entry in listing.entries.items():
            if key.startswith(self._keys.assignments):
                assignment = decode_assignment("", entry.value)
                generation = max(generation, assignment.stamp.generation if assignment else 0)
            if key.startswith((self._keys.quotas, self._keys.queues, self._keys.state)):
                self._written[key] = entry.value
        found = (decode_word(entry.value) for entry in members.entries.values())
        words = [word for word in found if word is not None]
        self._gone = {word.report.member for word in words if word.leaving}
        reports = tuple(word.report for word in words if not word.leaving)
        for word in words:
            self._watch(word.report.member, word.life)
        self._is_told = True
        self._tell(Elected(generation, reports, state))
        self._tasks.append(
            asyncio.create_task(self._command_loop(), name="etcd commands to dispatcher")
        )

    async def _listing(self) -> Listing:
        while True:
            try:
                return await self._client.list(self._keys.root)
            except EtcdError:
                self._membership.nudge()
                await asyncio.sleep(_AGAIN_S)

    def _hear(self, event: etcd.Event) -> None:
        member = event.key.removeprefix(self._keys.members)
        if event.entry is None:
            if member not in self._gone:
                self._tell(Left(member, died=True))
            self._gone.discard(member)
            return
        word = decode_word(event.entry.value)
        if word is None:
            return
        if word.leaving:
            self._gone.add(member)
            if self._deaths is not None:
                self._deaths.forget(member)
            self._tell(Left(member, died=False))
        else:
            self._gone.discard(member)
            self._watch(member, word.life)
            self._tell(Reported(word.report))

    def _watch(self, member: str, life: str) -> None:
        if self._deaths is not None:
            self._deaths.watch(member, life)

    async def bury(self, member: str, life: str) -> None:
        """We got a member's will: end its lease, and with it all that was its own."""
        try:
            entry = await self._client.get(self._keys.members + member)
            word = None if entry is None else decode_word(entry.value)
            if entry is not None and word is not None and word.life == life:
                await self._client.revoke(entry.lease)
        except EtcdError as error:
            log.info("the lease of %s, who died, has to run out: %s", member, error)

    async def _command_loop(self) -> None:
        mirror = Mirror(self._client, self._keys.commands)
        async for batch in mirror.follow():
            for event in batch.events:
                if event.entry is None:
                    continue
                if (command := decode_command(event.entry.value)) is not None:
                    self._tell(Commanded(command))
                try:
                    await self._client.delete(event.key)
                except EtcdError:
                    log.info("the command %s may be heard again", event.key)

    # -- speaking --------------------------------------------------------------------------------
    async def publish(self, assignments: Sequence[Assignment], state: GroupState | None) -> None:
        """Write what is new, if we are still the dispatcher."""
        async with self._lock:
            fence = self._fence
            if not fence:
                return
            changes: dict[str, bytes | None] = {
                self._keys.assignments + each.member: encode_assignment(each)
                for each in assignments
            }
            if state is not None:
                changes |= self._difference(encode_state(self._keys, state))
            try:
                await self._write(changes, fence)
            except EtcdError:
                self._membership.nudge()

    def _difference(self, wanted: dict[str, bytes]) -> dict[str, bytes | None]:
        changes: dict[str, bytes | None] = dict.fromkeys(self._written.keys() - wanted.keys())
        for key in list(changes):
            if key.startswith(self._keys.quotas):
                changes[self._keys.assignments + key.removeprefix(self._keys.quotas)] = None
        changes |= {key: value for key, value in wanted.items() if self._written.get(key) != value}
        return changes

    async def _write(self, changes: dict[str, bytes | None], fence: int) -> None:
        still_us = [etcd.is_created_at(self._keys.dispatcher, fence)]
        for part in _parts(changes):
            ops: list[Json] = [
                etcd.delete(key) if value is None else etcd.put(key, value, lease=self._keys.lease)
                for key, value in part.items()
            ]
            outcome = await self._client.transact(still_us, ops, twice=True)
            if not outcome.succeeded:
                if fence == self._fence:
                    self.end("another member is the dispatcher now")
                return
            for key, value in part.items():
                if value is None:
                    self._written.pop(key, None)
                elif not key.startswith(self._keys.assignments):
                    self._written[key] = value

    def forget_written(self) -> None:
        """The group's lease had run out, and all that was under it with it."""
        self._written = {}


def _parts(changes: dict[str, bytes | None]) -> Iterator[dict[str, bytes | None]]:
    """As much at a time as etcd takes in one transaction."""
    part: dict[str, bytes | None] = {}
    size_bytes = 0
    for key, value in changes.items():
        size_bytes += len(key) + len(value or b"")
        if part and (len(part) >= OPERATIONS or size_bytes > _TRANSACTION_BYTES):
            yield part
            part, size_bytes = {}, len(key) + len(value or b"")
        part[key] = value
    if part:
        yield part
