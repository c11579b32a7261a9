"""Scene 4: messages that fail and come back, and (``limits``, ``priorities``) others in a hurry."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from rich.console import Group
from rich.text import Text

from warren.cli.scenes import limits, priorities
from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.link import Delivery, Link
from warren.cli.scenes.stage import Stage, lines, mark

_TRIES = ("payments", "payments.try-2", "payments.try-3")
_PARKED = "payments.parked"
#: How often each payment fails before it succeeds.
_FAILURES = (0, 1, 0, 3, 2, 0, 1, 0)


def play(stage: Stage, url: str, ledger: Ledger) -> None:
    stage.scene(
        4,
        "Second chances and last resorts",
        "Dead-lettering, TTLs and priorities. All of it is done by the queues; the consumer just "
        "says no. Each message carries its story in the x-death header.",
    )
    with Link(url) as link:
        Retrying(stage, link, ledger.open("retry")).play()
    with Link(url) as link:
        limits.play(stage, link, ledger.open("TTL and limits"))
    with Link(url) as link:
        priorities.play(stage, link, ledger.open("priorities"))


@dataclass
class Payment:
    """A message as the picture shows it: what happened to it, and when."""

    failures: int
    sent_at: float = 0.0
    steps: list[str] = field(default_factory=list)


class Retrying:
    """Payments that are rejected come back after a pause, twice; then they are put aside."""

    def __init__(self, stage: Stage, link: Link, account: Account) -> None:
        self._stage, self._link, self._account = stage, link, account
        self._pauses_ms = (60, 120) if stage.fast else (400, 1200)
        self._payments = [Payment(failures) for failures in _FAILURES]
        self._verdict = ""
        self._story: Counter[str] = Counter()

    def play(self) -> None:
        self._declare()
        for queue in (*_TRIES, _PARKED):
            self._link.consume(queue)
        self._link.confirms()
        with self._stage.live(self._draw):
            for number, payment in enumerate(self._payments):
                fate = _PARKED if payment.failures >= len(_TRIES) else "paid"
                self._account.sent((fate, number))
                payment.sent_at = time.monotonic()
                self._link.publish("", _TRIES[0], b"%d" % number)
                self._take_for(0.1)
            self._link.wait_confirmed()
            while self._account.outstanding > 0 and (delivery := self._link.next()) is not None:
                self._take(delivery)
            for queue in (*_TRIES, *self._waiting_rooms, _PARKED):
                self._account.left_over += self._link.delete(queue)
            self._verdict = self._conclude()
        self._stage.say("")
        self._stage.pause(0.5)

    @property
    def _waiting_rooms(self) -> tuple[str, ...]:
        return tuple(f"payments.pause-{number}" for number in (1, 2))

    def _declare(self) -> None:
        """A chain: try, pause, try, longer pause, try, parked."""
        link = self._link
        rooms = (*self._waiting_rooms, _PARKED)
        for queue, room in zip(_TRIES, rooms, strict=True):
            link.queue(queue, x_dead_letter_exchange="", x_dead_letter_routing_key=room)
        for room, pause_ms, queue in zip(
            self._waiting_rooms, self._pauses_ms, _TRIES[1:], strict=True
        ):
            link.queue(
                room,
                x_message_ttl=pause_ms,
                x_dead_letter_exchange="",
                x_dead_letter_routing_key=queue,
            )
        link.queue(_PARKED)

    def _take_for(self, seconds: float) -> None:
        """Work for a while, unless there is a hurry."""
        until = time.monotonic() + (0 if self._stage.fast else seconds)
        while (left_s := until - time.monotonic()) > 0:
            delivery = self._link.next(left_s)
            if delivery is not None:
                self._take(delivery)

    def _take(self, delivery: Delivery) -> None:
        number = int(delivery.body)
        payment = self._payments[number]
        at = f"{(time.monotonic() - payment.sent_at) * 1000:,.0f} ms"
        if delivery.consumer == _PARKED:
            payment.steps.append("[red]▣ parked[/]")
            deaths = delivery.headers["x-death"]
            self._story = Counter(death["reason"] for death in deaths)
            self._link.ack(delivery)
            self._account.came((_PARKED, number), "dead-lettered")
            return
        tries = _TRIES.index(delivery.consumer) + 1
        if tries <= payment.failures:
            payment.steps.append(f"[red]✗[/] [dim]{at}[/]")
            self._link.reject(delivery)
        else:
            payment.steps.append(f"[green]✓[/] {at}")
            self._link.ack(delivery)
            self._account.came(("paid", number))

    def _draw(self) -> Group:
        short, long = self._pauses_ms
        rows: list[str | Text] = [
            "[bold]retry[/]  [dim]payments ─✗▶ "
            f"pause {short} ms ─▶ try 2 ─✗▶ pause {long} ms ─▶ try 3 ─✗▶ parked[/]"
        ]
        for number, payment in enumerate(self._payments, 1):
            row = Text(f"  payment {number}  ")
            for at, step in enumerate(payment.steps):
                row.pad_right(max(0, 14 * at + 13 - row.cell_len))
                row.append_text(Text.from_markup(step))
            rows.append(row)
        return lines(*rows, self._verdict)

    def _conclude(self) -> str:
        account = self._account
        return (
            f"  {mark(account.adds_up)} {account.published} published = "
            f"{account.fates['consumed']} paid + {account.fates['dead-lettered']} parked\n"
            f"  [dim]x-death of the parked one: rejected {self._story['rejected']} times, "
            f"expired {self._story['expired']} times (the pauses)[/]"
        )
