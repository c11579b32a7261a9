"""The server's side of a connection's beginning: protocol header, login, tuning, opening.

What the client may ask for is RabbitMQ's, and so is what it is told, or not told: a peer that has
not logged in gets no words, only the end of its connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warren.amqp import methods as m
from warren.amqp.frames import FRAME_MIN_SIZE, PROTOCOL_HEADER
from warren.errors import AccessRefused, CommandInvalid, NotAllowed

if TYPE_CHECKING:
    from warren.amqp.session import ServerSession

#: AMQP 0-9-1, and how some clients of 0-9 write it.
_HEADERS = (PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09")


def greet(session: ServerSession, header: bytes) -> bool:
    """Answer a protocol header: with connection.start, or with ours and the end."""
    if header not in _HEADERS:
        session.out.append(PROTOCOL_HEADER)
        session.state = "closed"
        return False
    session.state = "starting"
    handler = session.handler
    session.send(
        0,
        m.ConnectionStart(0, 9, handler.server_properties, handler.mechanisms.encode(), b"en_US"),
    )
    return True


def advance(session: ServerSession, method: m.Method) -> bool:
    """Take the method that the handshake waits for; False if this is another."""
    state = session.state
    if isinstance(method, m.ConnectionStartOk) and state == "starting":
        _start(session, method)
    elif isinstance(method, m.ConnectionSecureOk) and state == "securing":
        session.authenticate(method.response)
    elif isinstance(method, m.ConnectionTuneOk) and state == "tuning":
        _tune(session, method)
    elif isinstance(method, m.ConnectionOpen) and state == "opening":
        session.handler.open(method.virtual_host)
        session.state = "running"
        session.send(0, m.ConnectionOpenOk())
        session.handler.opened()
    else:
        return False
    return True


def _start(session: ServerSession, method: m.ConnectionStartOk) -> None:
    session.client_properties = method.client_properties
    session.mechanism = method.mechanism
    if method.mechanism not in session.handler.mechanisms.split():
        raise CommandInvalid(f"unknown authentication mechanism '{method.mechanism}'")
    session.state = "securing"
    session.authenticate(method.response)


def authenticate(session: ServerSession, response: bytes) -> None:
    """Log in: go on to tuning, ask back, or end the connection."""
    try:
        challenge = session.handler.authenticate(session.mechanism, response)
    except AccessRefused:
        if session.announced("authentication_failure_close"):
            text = (
                "ACCESS_REFUSED - Login was refused using authentication mechanism "
                f"{session.mechanism}. For details see the broker logfile."
            )
            session.send(0, m.ConnectionClose(403, text))
        session.say_nothing()
        return
    if challenge is not None:
        session.send(0, m.ConnectionSecure(challenge))
        return
    session.state = "tuning"
    tune = m.ConnectionTune(session.channel_max, session.frame_max, session.heartbeat_s)
    session.send(0, tune)


def _tune(session: ServerSession, method: m.ConnectionTuneOk) -> None:
    _negotiate("frame_max", method.frame_max, FRAME_MIN_SIZE, session.frame_max)
    _negotiate("channel_max", method.channel_max, 1, session.channel_max)
    session.frame_max = method.frame_max
    session.channel_max = method.channel_max
    session.heartbeat_s = method.heartbeat
    # RabbitMQ lets a payload be as large as the whole frame may be.
    session.frame_limit = method.frame_max or 0xFFFFFFFF
    session.state = "opening"


def _negotiate(field: str, value: int, least: int, most: int) -> None:
    detail = " (no limit)" if value == 0 else ""
    if value and value < least:
        raise NotAllowed(
            f"negotiated {field} = {value}{detail} is lower than the minimum allowed value "
            f"({least})"
        )
    if most and (value == 0 or value > most):
        raise NotAllowed(
            f"negotiated {field} = {value}{detail} is higher than the maximum allowed value "
            f"({most})"
        )
