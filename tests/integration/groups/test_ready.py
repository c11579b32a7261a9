"""When an app whose group meets in etcd is ready."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import warren
from tests.contract.groups.steps import eventually
from tests.support.etcd_process import EtcdProcess
from tests.support.servers import free_ports


@pytest.mark.slow
async def test_an_app_is_ready_once_etcd_answers_and_stays_so_without_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    etcd, (port,) = EtcdProcess(tmp_path), free_ports(1)
    async with warren.Broker(port=0) as broker:
        app = warren.App(broker.url, group="g", coordinator=f"{etcd.url}?ttl_s=2&timeout_s=1")
        app.handler("orders")(_nothing)
        app.health(port)
        try:
            async with app:
                assert app.member.snapshot().connected
                assert await _ready(port) == (503, False)

                await asyncio.to_thread(etcd.start)
                await eventually(lambda: app.member.snapshot().joined)
                assert await _ready(port) == (200, True)

                caplog.clear()
                etcd.kill()
                await eventually(lambda: "nothing moves" in caplog.text)
                assert await _ready(port) == (200, True)
        finally:
            etcd.kill()


async def _nothing(message: warren.Message) -> None:
    pass


async def _ready(port: int) -> tuple[int, bool]:
    """The status of the answer, and what it says."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    said: dict[str, Any] = json.loads(body)
    return int(head.split()[1]), said["ready"]
