"""``app.test()``: how people test their handlers."""

from __future__ import annotations

from typing import Any

import pytest

import warren

app = warren.App("amqp://nowhere.invalid", group="billing")
bills: list[Any] = []


@app.handler("orders.*", retries=2, backoff=60.0)
async def handle(message: warren.Message) -> None:
    if message.data["total"] < 0:
        raise warren.Reject("a bill can't be negative")
    if message.data.get("flaky") and message.attempt < 3:
        raise ConnectionError("the bank is closed")
    bills.append(message.data)
    await app.publish({"billed": message.data["id"]}, routing_key="billed")


@app.handler("price")
def price(message: warren.Message) -> dict[str, int]:
    return {"price": 3 * message.data}


@app.handler("billed")
async def billed(message: warren.Message) -> None:
    bills.append(message.data)


@pytest.fixture(autouse=True)
def no_bills() -> None:
    bills.clear()


async def test_handlers_work_on_a_broker_of_their_own() -> None:
    async with app.test() as trial:
        await trial.publish({"id": 1, "total": 5}, queue="orders.eu")
        await trial.settled()
        assert await trial.dead_letters() == []
    assert bills == [{"id": 1, "total": 5}, {"billed": 1}]


async def test_retries_do_not_wait() -> None:
    async with app.test() as trial:
        await trial.publish({"id": 2, "total": 5, "flaky": True}, queue="orders.us")
        await trial.settled()
    assert bills[0]["id"] == 2


@pytest.mark.parametrize("ordered", [True, False])
async def test_a_retry_that_names_its_wait_does_not_wait_either(ordered: bool) -> None:
    other = warren.App(group="other")
    attempts: list[int] = []

    @other.handler("later", ordered=ordered)
    async def handle(message: warren.Message) -> None:
        attempts.append(message.attempt)
        if message.attempt < 3:
            raise warren.Retry(3600)

    async with other.test() as trial:
        await trial.publish(b"x", queue="later")
        await trial.settled(within_s=60)
    assert attempts == [1, 2, 3]


async def test_what_was_given_up_can_be_looked_at() -> None:
    async with app.test() as trial:
        await trial.publish({"id": 3, "total": -1}, queue="orders.eu", type="order")
        await trial.settled()
        [letter] = await trial.dead_letters()
    assert letter.headers["x-warren-error"] == "Reject: a bill can't be negative"
    assert letter.properties.type == "order"


async def test_a_request_gets_its_reply() -> None:
    async with app.test() as trial:
        assert await trial.request(7, queue="price") == {"price": 21}


async def test_a_request_without_a_reply_is_told_with_queue_and_reason() -> None:
    async with app.test() as trial:
        with pytest.raises(AssertionError, match=r"no reply from 'billed': .*returned None"):
            await trial.request(1, queue="billed", within_s=60)
        order = {"id": 3, "total": -1}
        with pytest.raises(AssertionError, match=r"no reply from 'orders.eu': .*was given up"):
            await trial.request(order, queue="orders.eu", within_s=60)


async def test_a_queue_that_no_handler_takes_is_told() -> None:
    async with app.test() as trial:
        with pytest.raises(AssertionError, match=r"no handler takes 'order.eu': .*orders\.\*"):
            await trial.publish(b"x", queue="order.eu")
        await trial.declare("order.eu")
        await trial.publish(b"x", queue="order.eu")


def test_a_trial_without_async_is_told_how() -> None:
    with pytest.raises(warren.ConfigError, match=r"async with app\.test"), app.test():
        pass


async def test_what_is_not_settled_is_told_with_its_queue() -> None:
    other = warren.App(group="other")

    @other.handler("stuck", retries=1, backoff=60.0)
    async def handle(message: warren.Message) -> None:
        raise ValueError

    async with other.test(waits=True) as trial:
        await trial.publish(b"x", queue="stuck")
        with pytest.raises(AssertionError, match=r"\{'stuck': 1\}"):
            await trial.settled(within_s=0.3)


async def test_the_app_is_as_before_afterwards() -> None:
    async with app.test():
        assert "nowhere" not in app.url
    assert app.url == "amqp://nowhere.invalid"
    with pytest.raises(warren.ConfigError, match="not running"):
        await app.publish(b"x", routing_key="q")
