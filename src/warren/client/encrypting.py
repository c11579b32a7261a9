"""From a plain connection to an encrypted one, and what to do where that fails."""

from __future__ import annotations

import socket
import ssl

from warren.errors import TlsFailed


def encrypt(
    sock: socket.socket,
    context: ssl.SSLContext,
    *,
    host: str,
    shown: str,
    authority: str,
    certificate: str,
) -> ssl.SSLSocket:
    """Speak TLS from now on; ``authority`` and ``certificate`` tell how one names those files.

    Raises:
        TlsFailed: and the socket is closed.
    """
    try:
        return context.wrap_socket(sock, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        reason = f"the broker's certificate is not trusted: {error.verify_message}"
        remedy = f"name the CA that signed it ({authority}), and the host as the certificate does"
    except TimeoutError:
        reason, remedy = "no answer in time", "is it the broker's TLS port?"
    except OSError as error:
        reason = str(getattr(error, "reason", None) or error.strerror or error)
        remedy = (
            "use amqp:// if the port has no TLS (5671 usually has, 5672 has not), and show a "
            f"client certificate ({certificate}) if the broker wants one"
        )
    sock.close()
    raise TlsFailed(shown, reason, remedy)
