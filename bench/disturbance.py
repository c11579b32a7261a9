"""How much of the machine somebody else used while a broker was measured.

A busy neighbour slows the two brokers down by different amounts, and so makes a ratio that
means nothing. It can't be seen in the figures themselves.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

TOO_MUCH = 0.10  # of all cores
_TICKS = os.sysconf("SC_CLK_TCK")


class Disturbance:
    """Watches from its making until ``share`` is asked for.

    Without a pid it begins before the broker does: all that the broker used counts as its own.
    """

    def __init__(self, broker_pid: int | None = None) -> None:
        self._wall = time.monotonic()
        self._others = _machine_s() - _own_s()
        self._broker = 0.0 if broker_pid is None else _process_s(broker_pid)

    def share(self, broker_pid: int) -> float:
        """CPU time of others, as a share of all there was."""
        there_was = (time.monotonic() - self._wall) * (os.cpu_count() or 1)
        others = _machine_s() - _own_s() - self._others
        return max(0.0, (others - _process_s(broker_pid) + self._broker) / there_was)


def settle(broker_pid: int) -> None:
    """Wait, five seconds at most, until a broker that just started has become idle.

    RabbitMQ works on for a second after it listens, at the expense of whoever is measured.
    """
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        before = _process_s(broker_pid)
        time.sleep(0.5)
        if _process_s(broker_pid) - before <= 0.02:
            return


def _machine_s() -> float:
    """user nice system idle iowait irq softirq steal: all but the idle ones."""
    first, _, _ = Path("/proc/stat").read_text().partition("\n")
    ticks = [int(value) for value in first.split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / _TICKS


def _process_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _own_s() -> float:
    """This process and the load processes that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
