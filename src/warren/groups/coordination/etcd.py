"""The coordinator for those who want a group's state readable from a terminal: etcd.

``etcd://host:2379,host:2379``. What is where in etcd, ``etcd_keys.py`` says. Leases tell who is
alive; when etcd is away for longer than those last, everybody keeps what it holds, nobody is the
dispatcher, and with etcd's return all register again with what they hold.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from warren.client.connection import Connection
from warren.errors import Fenced, NoSuchGroup
from warren.groups.coordination import etcd_values as etcd
from warren.groups.coordination.base import (
    Assigned,
    Assignment,
    Command,
    Coordinator,
    Event,
    GroupState,
    Reachable,
    Report,
    Unreachable,
)
from warren.groups.coordination.etcd_client import EtcdClient
from warren.groups.coordination.etcd_deaths import Deaths
from warren.groups.coordination.etcd_election import Election
from warren.groups.coordination.etcd_errors import EtcdError
from warren.groups.coordination.etcd_keys import (
    Keys,
    decode_assignment,
    decode_state,
    encode_command,
)
from warren.groups.coordination.etcd_membership import LEAVE_S, LOST_S, Membership
from warren.groups.coordination.etcd_mirror import Mirror
from warren.groups.coordination.etcd_url import EtcdAddress

log = logging.getLogger(__name__)

#: How often, and how far apart, to look for the state of a group that has members.
_LOOKS, _LOOK_S = 100, 0.05


class EtcdCoordinator(Coordinator):
    """One member's line to its group through etcd; also a person's."""

    def __init__(self, url: str, group: str, connection: Any = None) -> None:
        super().__init__(url, group, connection)
        self._address = EtcdAddress.parse(url)
        self._keys = Keys(self._address.prefix, group)
        self._opened: EtcdClient | None = None
        self._membership: Membership | None = None
        self._election: Election | None = None
        self._deaths: Deaths | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._teller: Callable[[Event], None] | None = None
        self._lost_at: float | None = None

    def __repr__(self) -> str:
        return f"<EtcdCoordinator of {self.group} at {self._address.endpoints}>"

    @property
    def _client(self) -> EtcdClient:
        if self._opened is None:
            self._opened = open_client(self._address)
        return self._opened

    # -- being a member --------------------------------------------------------------------------
    async def join(self, report: Report, tell: Callable[[Event], None]) -> None:
        self._teller = tell
        if isinstance(self.connection, Connection):
            self._deaths = Deaths(self.connection, self.group, self._died)
            await self._deaths.deposit(report.member)
        self._membership = membership = Membership(
            self._client,
            self._keys,
            report,
            group=self.group,
            ttl_s=self._address.ttl_s,
            deaths=self._deaths,
            renewed=self._renewed,
            failed=self._failed,
            emptied=self._emptied,
        )
        self._election = Election(self._client, self._keys, membership, self._tell, self._deaths)
        try:
            await membership.renew()
        except EtcdError as error:
            self._failed(str(error))
            membership.nudge()
        except Fenced:
            await self.close()
            raise
        self._start("etcd lease", membership.keep_loop())
        self._start("etcd election", self._election.stand_loop())
        self._start("etcd assignments", self._assignment_loop(report.member))

    def _start(self, name: str, loop: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(loop, name=f"{name} of {self.group}")
        task.add_done_callback(_log_failure)
        task.add_done_callback(self._tasks.discard)
        self._tasks.add(task)

    def _tell(self, event: Event) -> None:
        if self._teller is not None:
            self._teller(event)

    def _died(self, member: str, life: str) -> None:
        if self._election is not None:
            self._start("etcd burial", self._election.bury(member, life))

    async def _renewed(self, is_new: bool) -> None:
        assert self._election is not None
        if is_new:
            self._election.end("its lease in etcd ran out")
        await self._election.look()
        if self._lost_at is not None:
            self._lost_at = None
            log.warning("group %s: etcd answers again", self.group)
            self._tell(Reachable())

    def _emptied(self) -> None:
        if self._election is not None:
            self._election.forget_written()

    def _failed(self, reason: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._lost_at is None:
            self._lost_at = now
            log.warning(
                "group %s: %s. Until then members keep what they hold and nothing moves; it goes "
                "on trying",
                self.group,
                reason,
            )
            self._tell(Unreachable(reason))
        # From now on another one may be elected where etcd can be reached.
        elif self._election is not None and now - self._lost_at > self._address.ttl_s:
            self._election.end("etcd can't be reached")

    async def _assignment_loop(self, member: str) -> None:
        key = self._keys.assignments + member
        mirror = Mirror(self._client, key, reached=self._noticed)
        last: Assignment | None = None
        async for _ in mirror.follow():
            if key not in mirror.entries:
                continue
            assignment = decode_assignment(member, mirror.entries[key].value)
            if assignment is not None and assignment != last:
                last = assignment
                self._tell(Assigned(assignment))

    def _noticed(self, is_reached: bool) -> None:
        if not is_reached and self._lost_at is None and self._membership is not None:
            self._membership.nudge()

    async def report(self, report: Report) -> None:
        if self._membership is not None:
            await self._membership.report(report)

    async def publish(
        self, assignments: Sequence[Assignment], state: GroupState | None = None
    ) -> None:
        if self._election is not None:
            await self._election.publish(assignments, state)

    async def leave(self) -> None:
        await self._go(goodbye=True)

    async def close(self) -> None:
        await self._go(goodbye=False)

    async def _go(self, *, goodbye: bool) -> None:
        self._teller = None
        tasks, self._tasks = set(self._tasks), set()
        for task in tasks:
            task.cancel()
        if self._election is not None:
            tasks.update(self._election.stop())
        if tasks:
            await asyncio.wait(tasks)
        membership, self._membership, self._election = self._membership, None, None
        if membership is not None:
            # One that does not answer is not waited for: the broker may be back before it is.
            within_s = LEAVE_S if self._lost_at is None else LOST_S
            await membership.leave(goodbye=goodbye, within_s=within_s)
        deaths, self._deaths = self._deaths, None
        if deaths is not None:
            await deaths.close()
        client, self._opened = self._opened, None
        if client is not None:
            await client.aclose()

    # -- looking and asking ----------------------------------------------------------------------
    async def read(self) -> GroupState | None:
        for _ in range(_LOOKS):
            listing = await self._client.list(self._keys.root)
            state = decode_state(self._keys, listing.entries)
            if not any(key.startswith(self._keys.members) for key in listing.entries):
                return None
            if state is not None:
                return state
            await asyncio.sleep(_LOOK_S)  # a dispatcher that has not decided anything yet
        return GroupState(self.group)

    async def command(self, command: Command) -> None:
        key = f"{self._keys.commands}{time.time_ns():020}-{secrets.token_hex(4)}"
        outcome = await self._client.transact(
            [etcd.is_not_empty(self._keys.members)],  # who may elect a dispatcher only now
            [etcd.put(key, encode_command(command), lease=self._keys.lease)],
            twice=True,
        )
        if not outcome.succeeded:
            raise NoSuchGroup(self.group)


def open_client(address: EtcdAddress) -> EtcdClient:
    """A client for what a URL says."""
    return EtcdClient(
        address.endpoints,
        user=address.user,
        password=address.password,
        tls=address.tls_context(),
        timeout_s=address.timeout_s,
    )


async def list_groups(url: str) -> list[str]:
    """The names of all groups that have keys in etcd."""
    address = EtcdAddress.parse(url)
    found: list[str] = []
    async with open_client(address) as client:
        keys = Keys(address.prefix, "")
        after = keys.top
        # From the first key of a group to the first that is of no group before it.
        while (entry := await client.first(after, keys.top)) is not None:
            found.append(keys.group_of(entry.key))
            after = Keys(address.prefix, found[-1]).root[:-1] + "0"
    return found


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s has failed", task.get_name(), exc_info=error)
