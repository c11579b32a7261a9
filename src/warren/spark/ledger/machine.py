"""Where a ledger is looked for: by the driver on its machine, by a task maybe on another."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from warren.errors import LedgerGone, LedgerNotSeen
from warren.spark.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Machine:
    """Processes for which it is the same see the same folders."""

    name: str
    #: Two containers may share a name.
    mounts: str

    @classmethod
    def here(cls) -> Machine:
        try:
            mounts = os.readlink("/proc/self/ns/mnt")
        except OSError:  # not a Linux
            mounts = ""
        return cls(socket.gethostname(), mounts)


def require_seen(ledger: Ledger, identity: str, driver: Machine) -> None:
    """In a task: raise LedgerGone unless this is the ledger that the driver has just seen.

    LedgerNotSeen on another machine than the driver's: that it does not see it is likelier there.
    """
    try:
        ledger.require(identity)
    except LedgerGone as gone:
        here = Machine.here()
        if here == driver:
            raise
        reason = gone.reason if ledger.identity() is not None else "there is none"
        raise LedgerNotSeen(ledger.place, reason, here.name, driver.name) from None
