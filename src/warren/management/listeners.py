"""What the broker listens on, and until when the certificates it shows are good."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_EXPLICIT, _UTC_TIME = 0xA0, 0x17


@dataclass(frozen=True, slots=True)
class Listener:
    """One port."""

    protocol: str
    host: str
    port: int
    #: PEM files, and what is asked of clients; empty without TLS.
    certificate: str = ""
    key: str = ""
    ca: str = ""
    verify: str = ""

    @property
    def tls_options(self) -> dict[str, Any]:
        """In Erlang's words, as RabbitMQ shows them."""
        if not self.certificate:
            return {}
        return {
            "certfile": self.certificate,
            "keyfile": self.key or self.certificate,
            "cacertfile": self.ca,
            "verify": "verify_none" if self.verify == "none" else "verify_peer",
            "fail_if_no_peer_cert": self.verify == "required",
        }


def expire_before(file: str, moment: datetime) -> list[str]:
    """When those certificates of a PEM file end that end before a moment."""
    ends = sorted(end for end in _ends_of(file) if end < moment)
    return [f"{end:%Y-%m-%d} {end.hour}:{end:%M:%S}" for end in ends]


def _ends_of(file: str) -> Iterator[datetime]:
    if not file:
        return
    for part in Path(file).read_text(errors="replace").split(_BEGIN)[1:]:
        pem = _BEGIN + part.partition(_END)[0] + _END
        yield _end_of(ssl.PEM_cert_to_DER_cert(pem))


def _end_of(der: bytes) -> datetime:
    """The notAfter of an X.509 certificate (RFC 5280, 4.1), which Python's ssl keeps to itself."""
    tbs = _content(_content(der))
    fields = list(_items(tbs))
    # serialNumber, signature, issuer, validity; before them the version, if it is told.
    validity = fields[4 if fields[0][0] == _EXPLICIT else 3][1]
    kind, end = list(_items(validity))[1]
    text = end.decode("ascii")
    if kind == _UTC_TIME:  # two digits of the year, 50 to 99 are 1950 to 1999
        text = ("19" if text[0] >= "5" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _content(der: bytes) -> bytes:
    return next(_items(der))[1]


def _items(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of the DER values in a row."""
    at = 0
    while at + 2 <= len(der):
        tag, length, start = der[at], der[at + 1], at + 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(der[start : start + octets], "big")
            start += octets
        yield tag, der[start : start + length]
        at = start + length
