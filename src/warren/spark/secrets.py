"""Secrets that Spark would show: refused when a source is made, before there is a plan.

Plans, the web page and event logs show a query's options, but for those whose names Spark takes
for secrets. By itself it hides ``url`` and ``password``, and knows nothing of ``uri``. What a
session hides can't be seen from here, so that it is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from warren.errors import ConfigError

#: Options that Spark shows, in lower case, and what they are called where it does not.
_HIDDEN_AS = {"uri": "url", "managementuri": "managementUrl"}
#: A broker's own, for this machine only: no secret.
_KNOWN_TO_ALL = "guest:guest"
_BETWEEN_URIS = re.compile(r"[\s,]+(?=[a-z]+://)")


def uris(text: str) -> list[str]:
    """Several URIs, each of which may name several hosts."""
    return _BETWEEN_URIS.split(text.strip())


def hidden(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options, by the names that Spark hides."""
    return {_HIDDEN_AS.get(name.lower(), name): value for name, value in options.items()}


def require_hidden(options: Mapping[str, str], source: str) -> None:
    """Raises ConfigError, without the secret, if one stands where Spark would show it."""
    for name, value in options.items():
        better = _HIDDEN_AS.get(name.lower())
        if better is not None and any(_has_password(uri) for uri in uris(value)):
            raise ConfigError(
                name, "has a password in it, and Spark would show it in plans and on its web page; "
                f"call the option '{better}', which Spark hides", source,
            )  # fmt: skip
        if name.lower() == "ledger":
            require_no_secret(value)


def require_no_secret(ledger: str) -> None:
    """Raises ConfigError, without the secret: places are shown in plans, logs and errors."""
    try:
        password = urlsplit(ledger).password
    except ValueError:  # no URI: it is told where it is opened
        return
    if password is not None:
        raise ConfigError(
            "ledger", "has a secret in its URI, where plans and logs would show it: give the "
            "driver its credentials by environment variables or files, as for its other users",
        )  # fmt: skip


def _has_password(uri: str) -> bool:
    # As far as the last @: a slip in the password must not hide that there is one.
    before, _, _ = uri.rpartition("@")
    user = before.partition("://")[2] or before
    return ":" in user and user != _KNOWN_TO_ALL
