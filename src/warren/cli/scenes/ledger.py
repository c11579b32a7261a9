"""The accounts: what was published, what became of it, and whether that adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

#: What may become of a message, in the order of the closing table.
FATES = ("consumed", "dead-lettered", "expired", "returned")


@dataclass
class Account:
    """One experiment.

    ``copies`` are what bindings add: a message for three queues is one published and two copies.
    ``expected`` is worked out by the scene, not asked of the broker: each message with the place
    it must arrive at. ``arrived`` is what came out.
    """

    name: str
    published: int = 0
    copies: int = 0
    fates: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(FATES, 0)))
    expected: Counter[Hashable] = field(default_factory=Counter)
    arrived: Counter[Hashable] = field(default_factory=Counter)
    left_over: int = 0
    """Messages still in a queue when the experiment was over."""
    broken: list[str] = field(default_factory=list)
    """Other promises that did not hold, such as order."""

    def sent(self, *arrivals: Hashable) -> None:
        """A message was published that must arrive at each of these places."""
        self.published += 1
        self.copies += len(arrivals) - 1
        self.expected.update(arrivals)

    def came(self, arrival: Hashable, fate: str = "consumed") -> None:
        """A message came out somewhere."""
        self.arrived[arrival] += 1
        self.fates[fate] += 1

    def promise(self, held: bool, what: str) -> bool:
        """Note a promise that did not hold."""
        if not held:
            self.broken.append(what)
        return held

    @property
    def outstanding(self) -> int:
        """How many have not come yet."""
        return self.published + self.copies - self.fates.total()

    @property
    def lost(self) -> int:
        return (self.expected - self.arrived).total()

    @property
    def doubled(self) -> int:
        """Messages that came twice, or where they should not be."""
        return (self.arrived - self.expected).total() + self.left_over

    @property
    def adds_up(self) -> bool:
        return not (self.outstanding or self.lost or self.doubled or self.broken)


@dataclass
class Ledger:
    """All accounts of a run."""

    accounts: list[Account] = field(default_factory=list)

    def open(self, name: str) -> Account:
        self.accounts.append(Account(name))
        return self.accounts[-1]

    def total(self) -> Account:
        """Everything in one account."""
        total = Account("total")
        for account in self.accounts:
            total.published += account.published
            total.copies += account.copies
            total.fates.update(account.fates)
            total.left_over += account.left_over
            total.broken += account.broken
            for place, count in account.expected.items():
                total.expected[account.name, place] += count
            for place, count in account.arrived.items():
                total.arrived[account.name, place] += count
        return total

    @property
    def adds_up(self) -> bool:
        return bool(self.accounts) and all(account.adds_up for account in self.accounts)
