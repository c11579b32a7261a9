"""The etcd client, on a real etcd."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates import Authority
from tests.support.etcd import Etcd
from tests.support.etcd_process import etcd_process
from tests.support.servers import free_ports
from warren.groups.coordination import etcd_client
from warren.groups.coordination.etcd_client import NOT_FOUND, EtcdClient
from warren.groups.coordination.etcd_errors import (
    EtcdCompacted,
    EtcdRefused,
    EtcdUnreachable,
    EtcdUnsure,
)
from warren.groups.coordination.etcd_url import EtcdAddress
from warren.groups.coordination.etcd_values import (
    Batch,
    delete,
    get,
    has_value,
    is_absent,
    is_created_at,
    is_present,
    is_unchanged,
    put,
)

WITHIN_S = 20


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncIterator[EtcdClient]:
    address = EtcdAddress.parse(url)
    async with EtcdClient(
        address.endpoints,
        user=address.user,
        password=address.password,
        tls=address.tls_context(),
        **options,
    ) as client:
        yield client


@pytest.fixture
async def client(etcd: Etcd) -> AsyncIterator[EtcdClient]:
    async with connected(etcd.url) as client:
        yield client


@pytest.fixture
async def at(client: EtcdClient) -> AsyncIterator[str]:
    """A prefix below which is nothing; what comes there is deleted after the test."""
    prefix = f"/test/{secrets.token_hex(6)}/"
    yield prefix
    await client.delete_all(prefix)


async def soon(events: Any) -> Batch:
    batch: Batch = await asyncio.wait_for(anext(events), WITHIN_S)
    return batch


# -- keys ----------------------------------------------------------------------------------------
async def test_a_value_is_read_as_it_was_put(client: EtcdClient, at: str) -> None:
    assert await client.get(at) is None
    revision = await client.put(f"{at}ключ", b"\0\xff")
    entry = await client.get(f"{at}ключ")
    assert entry is not None
    assert (entry.value, entry.mod_revision) == (b"\0\xff", revision)
    assert await client.delete(f"{at}ключ")
    assert not await client.delete(f"{at}ключ")


async def test_a_listing_has_all_below_the_prefix_and_nothing_beside_it(
    client: EtcdClient, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_client, "_PAGE", 3)
    for name in ("a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a", "b", "a0"):
        await client.put(at + name, name)
    listing = await client.list(f"{at}a/")
    assert sorted(listing.entries) == [f"{at}a/{number}" for number in range(1, 7)]
    assert await client.delete_all(f"{at}a/") == 6
    assert sorted((await client.list(at)).entries) == [at + name for name in ("a", "a0", "b")]


async def test_a_transaction_happens_as_a_whole_or_not_at_all(client: EtcdClient, at: str) -> None:
    lock, other = f"{at}lock", f"{at}other"
    first = await client.transact([is_absent(lock)], [put(lock, "one"), put(other, "x")])
    second = await client.transact([is_absent(lock)], [put(lock, "two")], [get(lock)])
    assert first.succeeded
    assert not second.succeeded
    assert [entry.value for entry in second.found] == [b"one"]
    created = second.found[0].create_revision
    assert (await client.transact([is_present(lock), has_value(lock, "one")], [])).succeeded
    assert (await client.transact([is_created_at(lock, created)], [put(lock, "on")])).succeeded
    # Fenced: somebody has changed it since.
    assert not (await client.transact([is_unchanged(lock, created)], [delete(lock)])).succeeded
    assert (await client.transact([is_created_at(lock, created)], [delete(lock)])).succeeded
    assert not (await client.transact([is_created_at(lock, created)], [])).succeeded


# -- leases --------------------------------------------------------------------------------------
async def test_what_is_put_under_a_lease_goes_with_it(client: EtcdClient, at: str) -> None:
    lease = await client.grant(60)
    await client.put(f"{at}a", "1", lease=lease)
    assert await client.keep_alive(lease) == 60
    await client.revoke(lease)
    assert await client.get(f"{at}a") is None


async def test_a_lease_that_is_gone_is_told(client: EtcdClient, at: str) -> None:
    lease = await client.grant(60)
    await client.revoke(lease)
    await client.revoke(lease)
    assert await client.keep_alive(lease) == 0
    with pytest.raises(EtcdRefused, match="lease not found") as refused:
        await client.put(f"{at}a", "1", lease=lease)
    assert refused.value.code == NOT_FOUND


# -- watching ------------------------------------------------------------------------------------
async def test_a_watch_tells_what_came_since_a_revision(client: EtcdClient, at: str) -> None:
    revision = await client.put(f"{at}a", "1")
    await client.put(f"{at}a", "2")
    await client.put(f"{at[:-1]}-beside", "3")
    await client.delete_all(f"{at[:-1]}-beside")
    async with aclosing(client.watch(at, revision + 1)) as batches:
        assert (await soon(batches)).events == ()
        (event,) = (await soon(batches)).events
        assert event.entry is not None
        assert (event.key, event.entry.value) == (f"{at}a", b"2")
        await client.delete(f"{at}a")
        (event,) = (await soon(batches)).events
        assert (event.key, event.entry) == (f"{at}a", None)


async def test_what_was_written_at_once_is_seen_at_once(client: EtcdClient, at: str) -> None:
    revision = await client.put(f"{at}a", "1")
    async with aclosing(client.watch(at, revision + 1)) as batches:
        await soon(batches)
        done = await client.transact([], [put(f"{at}b", "2"), put(f"{at}c", "3"), delete(f"{at}a")])
        batch = await soon(batches)
    assert sorted(event.key for event in batch.events) == [f"{at}a", f"{at}b", f"{at}c"]
    assert batch.revision == done.revision


async def test_a_watch_from_a_forgotten_revision_is_refused(client: EtcdClient, at: str) -> None:
    old = await client.put(f"{at}a", "1")
    new = await client.put(f"{at}a", "2")
    await client.call("kv/compaction", {"revision": new})
    async with aclosing(client.watch(at, old)) as batches:
        await soon(batches)
        with pytest.raises(EtcdCompacted) as compacted:
            await soon(batches)
    assert compacted.value.oldest == new


# -- endpoints -----------------------------------------------------------------------------------
async def test_the_next_endpoint_is_used_when_one_is_not_there(etcd: Etcd, at: str) -> None:
    (port,) = free_ports(1)
    alive = etcd.url.removeprefix("http://")
    async with connected(f"etcd://127.0.0.1:{port},{alive}") as client:
        await client.put(f"{at}a", "1")
        assert client.address == etcd.url


@asynccontextmanager
async def deaf() -> AsyncIterator[int]:
    """A server that takes connections and says nothing; its port."""
    open_ones: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: open_ones.append(writer), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_ones:
            writer.transport.abort()
        await server.wait_closed()


async def test_the_next_endpoint_is_used_when_one_does_not_answer(etcd: Etcd, at: str) -> None:
    alive = etcd.url.removeprefix("http://")
    async with deaf() as port, connected(f"etcd://127.0.0.1:{port},{alive}", timeout_s=2) as client:
        await client.put(f"{at}a", "1")
        assert client.address == etcd.url


async def test_a_transaction_is_not_sent_twice(etcd: Etcd, at: str) -> None:
    alive = etcd.url.removeprefix("http://")
    async with deaf() as port, connected(f"etcd://127.0.0.1:{port},{alive}", timeout_s=2) as client:
        with pytest.raises(EtcdUnsure, match=f"127.0.0.1:{port} may have done kv/txn, or not"):
            await client.transact([], [put(f"{at}a", "1")])
        assert (await client.transact([], [put(f"{at}a", "1")])).succeeded


async def test_a_watch_ends_when_its_endpoint_stops_to_answer_calls(etcd: Etcd, at: str) -> None:
    async with connected(etcd.url) as client, aclosing(client.watch(at, 0)) as batches:
        await soon(batches)
        client._leave(client._endpoints[0])  # as a call does that gets no answer
        with pytest.raises(EtcdUnreachable):
            await soon(batches)


async def test_who_was_tried_is_told_when_nobody_answers() -> None:
    one, two = free_ports(2)
    async with connected(f"etcd://ann:secret@127.0.0.1:{one},127.0.0.1:{two}") as client:
        with pytest.raises(EtcdUnreachable) as unreachable:
            await client.get("a")
    told = str(unreachable.value)
    assert f"127.0.0.1:{one}: " in told
    assert f"127.0.0.1:{two}: " in told
    assert "secret" not in told + repr(client)


async def test_what_is_no_etcd_is_told(etcd: Etcd) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with (
        server,
        connected(f"etcd://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client,
    ):
        with pytest.raises(EtcdUnreachable, match="it answers 200, and not as etcd does"):
            await client.get("a")


# -- TLS and logins ------------------------------------------------------------------------------
@pytest.mark.slow
async def test_tls_with_client_certificates_and_a_login(tmp_path: Path) -> None:
    # No common name: the gateway refuses certificates that have one when there are logins.
    authority = Authority(tmp_path / "ca")
    server, ann = authority.issue("server", "/CN=etcd"), authority.issue("ann", "/O=ann")
    options = (
        *("--cert-file", server.certificate, "--key-file", server.key),
        *("--client-cert-auth", "--trusted-ca-file", authority.ca),
    )
    files = f"?ca_file={authority.ca}&cert_file={ann.certificate}&key_file={ann.key}"
    with etcd_process(tmp_path / "etcd", *options, tls=True) as etcd:
        async with connected(etcd.url + files) as root:
            await root.call("auth/user/add", {"name": "root", "password": "pw"})
            await root.call("auth/role/add", {"name": "root"})
            await root.call("auth/user/grant", {"user": "root", "role": "root"})
            await root.call("auth/enable", {})
        at = f"127.0.0.1:{etcd.port}{files}"
        async with connected(f"etcds://{at}") as nobody:
            with pytest.raises(EtcdRefused, match="permission denied"):
                await nobody.put("a", "1")
        async with connected(f"etcds://root:wrong@{at}") as wrong:
            with pytest.raises(EtcdRefused, match="authentication failed"):
                await wrong.put("a", "1")
        async with connected(f"etcds://root:pw@{at}") as root:
            await root.put("a", "1")
            async with aclosing(root.watch("a", 1)) as batches:
                await soon(batches)
                assert len((await soon(batches)).events) == 1
            root._token = "forgotten.1"  # as by a restarted etcd
            entry = await root.get("a")
            assert entry is not None
        async with connected(f"etcds://127.0.0.1:{etcd.port}") as stranger:
            with pytest.raises(EtcdUnreachable, match="not to be trusted"):
                await stranger.get("a")
