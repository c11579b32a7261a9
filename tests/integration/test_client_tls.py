"""The client over TLS: trusted and not, with a certificate of its own, and after a cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import warren
from tests.contract.client.conftest import FAST, until
from tests.contract.client.test_heartbeats import beat_while_busy
from tests.support.certificates import Authority, Certificate
from tests.support.proxy import Proxy
from warren import Broker
from warren.errors import LoginRefused, MechanismRefused, NotAmqp, TlsFailed


@pytest.fixture
def broker(shown: Certificate, ours: Authority) -> Iterator[Broker]:
    settings: dict[str, Any] = {
        "tls_port": 0,
        "tls_certificate": shown.certificate,
        "tls_key": shown.key,
        "tls_ca": ours.ca,
        "tls_verify": "optional",
        "tls_login_from": "common_name",
    }
    with Broker.in_thread(**settings) as broker:
        yield broker


async def test_messages_of_any_size_come_and_go(broker: Broker, ours: Authority) -> None:
    bodies = [b"", b"small", b"l" * 1_000_000, *(b"%d" % n for n in range(2000))]
    async with warren.connect(f"{broker.tls_url}?cacertfile={ours.ca}") as connection:
        channel = await connection.channel(prefetch=0)
        queue = (await channel.declare_queue(exclusive=True)).name
        for body in bodies:
            channel.publish(body, routing_key=queue)
        await channel.confirmed()
        got = []
        async with channel.deliveries(queue) as deliveries:
            async for delivery in deliveries:
                got.append(delivery.body)
                delivery.ack()
                if len(got) == len(bodies):
                    break
        assert got == bodies


async def test_a_context_can_be_given(broker: Broker, ours: Authority) -> None:
    async with warren.connect(broker.tls_url, tls=ours.client()) as connection:
        assert (await connection.channel()).is_open


async def test_it_comes_back_over_tls(broker: Broker, ours: Authority) -> None:
    with Proxy("127.0.0.1", broker.tls_port) as proxy:
        url = f"amqps://127.0.0.1:{proxy.port}"
        async with warren.connect(url, tls=ours.client(), backoff=FAST) as connection:
            channel = await connection.channel()
            proxy.cut()
            await until(lambda: connection.generation == 2)
            queue = await asyncio.wait_for(channel.declare_queue(exclusive=True), 20)
            await channel.publish(b"x", routing_key=queue.name)


async def test_a_heartbeat_never_lands_inside_another_record(
    broker: Broker, ours: Authority
) -> None:
    async with warren.connect(broker.tls_url, tls=ours.client()) as connection:
        channel = await connection.channel()
        await beat_while_busy(channel, (await channel.declare_queue(exclusive=True)).name)
        assert connection.generation == 1


async def test_a_certificate_instead_of_a_password(broker: Broker, ours: Authority) -> None:
    ann = ours.issue("ann", "/CN=ann")
    broker.add_user("ann", "unused")
    broker.set_permissions("ann")
    url = (
        f"amqps://127.0.0.1:{broker.tls_port}?cacertfile={ours.ca}&certfile={ann.certificate}"
        f"&keyfile={ann.key}&auth_mechanism=external"
    )

    async with warren.connect(url) as connection:
        assert (await connection.channel()).is_open

    broker.delete_user("ann")
    with pytest.raises(LoginRefused, match="the client certificate"):
        await warren.connect(url)


async def test_a_broker_that_asks_for_no_certificates_knows_none(
    shown: Certificate, ours: Authority
) -> None:
    with Broker.in_thread(
        tls_port=0, tls_certificate=shown.certificate, tls_key=shown.key
    ) as broker:
        url = f"{broker.tls_url}?auth_mechanism=external"
        with pytest.raises(LoginRefused, match="the client certificate"):
            await warren.connect(url, tls=ours.client())


async def test_a_mechanism_that_the_broker_does_not_offer_is_named(broker: Broker) -> None:
    with pytest.raises(MechanismRefused, match=r"nobody log in by EXTERNAL, only by PLAIN"):
        await warren.connect(f"{broker.url}?auth_mechanism=external")


async def test_a_certificate_that_nobody_knows_is_not_trusted(broker: Broker) -> None:
    with pytest.raises(TlsFailed, match=r"certificate is not trusted.*cacertfile"):
        await warren.connect(broker.tls_url)


async def test_it_can_be_trusted_blindly(broker: Broker) -> None:
    async with warren.connect(f"{broker.tls_url}?verify=verify_none") as connection:
        assert (await connection.channel()).is_open


async def test_no_tls_where_there_must_be(broker: Broker) -> None:
    with pytest.raises(NotAmqp, match="amqps://"):
        await warren.connect(f"amqp://127.0.0.1:{broker.tls_port}", connect_timeout_s=5)
