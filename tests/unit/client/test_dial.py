"""Connecting, where no network is needed to see it fail."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

import warren
from tests.support.eventually import eventually
from warren.client.address import parse_urls
from warren.client.dial import Dialer
from warren.errors import HostUnreachable


def test_a_host_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    [address] = parse_urls("amqp://nowhere.example")

    with pytest.raises(HostUnreachable, match=r"host 'nowhere\.example' is not known: Name"):
        Dialer(address).dial()


async def test_a_lookup_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(*_: Any, **__: Any) -> Any:
        release.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr("warren.client.dialing.DIAL_GRACE_S", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(HostUnreachable, match=r"no answer within 0\.05 s"):
        await warren.connect("amqp://slow.example?connection_timeout=50")
    release.set()
    eventually(lambda: not any("slow.example" in each.name for each in threading.enumerate()))
