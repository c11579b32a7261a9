"""Certificates for tests, made with the openssl command by a CA of the test run's own."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers import missing


@dataclass(frozen=True)
class Certificate:
    certificate: str
    key: str


class Authority:
    """A CA in a folder."""

    def __init__(self, folder: Path, name: str = "test CA") -> None:
        if shutil.which("openssl") is None:
            missing("openssl", "apt-get install openssl")
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        made = self._new("ca", "-x509", "-subj", f"/CN={name}", "-out", str(folder / "ca.pem"))
        self.ca, self._key = str(folder / "ca.pem"), made

    def issue(self, name: str, subject: str) -> Certificate:
        """A certificate for ``subject``, such as ``/O=Shop/CN=ann``; valid for 127.0.0.1."""
        request, certificate = (str(self._folder / f"{name}.{end}") for end in ("csr", "pem"))
        extensions = self._folder / "extensions"
        extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        key = self._new(name, "-subj", subject, "-utf8", "-multivalue-rdn", "-out", request)
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key,
            "-CAcreateserial", "-days", "2", "-extfile", str(extensions), "-out", certificate,
        )  # fmt: skip
        return Certificate(certificate, key)

    def client(self, certificate: Certificate | None = None) -> ssl.SSLContext:
        """A client's context that trusts this CA, and shows a certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        if certificate is not None:
            context.load_cert_chain(certificate.certificate, certificate.key)
        return context

    def _new(self, name: str, *arguments: str) -> str:
        key = str(self._folder / f"{name}.key")
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        _openssl("req", "-new", *curve, "-days", "2", "-keyout", key, *arguments)
        return key


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {arguments}: {done.stderr}"
