"""``warren.standby``: what people get wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

import warren


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"retry": 3}, r"no such option of standby; did you mean retry_s\?"),
        ({"heartbeats_s": 3}, r"did you mean heartbeat_s\?"),
        ({"zzz": 3}, "there are url, mode, prefetch, retry_s, name, "),
    ],
)
def test_a_misspelt_option_is_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(warren.ConfigError, match=told):
        warren.standby("orders", **options)


def test_a_standby_without_async_is_told_how() -> None:
    with pytest.raises(warren.ConfigError, match="async with"), warren.standby("orders"):
        pass


async def test_what_nobody_expected_is_raised_and_does_not_end_the_loop_in_silence() -> None:
    async with warren.Broker(port=0) as broker, warren.connect(broker.url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("orders")

        async def work() -> None:
            many: Any = "many"
            async with warren.standby("orders", url=broker.url, prefetch=many) as worker:
                async for _ in worker:
                    pass

        with pytest.raises(Exception, match=r".") as raised:
            await work()
        assert not isinstance(raised.value, TimeoutError)
