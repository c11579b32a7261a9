"""Scene 2: every exchange type routes, and what arrives is compared with what should."""

from __future__ import annotations

from collections import defaultdict

from rich.console import Group
from rich.text import Text

from warren.amqp import methods
from warren.amqp.properties import Properties
from warren.cli.scenes.acts import ACTS, ANY, RETURNED, Act, Letter
from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.link import TIMEOUT_S, Delivery, Link
from warren.cli.scenes.stage import Stage, bar, lines, mark

_ACT_S = 1.1
_STEPS = 20
#: Widths that all acts share, so that their arrows end under each other.
_HEAD = 13 + max(len(act.exchange) for act in ACTS)
_LABEL = max(len(route.label) for act in ACTS for route in act.routes)
_COLOURS = ("cyan", "magenta", "yellow")


def play(stage: Stage, url: str, ledger: Ledger) -> None:
    stage.scene(
        2,
        "Seven ways to route",
        "Exchanges of every type. Left of the arrows what is published, right of them what "
        "consumers received. The tick compares it, message by message, with what had to arrive.",
    )
    for act in ACTS:
        with Link(url) as link:
            Routing(stage, link, act, ledger.open(act.name)).play()
        stage.say("")
        stage.pause(0.35)


class Routing:
    """One act: publishes its letters step by step and draws where they went."""

    def __init__(self, stage: Stage, link: Link, act: Act, account: Account) -> None:
        self._stage, self._link, self._act, self._account = stage, link, act, account
        self._arrived = {route.queue: 0 for route in act.routes}
        self._homes: defaultdict[str, set[str]] = defaultdict(set)
        self._patience_s = TIMEOUT_S
        self._below = ""

    def play(self) -> None:
        letters = self._act.letters * (2 if self._stage.fast else self._act.rounds)
        step = max(1, len(letters) // _STEPS)
        self._set_up()
        with self._stage.live(self._draw):
            for at in range(0, len(letters), step):
                self._send(letters[at : at + step], at)
                self._stage.pause(_ACT_S * step / len(letters))
            self._tidy_up()
            self._below = self._verdict()

    def _set_up(self) -> None:
        for route in self._act.routes:
            if route.queue != RETURNED:
                self._link.queue(route.queue)
        for method in self._act.set_up:
            self._link.call(method, _ANSWERS[type(method)])
        for route in self._act.routes:
            if route.queue != RETURNED:
                self._link.consume(route.queue, no_ack=True)
        self._link.confirms()

    def _send(self, letters: tuple[Letter, ...], first: int) -> None:
        for number, letter in enumerate(letters, first):
            body = f"{number} {letter.key}".encode()
            self._account.sent(*((place, body) for place in letter.to))
            properties = Properties(headers=letter.headers)
            self._link.publish(
                self._act.exchange, letter.key, body, properties, mandatory=letter.mandatory
            )
            self._below = f"[dim]{letter.shown}[/]"
        self._link.wait_confirmed()
        self._receive()

    def _receive(self) -> None:
        """Take in deliveries until all that was sent so far is here."""
        while self._account.outstanding > 0:
            delivery = self._link.next(self._patience_s)
            if delivery is None:
                self._patience_s = 0.0  # something is lost: don't wait for it at every step
                return
            self._came(delivery)

    def _came(self, delivery: Delivery) -> None:
        queue = delivery.consumer or RETURNED
        self._arrived[queue] += 1
        self._homes[delivery.body.split()[-1].decode()].add(queue)
        fate = "returned" if queue == RETURNED else "consumed"
        self._account.came((ANY if self._hashed else queue, delivery.body), fate)

    def _tidy_up(self) -> None:
        """Delete the queues; what is still in them, or still comes, is too much."""
        for route in self._act.routes:
            if route.queue != RETURNED:
                self._account.left_over += self._link.delete(route.queue)
        while self._link.inbox:
            self._came(self._link.inbox.popleft())
        if self._hashed:
            self._account.promise(self._moved == 0, "a key changed its queue")

    @property
    def _hashed(self) -> bool:
        """True if the broker chooses among the queues, by key."""
        return self._act.letters[0].to == (ANY,)

    @property
    def _moved(self) -> int:
        """Keys that were seen in more than one queue."""
        return sum(len(queues) > 1 for queues in self._homes.values())

    # -- the picture -----------------------------------------------------------------------------
    def _draw(self) -> Group:
        act, account = self._act, self._account
        head = f"  {account.published:>4} ─▶ ({act.exchange}) ".ljust(_HEAD, "─")
        most = max(1, account.published)
        rows = []
        for place, route in enumerate(act.routes):
            fork = "┬" if place == 0 else "└" if route is act.routes[-1] else "├"
            count = self._arrived[route.queue]
            colour = "red" if route.queue == RETURNED else _COLOURS[place % len(_COLOURS)]
            row = Text(head if place == 0 else " " * len(head))
            row.append(f"{fork}─")
            row.append((f" {route.label} " if route.label else "").ljust(_LABEL + 3, "─"))
            row.append("▶ ")
            row.append(route.queue.ljust(15), style=f"bold {colour}")
            row.append(
                bar(count, most, min(24, self._stage.width - _HEAD - _LABEL - 29)), style=colour
            )
            row.append(f"{count:>6}")
            rows.append(row)
        return lines(f"[bold]{act.name}[/]  [dim]{act.rule}[/]", *rows, f"        {self._below}")

    def _verdict(self) -> str:
        account = self._account
        arrived = account.arrived.total()
        text = f"{mark(account.adds_up)} {account.published} published"
        if account.copies:
            text += f" + {account.copies} copies = {arrived} arrived"
        elif back := account.fates["returned"]:
            text += f" = {account.fates['consumed']} arrived + {back} returned"
        else:
            text += f" = {arrived} arrived"
        if self._hashed:
            text += f"; {len(self._homes)} keys, {self._moved} of them ever changed queue"
        return text


_ANSWERS: dict[type[methods.Method], type[methods.Method]] = {
    methods.ExchangeDeclare: methods.ExchangeDeclareOk,
    methods.ExchangeBind: methods.ExchangeBindOk,
    methods.QueueBind: methods.QueueBindOk,
}
