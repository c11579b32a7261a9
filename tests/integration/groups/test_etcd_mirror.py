"""A copy of a prefix of etcd stays what etcd has."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.etcd import Etcd
from tests.support.etcd_process import etcd_process
from warren.groups.coordination.etcd_client import EtcdClient
from warren.groups.coordination.etcd_mirror import Mirror
from warren.groups.coordination.etcd_url import EtcdAddress
from warren.groups.coordination.etcd_values import Batch

from .test_etcd_client import at, client  # noqa: F401

WITHIN_S = 30


@asynccontextmanager
async def following(mirror: Mirror) -> AsyncIterator[AsyncGenerator[Batch, None]]:
    async with aclosing(mirror.follow()) as batches:
        yield batches


async def until(batches: AsyncGenerator[Batch, None], mirror: Mirror, **wanted: str) -> None:
    """Read changes until the mirror has exactly these values."""

    def found() -> dict[str, str]:
        return {key[-1]: entry.value.decode() for key, entry in mirror.entries.items()}

    async with asyncio.timeout(WITHIN_S):
        while found() != wanted:
            await anext(batches)


async def test_a_mirror_begins_with_what_is_there_and_goes_on(
    client: EtcdClient,  # noqa: F811
    at: str,  # noqa: F811
) -> None:
    await client.put(f"{at}a", "1")
    mirror = Mirror(client, at)
    async with following(mirror) as batches:
        await until(batches, mirror, a="1")
        await client.put(f"{at}b", "2")
        await client.delete(f"{at}a")
        await until(batches, mirror, b="2")


async def test_a_mirror_of_nothing_begins_with_an_empty_batch(
    client: EtcdClient,  # noqa: F811
    at: str,  # noqa: F811
) -> None:
    async with following(Mirror(client, at)) as batches:
        assert (await asyncio.wait_for(anext(batches), WITHIN_S)).events == ()


async def test_what_was_forgotten_meanwhile_is_found_by_comparing(
    client: EtcdClient,  # noqa: F811
    etcd: Etcd,
    at: str,  # noqa: F811
) -> None:
    await client.put(f"{at}a", "1")
    await client.put(f"{at}b", "1")
    mirror = Mirror(client, at)
    async with following(mirror) as batches:
        await until(batches, mirror, a="1", b="1")
        # The watch is cut; before it is taken up, etcd forgets what it would have told.
        watch = client.watch
        client.watch = watch_nothing  # type: ignore[method-assign]
        client._leave(client._endpoints[0])
        async with EtcdClient(client._endpoints) as other:
            await other.delete(f"{at}a")
            await other.put(f"{at}b", "2")
            revision = await other.put(f"{at}c", "3")
            await other.call("kv/compaction", {"revision": revision})
        client.watch = watch  # type: ignore[method-assign]
        batch = await asyncio.wait_for(anext(batches), WITHIN_S)
    assert {event.key[-1]: event.entry is not None for event in batch.events} == {
        "a": False,
        "b": True,
        "c": True,
    }


async def watch_nothing(prefix: str, from_revision: int) -> AsyncGenerator[Batch, None]:
    return
    yield


@pytest.mark.slow
async def test_a_mirror_survives_a_killed_etcd_and_one_that_lost_its_data(tmp_path: Path) -> None:
    reached: list[bool] = []
    with etcd_process(tmp_path) as server:
        async with EtcdClient(EtcdAddress.parse(server.url).endpoints) as client:
            await client.put("/m/a", "1")
            mirror = Mirror(client, "/m/", reached=reached.append)
            async with following(mirror) as batches:
                await until(batches, mirror, a="1")
                server.kill()
                waiting = asyncio.ensure_future(anext(batches))
                while reached[-1]:
                    await asyncio.sleep(0.02)
                server.start()
                await client.put("/m/b", "2")
                await asyncio.wait_for(waiting, WITHIN_S)
                await until(batches, mirror, a="1", b="2")
                assert reached[-1]

                server.kill()
                shutil.rmtree(tmp_path / "data")
                server.start()
                await client.put("/m/c", "3")
                await until(batches, mirror, c="3")
