"""An asyncio client of etcd's version 3, through the JSON gateway that every etcd has.

Several endpoints: a call that one does not answer goes to the next, and what watched there is
told to watch elsewhere. Revisions and leases are etcd's own: see ``etcd_mirror.py`` for a copy
that stays up to date, and ``etcd.py`` for what groups do with them.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any

from warren.groups.coordination.etcd_errors import (
    EtcdCompacted,
    EtcdRefused,
    EtcdUnreachable,
    EtcdUnsure,
)
from warren.groups.coordination.etcd_link import Endpoint, Link, LinkLost
from warren.groups.coordination.etcd_values import (
    Batch,
    Entry,
    Listing,
    Outcome,
    decode_entry,
    decode_events,
    encode,
    range_end,
)

#: gRPC's numbers for what a refusal means, as the gateway tells them.
NOT_FOUND, FAILED_PRECONDITION, UNAVAILABLE, UNAUTHENTICATED = 5, 9, 14, 16
#: Not this endpoint's day, though another may be fine: deadline exceeded, unavailable.
_ELSEWHERE = (4, UNAVAILABLE)
_PAGE = 5_000

Json = dict[str, Any]


class EtcdClient:
    """Calls to an etcd, over connections that are kept open between them.

    ``endpoints`` are tried in their order, beginning with the one that answered last. A password
    is known here and nowhere shown.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        user: str = "",
        password: str = "",
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 3.0,
    ) -> None:
        self._endpoints = list(endpoints)
        self._user, self._password = user, password
        self._tls, self._timeout_s = tls, timeout_s
        if tls is None and any(each.tls for each in endpoints):
            self._tls = ssl.create_default_context()
        self._token = ""
        self._idle: list[Link] = []
        self._watching: set[Link] = set()
        self._ending: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<EtcdClient {', '.join(map(str, self._endpoints))}>"

    @property
    def address(self) -> str:
        """The endpoint that is used now."""
        return str(self._endpoints[0])

    async def __aenter__(self) -> EtcdClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all connections, watches too."""
        for link in (*self._idle, *self._watching):
            self._end(link)
        self._idle.clear()
        if self._ending:
            await asyncio.wait(set(self._ending))

    # -- keys and values -------------------------------------------------------------------------
    async def get(self, key: str) -> Entry | None:
        told = await self.call("kv/range", {"key": encode(key)})
        found = told.get("kvs", ())
        return decode_entry(found[0]) if found else None

    async def list(self, prefix: str) -> Listing:
        """All below ``prefix``, as it was at one moment, by key."""
        entries: dict[str, Entry] = {}
        start, revision, more = encode(prefix), 0, True
        while more:
            body = {"key": start, "range_end": range_end(prefix), "limit": _PAGE}
            told = await self.call("kv/range", {**body, "revision": revision})
            page = [decode_entry(each) for each in told.get("kvs", ())]
            entries.update((each.key, each) for each in page)
            revision = revision or int(told["header"]["revision"])
            more = bool(told.get("more")) and bool(page)
            if more:
                start = encode(page[-1].key + "\0")
        return Listing(entries, revision, told["header"]["cluster_id"])

    async def first(self, start: str, prefix: str) -> Entry | None:
        """The first key below ``prefix`` that is not before ``start``; without its value."""
        body = {"key": encode(start), "range_end": range_end(prefix), "limit": 1}
        told = await self.call("kv/range", {**body, "keys_only": True})
        found = told.get("kvs", ())
        return decode_entry(found[0]) if found else None

    async def put(self, key: str, value: str | bytes, *, lease: int = 0) -> int:
        """Set a value; the revision that it became.

        Raises:
            EtcdRefused: with code ``NOT_FOUND``: the lease has run out.
        """
        body = {"key": encode(key), "value": encode(value), "lease": lease}
        return int((await self.call("kv/put", body))["header"]["revision"])

    async def delete(self, key: str) -> bool:
        """Delete a key; whether it was there."""
        told = await self.call("kv/deleterange", {"key": encode(key)})
        return bool(int(told.get("deleted", 0)))

    async def delete_all(self, prefix: str) -> int:
        """Delete all below a prefix; how many there were."""
        body = {"key": encode(prefix), "range_end": range_end(prefix)}
        return int((await self.call("kv/deleterange", body)).get("deleted", 0))

    async def transact(
        self,
        compare: Sequence[Json],
        then: Sequence[Json],
        otherwise: Sequence[Json] = (),
        *,
        twice: bool = False,
    ) -> Outcome:
        """All of ``then`` at once if every comparison holds, else all of ``otherwise``.

        Raises:
            EtcdUnsure: the connection ended before the answer: it may have happened, or not;
                unless ``twice`` says that it may happen twice.
        """
        body = {"compare": compare, "success": then, "failure": otherwise}
        told = await self.call("kv/txn", body, twice=twice)
        found: list[Entry] = []
        for answer in told.get("responses", ()):
            found += map(decode_entry, answer.get("response_range", {}).get("kvs", ()))
        return Outcome(
            bool(told.get("succeeded")), tuple(found), int(told["header"].get("revision", 0))
        )

    # -- leases ----------------------------------------------------------------------------------
    async def grant(self, ttl_s: int, lease: int = 0) -> int:
        """A new lease, of a number that etcd picks or of this one, which may be there already.

        etcd makes it a little longer if its elections need that.
        """
        try:
            return int((await self.call("lease/grant", {"TTL": ttl_s, "ID": lease}))["ID"])
        except EtcdRefused as refused:
            if lease and refused.code == FAILED_PRECONDITION:
                return lease
            raise

    async def keep_alive(self, lease: int) -> int:
        """Renew a lease; the seconds that it has now, 0 if it has run out."""
        told = await self.call("lease/keepalive", {"ID": lease})
        return int(told.get("result", {}).get("TTL", 0))

    async def time_to_live(self, lease: int) -> int:
        """The seconds that a lease has; -1 if it is gone."""
        told = await self.call("lease/timetolive", {"ID": lease})
        return int(told.get("TTL", 0))

    async def revoke(self, lease: int) -> None:
        """End a lease and delete what was put under it."""
        try:
            await self.call("lease/revoke", {"ID": lease})
        except EtcdRefused as refused:
            if refused.code != NOT_FOUND:
                raise

    # -- watching --------------------------------------------------------------------------------
    async def watch(self, prefix: str, from_revision: int) -> AsyncGenerator[Batch, None]:
        """What happens below ``prefix`` from a revision on; the first batch is empty.

        A batch has all events of its revisions, so that what was written at once is read at once.

        Raises:
            EtcdCompacted: the revision is too old: list, and watch from there.
            EtcdUnreachable: the connection ended: watch again, from where this one got to.
        """
        wanted = {"key": encode(prefix), "range_end": range_end(prefix)}
        body = {"create_request": {**wanted, "start_revision": from_revision}}
        endpoint = self._endpoints[0]
        try:
            async with self._watch_link(endpoint) as at, aclosing(self._lines(at, body)) as lines:
                async for told in lines:
                    yield self._batch(told)
        except LinkLost as lost:
            self._leave(endpoint)
            raise EtcdUnreachable(((str(endpoint), lost.reason),)) from None

    @asynccontextmanager
    async def _watch_link(self, endpoint: Endpoint) -> AsyncIterator[Link]:
        link = await Link.open(endpoint, self._tls, self._timeout_s)
        self._watching.add(link)
        try:
            yield link
        finally:
            self._watching.discard(link)
            self._end(link)

    async def _lines(self, link: Link, body: Json) -> AsyncGenerator[Json, None]:
        headers = await self._headers()
        try:
            async with asyncio.timeout(self._timeout_s):
                status, pieces = await link.post("/v3/watch", json.dumps(body).encode(), headers)
        except TimeoutError:
            raise LinkLost(f"no answer within {self._timeout_s:g} s", sent=True) from None
        rest = b""
        async for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield _judge(status, line, "watch")
        if status != 200 and rest:
            _judge(status, rest, "watch")
        raise LinkLost("it ended the watch", sent=True)

    def _batch(self, told: Json) -> Batch:
        if "error" in told:
            error = told["error"]
            raise EtcdRefused("watch", int(error.get("grpc_code", 0)), error.get("message", ""))
        result = told["result"]
        if result.get("canceled"):
            if "compact_revision" in result:
                raise EtcdCompacted(int(result["compact_revision"]))
            self._token = ""  # it may have been forgotten: the next call gets another
            raise EtcdRefused("watch", UNAUTHENTICATED, result.get("cancel_reason", "cancelled"))
        header, told_events = result["header"], result.get("events", ())
        # The header has the store's revision; one that catches up may have more below it.
        of = told_events[-1]["kv"]["mod_revision"] if told_events else header.get("revision", 0)
        return Batch(decode_events(told_events), int(of), header["cluster_id"])

    # -- calls -----------------------------------------------------------------------------------
    async def call(self, path: str, body: Json, *, twice: bool = True) -> Json:
        """One call of the gateway at the first endpoint that answers.

        ``twice``: it does no harm if two endpoints get it.

        Raises:
            EtcdUnreachable: none has answered.
            EtcdUnsure: one got it and did not answer, and it may not be sent twice.
            EtcdRefused: one answered, and said no.
        """
        data = json.dumps(body).encode()
        told: list[tuple[str, str]] = []
        for endpoint in list(self._endpoints):
            try:
                return await self._call_at(endpoint, path, data, twice)
            except LinkLost as lost:
                self._leave(endpoint)
                told.append((str(endpoint), lost.reason))
                if lost.sent and not twice:
                    raise EtcdUnsure(path, str(endpoint), lost.reason) from None
            except EtcdRefused as refused:
                if refused.code not in _ELSEWHERE:
                    raise
                self._leave(endpoint)
                told.append((str(endpoint), refused.reason))
                if not twice and "timed out" in refused.reason:
                    raise EtcdUnsure(path, str(endpoint), refused.reason) from None
        raise EtcdUnreachable(tuple(told))

    async def _call_at(self, endpoint: Endpoint, path: str, data: bytes, twice: bool) -> Json:
        was_idle = any(each.endpoint == endpoint for each in self._idle)
        try:
            return await self._exchange(endpoint, path, data, await self._headers())
        except LinkLost:
            # It may have ended while it was idle: that says nothing about the endpoint.
            if not (was_idle and twice):
                raise
            self._drop_idle(endpoint)
        except EtcdRefused as refused:
            if refused.code != UNAUTHENTICATED or not self._user:
                raise
            self._token = ""  # forgotten after five idle minutes, or with a restart
        return await self._exchange(endpoint, path, data, await self._headers())

    async def _headers(self) -> dict[str, str]:
        if not self._user:
            return {}
        if not self._token:
            body = json.dumps({"name": self._user, "password": self._password}).encode()
            told = await self._exchange(self._endpoints[0], "auth/authenticate", body, {})
            self._token = str(told["token"])
        return {"Authorization": self._token}

    async def _exchange(
        self, endpoint: Endpoint, path: str, data: bytes, headers: dict[str, str]
    ) -> Json:
        link = self._idle_link(endpoint) or await Link.open(endpoint, self._tls, self._timeout_s)
        try:
            async with asyncio.timeout(self._timeout_s):
                status, pieces = await link.post(f"/v3/{path}", data, headers)
                answer = b"".join([piece async for piece in pieces])
        except TimeoutError:
            self._end(link)
            raise LinkLost(f"no answer within {self._timeout_s:g} s", sent=True) from None
        except BaseException:
            self._end(link)  # half an answer may still be on its way
            raise
        self._idle.append(link)
        return _judge(status, answer, path)

    def _idle_link(self, endpoint: Endpoint) -> Link | None:
        for link in [each for each in self._idle if each.endpoint == endpoint]:
            self._idle.remove(link)
            if link.is_usable:
                return link
            self._end(link)
        return None

    def _leave(self, endpoint: Endpoint) -> None:
        """Go on with the next endpoint, and let those who watch here notice."""
        if self._endpoints[0] == endpoint:
            self._endpoints.append(self._endpoints.pop(0))
        self._drop_idle(endpoint)
        for link in self._watching:
            if link.endpoint == endpoint:
                link.close()

    def _drop_idle(self, endpoint: Endpoint) -> None:
        for link in [each for each in self._idle if each.endpoint == endpoint]:
            self._idle.remove(link)
            self._end(link)

    def _end(self, link: Link) -> None:
        link.close()
        task = asyncio.create_task(link.closed(), name="etcd connection ends")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _judge(status: int, answer: bytes, path: str) -> Json:
    try:
        told = json.loads(answer)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        if 400 <= status < 500:  # its HTTP server refuses, before etcd itself is asked
            text = " ".join(answer.decode(errors="replace").split())[:200]
            raise EtcdRefused(path, 0, text or f"HTTP status {status}")
        raise LinkLost(f"it answers {status}, and not as etcd does", sent=True)
    if status == 200:
        return told
    reason = str(told.get("message") or told.get("error") or f"HTTP status {status}")
    raise EtcdRefused(path, int(told.get("code", 0)), reason.removeprefix("etcdserver: "))
