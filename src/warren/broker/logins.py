"""Failed logins make the next ones wait their turn, and all logins are counted."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from warren.clock import Clock

#: A key without another failure for this long starts anew.
FORGET_MS = 60_000
#: Keys of a kind remembered at a time; the one that failed longest ago goes first.
KEYS = 1024
#: Who would have to wait longer is refused without a look at the password.
LONGEST_WAIT_MS = 8_000


@dataclass(frozen=True, slots=True)
class Rule:
    """So many failures cost nothing; after them, one login at a time, ever further apart."""

    free: int
    first_ms: int
    most_ms: int

    def gap_ms(self, failures: int) -> int:
        over = failures - self.free
        return 0 if over < 0 else min(self.most_ms, self.first_ms << min(over, 10))


#: People mistype, and programs are set up wrong.
SAME_USER_SAME_PLACE = Rule(3, 250, 5_000)
#: Somebody tries many users.
SAME_PLACE = Rule(20, 100, 1_000)
#: Somebody tries from many places; slow for them, and still quick for the user.
SAME_USER = Rule(100, 20, 100)


@dataclass(slots=True)
class _Line:
    failures: int = 0
    failed_ms: int = 0
    #: No login before this.
    next_ms: int = 0


class FailedLogins:
    """Lines in which logins wait, by source address and by user, in bounded memory.

    Many connections at once stand in the same line: they can try no more than one could. Programs
    on this machine are never made to wait: behind a proxy they are everybody.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[Rule, dict[bytes, _Line]] = {
            rule: {} for rule in (SAME_USER_SAME_PLACE, SAME_PLACE, SAME_USER)
        }

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def failed(self, host: str, user: str) -> None:
        if is_loopback(host):
            return
        now = self._clock.monotonic_ms()
        for rule, key in self._keys(host, user):
            lines = self._lines[rule]
            line = self._line(rule, key) or _Line()
            line.failures, line.failed_ms = line.failures + 1, now
            line.next_ms = max(line.next_ms, now + rule.gap_ms(line.failures))
            lines.pop(key, None)  # the order of the lines is that of their last failures
            if len(lines) >= KEYS:
                del lines[next(iter(lines))]
            lines[key] = line

    def succeeded(self, host: str, user: str) -> None:
        """Whoever it was knows the password now."""
        for rule, key in self._keys(host, user):
            if rule is SAME_USER_SAME_PLACE:
                self._lines[rule].pop(key, None)

    def wait_ms(self, host: str, user: str) -> int | None:
        """How long this login has to wait, its turn taken; None if it is not let in at all."""
        if is_loopback(host):
            return 0
        now = start = self._clock.monotonic_ms()
        found = []
        for rule, key in self._keys(host, user):
            line = self._line(rule, key)
            if line is not None and (gap := rule.gap_ms(line.failures)):
                start = max(start, line.next_ms)
                found.append((line, gap))
        if start - now > LONGEST_WAIT_MS:
            return None
        for line, gap in found:
            line.next_ms = start + gap
        return start - now

    def _line(self, rule: Rule, key: bytes) -> _Line | None:
        line = self._lines[rule].get(key)
        if line is not None and self._clock.monotonic_ms() - line.failed_ms > FORGET_MS:
            del self._lines[rule][key]
            return None
        return line

    def _keys(self, host: str, user: str) -> tuple[tuple[Rule, bytes], ...]:
        place = _place(host).encode()
        # A name is as long as a stranger likes.
        name = hashlib.blake2b(user.encode("utf-8", "surrogateescape"), digest_size=16).digest()
        return (
            (SAME_USER_SAME_PLACE, name + place),
            (SAME_PLACE, place),
            (SAME_USER, name),
        )


class LoginCounts:
    """How many logins there were, by protocol, and how they ended: as RabbitMQ counts them."""

    def __init__(self) -> None:
        self._succeeded: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def count(self, protocol: str, *, succeeded: bool) -> None:
        (self._succeeded if succeeded else self._failed)[protocol] += 1

    def by_protocol(self) -> dict[str, tuple[int, int]]:
        """Successes and failures of every protocol that has any."""
        protocols = dict.fromkeys((*self._succeeded, *self._failed))
        return {name: (self._succeeded[name], self._failed[name]) for name in protocols}

    def reset(self) -> None:
        self._succeeded.clear()
        self._failed.clear()


def is_loopback(host: str) -> bool:
    """Is it this machine? What has no address (a Unix socket) is."""
    try:
        address = ip_address(host.split("%")[0])
    except ValueError:
        return host == ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _place(host: str) -> str:
    """An address; of IPv6, the network: one peer has more addresses in it than we could count."""
    try:
        address = ip_address(host.split("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.exploded[:19]
    return str(address)
