"""Connect without making the event loop wait."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from warren.amqp.client import ClientSession
from warren.client.address import Address
from warren.client.dial import Dialer
from warren.errors import ConnectError, HostUnreachable

log = logging.getLogger(__name__)

#: How much longer than the address allows we wait: a dialer keeps its own time, but for the
#: lookup of a name.
DIAL_GRACE_S = 2.0

Dialed = tuple[socket.socket, ClientSession, Address]


async def dial_first(addresses: Sequence[Address], properties: Mapping[str, Any]) -> Dialed:
    """Try each address once, in turn, until one answers."""
    errors: list[ConnectError] = []
    for address in addresses:
        try:
            return await _dial_one(address, properties)
        except ConnectError as error:
            errors.append(error)
            log.debug("%s", error)
    # The most telling one: a login that is refused says more than a host that is down.
    telling = [error for error in errors if not isinstance(error, HostUnreachable)]
    if telling or len(errors) == 1:
        raise (telling or errors)[0]
    raise HostUnreachable(
        ", ".join(str(address) for address in addresses),
        "; ".join(dict.fromkeys(str(error.args[1]) for error in errors)),
    )


async def _dial_one(address: Address, properties: Mapping[str, Any]) -> Dialed:
    dialer = Dialer(address, properties)
    future: asyncio.Future[Dialed] = asyncio.get_running_loop().create_future()
    threading.Thread(
        target=_dial_in_thread,
        args=(dialer, address, future),
        name=f"warren dial {address}",
        daemon=True,
    ).start()
    try:
        # Not wait_for: in Python 3.11 it forgets that it was cancelled if the answer comes then,
        # and who tries again for as long as it is not cancelled would do so for ever.
        async with asyncio.timeout(address.connect_timeout_s + DIAL_GRACE_S):
            return await future
    except TimeoutError:
        dialer.abort()
        reason = f"no answer within {address.connect_timeout_s:g} s"
        raise HostUnreachable(str(address), reason) from None
    except asyncio.CancelledError:
        dialer.abort()
        raise


def _dial_in_thread(dialer: Dialer, address: Address, future: asyncio.Future[Dialed]) -> None:
    dialed, failure = None, None
    try:
        dialed = (*dialer.dial(), address)
    except Exception as error:  # noqa: BLE001 - raised where it is awaited
        failure = error
    try:
        future.get_loop().call_soon_threadsafe(_done, future, dialed, failure)
    except RuntimeError:  # the loop is closed
        if dialed is not None:
            dialed[0].close()


def _done(future: asyncio.Future[Dialed], dialed: Dialed | None, error: Exception | None) -> None:
    if future.done():  # nobody waits any more
        if dialed is not None:
            dialed[0].close()
    elif dialed is not None:
        future.set_result(dialed)
    elif error is not None:
        future.set_exception(error)
