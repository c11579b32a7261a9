"""TLS: the server's certificate, and the names in those of its clients."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warren.broker.users import MECHANISMS, CertificateName
from warren.config import BrokerConfig
from warren.errors import ConfigError
from warren.server.protocol import AmqpProtocol

if TYPE_CHECKING:
    from warren.server.server import Server

log = logging.getLogger(__name__)

#: As long as a client may take for its AMQP handshake.
HANDSHAKE_TIMEOUT_S = 10.0
_VERIFY = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
#: How RabbitMQ writes the parts of a distinguished name; OpenSSL has longer words for them.
_SHORT = {
    "surname": "SN",
    "givenName": "GIVENNAME",
    "initials": "INITIALS",
    "generationQualifier": "GENERATIONQUALIFIER",
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "title": "TITLE",
    "countryName": "C",
    "serialNumber": "SERIALNUMBER",
    "pseudonym": "PSEUDONYM",
    "domainComponent": "DC",
    "emailAddress": "EMAILADDRESS",
    "userId": "UID",
    # It has no words for these.
    "streetAddress": "2.5.4.9",
    "description": "2.5.4.13",
    "businessCategory": "2.5.4.15",
    "postalCode": "2.5.4.17",
    "name": "2.5.4.41",
    "dnQualifier": "2.5.4.46",
    "organizationIdentifier": "2.5.4.97",
}


def server_context(config: BrokerConfig, verify: str = "tls_verify") -> ssl.SSLContext | None:
    """What the broker shows and asks for; None without a certificate.

    ``verify`` names the setting that says what is asked of clients.

    Raises:
        ConfigError: a file is not there, or is not what it should be.
    """
    if not config.tls_certificate:
        for name in ("tls_key", "tls_ca"):
            if getattr(config, name):
                raise ConfigError(name, "is of no use without tls_certificate")
        for name in ("tls_port", "management_tls_port"):
            if getattr(config, name) >= 0:
                raise ConfigError(name, "needs a certificate: set tls_certificate, and tls_key")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_certificate(context, config)
    if config.tls_ca:
        _load_ca(context, config.tls_ca)
    elif getattr(config, verify) != "none":
        raise ConfigError(verify, "clients can't be verified without tls_ca")
    context.verify_mode = _VERIFY[getattr(config, verify)]
    return context


def _load_certificate(context: ssl.SSLContext, config: BrokerConfig) -> None:
    certificate = _file("tls_certificate", config.tls_certificate)
    key = _file("tls_key", config.tls_key) if config.tls_key else None
    try:
        # A key with a password would be asked for on the terminal: a broker has none.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        name = "tls_key" if config.tls_key else "tls_certificate"
        file = config.tls_key or config.tls_certificate
        if "KEY_VALUES_MISMATCH" in str(error):
            problem = f"{file} is not the key of {config.tls_certificate}"
        elif not _has(config.tls_certificate, "CERTIFICATE"):
            name, problem = "tls_certificate", f"{config.tls_certificate} has no PEM certificate"
        elif not _has(file, "PRIVATE KEY"):
            problem = f"{file} has no PEM private key"
        else:
            problem = f"{file} can't be used: {error}"
        raise ConfigError(name, problem) from None


def _load_ca(context: ssl.SSLContext, file: str) -> None:
    try:
        context.load_verify_locations(_file("tls_ca", file))
    except (ssl.SSLError, OSError) as error:
        problem = f"can't be used: {error}" if _has(file, "CERTIFICATE") else "has no certificate"
        raise ConfigError("tls_ca", f"{file} {problem}") from None


def _file(option: str, path: str) -> str:
    try:
        with Path(path).open("rb"):
            return path
    except OSError as error:
        problem = "there is no file" if isinstance(error, FileNotFoundError) else "can't read"
        raise ConfigError(option, f"{problem} {path}") from None


def _has(path: str, what: str) -> bool:
    return f"{what}-----" in Path(path).read_text(errors="replace")


def certificate_name(certificate: dict[str, Any] | None, login_from: str) -> CertificateName | None:
    """Whom a verified certificate names, as RabbitMQ reads it; None without a certificate."""
    if not certificate:
        return None
    subject = certificate.get("subject", ())
    if login_from == "common_name":
        names = [value for rdn in subject for key, value in rdn if key == "commonName"]
        return CertificateName(",".join(names))
    return CertificateName(_distinguished(subject))


def _distinguished(name: Any) -> str:
    """A distinguished name by RFC 4514, the last part first."""
    parts = (
        "+".join(f"{_SHORT.get(key, key)}={_escaped(value)}" for key, value in rdn)
        for rdn in reversed(name)
    )
    return ",".join(parts)


def tls_facts(
    cipher: tuple[str, str, int] | None, certificate: dict[str, Any] | None
) -> dict[str, str]:
    """What the management API tells of a connection's TLS, in Erlang's words."""
    facts = {} if cipher is None else _cipher_facts(cipher[0], cipher[1])
    if certificate:
        facts["peer_cert_subject"] = _distinguished(certificate.get("subject", ()))
        facts["peer_cert_issuer"] = _distinguished(certificate.get("issuer", ()))
        ends = (_moment(certificate[key]) for key in ("notBefore", "notAfter"))
        facts["peer_cert_validity"] = " - ".join(ends)
    return facts


def _cipher_facts(suite: str, version: str) -> dict[str, str]:
    """``ECDHE-RSA-AES128-GCM-SHA256``: key exchange, cipher and hash."""
    words = suite.replace("-", "_").lower().removeprefix("tls_")
    known = re.match("(?:(?:ecdhe|dhe|ecdsa|rsa)_)*", words)
    exchange = known.group() if known is not None else ""
    words = words.removeprefix(exchange)
    name, _, mac = words.rpartition("_")
    name = "chacha20_poly1305" if "poly1305" in words else re.sub(r"^aes(\d)", r"aes_\1", name)
    sealed = name.endswith(("_gcm", "_ccm", "_ccm_8", "_poly1305"))
    return {
        "ssl_protocol": version.lower(),
        "ssl_key_exchange": "any" if version == "TLSv1.3" else exchange.strip("_") or "rsa",
        "ssl_cipher": name,
        "ssl_hash": "aead" if sealed else mac,
    }


def _moment(text: str) -> str:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def _escaped(value: str) -> str:
    """A part of a distinguished name by RFC 4514."""
    octets = value.encode()
    written = []
    for at, octet in enumerate(octets):
        character = chr(octet)
        edge = (character in " #" and at == 0) or (character == " " and at == len(octets) - 1)
        if edge or character in '"+,;<>\\':
            written.append("\\" + character)
        elif octet < 32 or octet >= 126:
            written.append(f"\\{octet:02X}")
        else:
            written.append(character)
    return "".join(written)


class TlsProtocol(AmqpProtocol):
    """A connection over TLS: who comes with a certificate may log in by it."""

    def __init__(self, server: Server, *, verified: bool, login_from: str) -> None:
        super().__init__(server)
        self._verified = verified
        self._login_from = login_from

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if self._verified else None
        self.connection.tls = tls_facts(tls.cipher(), certificate)
        # Offered to who can't use it, too, as RabbitMQ does: the refusal says more than silence.
        self.connection.mechanisms = f"{MECHANISMS} EXTERNAL"
        self.connection.certificate = certificate_name(certificate, self._login_from)
