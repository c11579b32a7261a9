"""Values that belong to the broker as a whole, by name: RabbitMQ's global parameters."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warren.broker.core import BrokerCore

_CLUSTER_NAME = "cluster_name"
_CLUSTER_ID = "internal_cluster_id"


class GlobalParameters:
    """The broker's name and identity, and whatever else somebody wants kept."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._default_name = ""
        self._values: dict[str, Any] = {
            _CLUSTER_ID: f"rabbitmq-cluster-id-{secrets.token_urlsafe(16)}"
        }

    def all(self) -> dict[str, Any]:
        return dict(self._values)

    def put(self, name: str, value: Any) -> bool:
        """True if there was none of that name."""
        new = name not in self._values
        self._values[name] = value
        self._write_down(name)
        self._rename(name)
        return new

    def delete(self, name: str) -> bool:
        if name not in self._values:
            return False
        del self._values[name]
        self._write_down(name)
        self._rename(name)
        return True

    @property
    def cluster_id(self) -> str:
        return str(self._values.get(_CLUSTER_ID, ""))

    def _rename(self, name: str) -> None:
        """Clients are told the cluster's name when they connect."""
        if name == _CLUSTER_NAME:
            properties = self._core.server_properties
            self._default_name = self._default_name or str(properties[name])
            properties[name] = str(self._values.get(name, self._default_name))

    # -- what survives ---------------------------------------------------------------------------
    def restore(self, definitions: list[tuple[str, list[Any], dict[str, Any]]]) -> None:
        """Take up what the store has."""
        for kind, key, value in definitions:
            if kind == "global_parameter":
                self._values[key[0]] = value["value"]
                self._rename(key[0])

    def write_down(self) -> None:
        for name in self._values:
            self._write_down(name)

    def _write_down(self, name: str) -> None:
        if self._core.journal is not None:
            value = {"value": self._values[name]} if name in self._values else None
            self._core.journal.define("global_parameter", [name], value)
