"""Secrets that Spark would show: refused when a source is made.

Plans, the web page and event logs show a query's options, but for those whose names Spark takes
for secrets. By itself it hides ``url`` and ``password``, and knows nothing of ``uri``. What a
session hides can't be seen from here, so that it is the same for all. A source is made by
``load()``, before there is a plan, unless the user gives a schema; then, and when something is
written, as it begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from warren.client.endpoint import AMQP, HTTP, parse_uri
from warren.errors import ConfigError

#: Options that Spark shows, in lower case, and what they are called where it does not.
_HIDDEN_AS = {"uri": "url", "managementuri": "managementUrl", "host": "url"}
#: Names that Spark hides by itself.
_IS_HIDDEN = re.compile(r"url|secret|password|token|access[.]?key", re.IGNORECASE)
#: A broker's own, for this machine only: no secret.
_KNOWN_TO_ALL = "guest:guest"
_BETWEEN_URIS = re.compile(r"[\s,]+(?=[a-z]+://)")
#: A name, a colon and what is no port, in front of an @: keys may have a slash in them.
_LOGIN = re.compile(r"://[^/@:]*:(?!\d+(?:/|$))[^@]+@")


def uris(text: str) -> list[str]:
    """Several URIs, each of which may name several hosts."""
    return _BETWEEN_URIS.split(text.strip())


def hidden(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options, by the names that Spark hides."""
    given = {name.lower() for name, value in options.items() if value is not None}

    def name_of(name: str) -> str:
        better = _HIDDEN_AS.get(name.lower()) if name.lower().endswith("uri") else None
        return name if better is None or better.lower() in given else better

    return {name_of(name): value for name, value in options.items() if value is not None}


def require_hidden(options: Mapping[str, str], source: str) -> None:
    """Raises ConfigError, without the secret, if one stands where Spark would show it."""
    for name, value in options.items():
        if name.lower() == "ledger":
            require_no_secret(value)
        elif not _IS_HIDDEN.search(name) and _is_secret(name, value):
            better = _HIDDEN_AS.get(name.lower(), "url")
            raise ConfigError(
                name, "has a password in it, and Spark would show it in plans and on its web page; "
                f"call the option '{better}', which Spark hides", source,
            )  # fmt: skip


def require_no_secret(ledger: str) -> None:
    """Raises ConfigError, without the secret: places are shown in plans, logs and errors."""
    if _LOGIN.search(ledger):
        raise ConfigError(
            "ledger", "has a secret in its URI, where plans and logs would show it: give the "
            "driver its credentials by environment variables or files, as for its other users",
        )  # fmt: skip


def _is_secret(name: str, value: str) -> bool:
    if name.lower() in _HIDDEN_AS:
        return any(_has_password(uri) for uri in uris(value))
    return bool(_LOGIN.search(value)) and _has_password(value)


def _has_password(uri: str) -> bool:
    try:
        parse_uri(uri, kind=HTTP if uri.startswith("http") else AMQP)
    except ConfigError:
        # As far as the last @: a slip in the password must not hide that there is one.
        user = uri.rpartition("@")[0].partition("://")
        login = user[2] or user[0]
    else:
        login = urlsplit(uri).netloc.rpartition("@")[0]
    return bool(login.partition(":")[2]) and login != _KNOWN_TO_ALL
