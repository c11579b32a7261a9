"""The demo's accounts notice what is missing and what is too much."""

from __future__ import annotations

import io

import pytest

from warren.cli.scenes import closing
from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.stage import Stage


@pytest.fixture
def account() -> Account:
    """Two messages, the second for two queues; all arrived."""
    account = Account("orders")
    account.sent(("a", 1))
    account.sent(("a", 2), ("b", 2))
    for arrival in (("a", 1), ("a", 2), ("b", 2)):
        account.came(arrival)
    return account


def test_what_arrived_where_it_should_adds_up(account: Account) -> None:
    assert (account.published, account.copies, account.fates["consumed"]) == (2, 1, 3)
    assert account.adds_up


def test_a_missing_message_is_lost(account: Account) -> None:
    account.sent(("a", 3))
    assert (account.lost, account.doubled, account.adds_up) == (1, 0, False)


def test_a_message_that_comes_again_is_doubled(account: Account) -> None:
    account.came(("a", 1))
    assert (account.lost, account.doubled, account.adds_up) == (0, 1, False)


def test_one_lost_and_one_doubled_do_not_cancel_out(account: Account) -> None:
    account.sent(("a", 3))
    account.came(("a", 1))
    assert account.outstanding == 0
    assert (account.lost, account.doubled, account.adds_up) == (1, 1, False)


def test_a_message_left_in_a_queue_is_too_much(account: Account) -> None:
    account.left_over = 1
    assert not account.adds_up


def test_a_broken_promise_does_not_add_up(account: Account) -> None:
    assert account.promise(True, "order was not kept")
    assert account.adds_up
    assert not account.promise(False, "order was not kept")
    assert not account.adds_up


@pytest.mark.parametrize(("again", "verdict"), [(0, "it adds up"), (1, "IT DOES NOT ADD UP")])
def test_the_closing_scene_says_whether_it_adds_up(
    account: Account, again: int, verdict: str
) -> None:
    out = io.StringIO()
    for _ in range(again):
        account.came(("b", 2))

    held = closing.play(Stage.open(plain=True, fast=True, file=out), 1.0, Ledger([account]))

    assert held == (not again)
    assert f"0 lost, {again} doubled: {verdict}" in out.getvalue()
