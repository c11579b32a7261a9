"""Failed logins make the next ones from the same place wait."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from warren.clock import Clock

#: So many failures cost nothing: people mistype, and programs are set up wrong.
FREE = 3
FIRST_MS = 250
MOST_MS = 5_000
#: A place without another failure for this long starts anew.
FORGET_MS = 60_000
#: Places remembered at a time; the one that failed longest ago goes first.
PLACES = 1024


class FailedLogins:
    """Counts failed logins by source address, in bounded memory.

    Programs on this machine are never made to wait: behind a proxy they are everybody.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._places: dict[str, tuple[int, int]] = {}  # failures, and when the last one was

    def __len__(self) -> int:
        return len(self._places)

    def failed(self, host: str) -> None:
        if is_loopback(host):
            return
        place = _place(host)
        count = self._count(place)
        self._places.pop(place, None)  # the order of the places is that of their last failures
        if len(self._places) >= PLACES:
            del self._places[next(iter(self._places))]
        self._places[place] = (count + 1, self._clock.monotonic_ms())

    def delay_ms(self, host: str) -> int:
        """How long the next login from there has to wait."""
        over = self._count(_place(host)) - FREE
        return 0 if over < 0 else min(MOST_MS, FIRST_MS << min(over, 10))

    def _count(self, place: str) -> int:
        count, at = self._places.get(place, (0, 0))
        if count and self._clock.monotonic_ms() - at > FORGET_MS:
            del self._places[place]
            return 0
        return count


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
