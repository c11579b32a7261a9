"""Settings: frozen dataclasses, filled by defaults < file < environment < arguments.

Every field says in its metadata what it is for; the command line's help and the reference page
are made from it.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warren.errors import ConfigError


def _setting(
    default: Any,
    text: str,
    *,
    least: int | None = None,
    most: int | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    limits = {"least": least, "most": most, "choices": choices}
    return field(default=default, metadata={"help": text, **limits})


CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def machine_bytes(limit: Path = CGROUP_LIMIT) -> int:
    """The memory of this machine, or of the container that it is; 0 if nobody tells."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not a Unix
        return 0
    try:
        return min(total, int(limit.read_text()))
    except (OSError, ValueError):  # there is none, or it is "max"
        return total


CGROUPS = Path("/sys/fs/cgroup")


def machine_cores(cgroups: Path = CGROUPS) -> int:
    """The cores that this process may keep busy: of the machine, or of the container that it is."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not a Linux
        cores = os.cpu_count() or 2
    return max(1, min([cores, *_cores_granted(cgroups)]))


def _cores_granted(cgroups: Path) -> Iterator[int]:
    """What a container has a share of the time for, as either version of cgroups says it."""
    for names in (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]):
        try:
            words = " ".join((cgroups / name).read_text() for name in names).split()
            quota, period = int(words[0]), int(words[1])
        except (OSError, ValueError, IndexError):  # there is none, or it is "max"
            continue
        if quota > 0 and period > 0:
            yield -(-quota // period)


def _default_memory_limit() -> int:
    """Two fifths of the machine's memory, as RabbitMQ's watermark."""
    return (machine_bytes() or 5 << 30) * 2 // 5


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Settings of the embedded broker."""

    host: str = _setting("127.0.0.1", "address to listen on")
    port: int = _setting(5672, "port to listen on; 0 takes any free one", least=0, most=65535)
    heartbeat_s: int = _setting(
        60, "heartbeat offered to clients, in seconds; 0 for none", least=0, most=65535
    )
    channel_max: int = _setting(2047, "channels a connection may open", least=1, most=65535)
    max_message_bytes: int = _setting(
        134_217_728, "largest message taken, in octets", least=1, most=536_870_912
    )
    memory_limit_bytes: int = _setting(
        _default_memory_limit(),
        "octets of messages held, above which publishers are blocked; 0 for no limit",
        least=0,
    )

    disk_free_limit_bytes: int = _setting(
        50_000_000,
        "octets that must stay free where the data folder lies; below, publishers are blocked",
        least=0,
    )

    data_dir: str = _setting(
        "", "folder for what must survive a restart; without one, everything is kept in memory"
    )

    loopback_users: str = _setting(
        "guest", "users who may connect from this machine only, by commas; none for nobody"
    )
    tls_port: int = _setting(
        -1,
        "port to listen on for TLS, usually 5671; 0 takes any free one, -1 none",
        least=-1,
        most=65535,
    )
    tls_certificate: str = _setting("", "PEM file with the certificate to show, and its chain")
    tls_key: str = _setting("", "PEM file with the certificate's key, unless it has it itself")
    tls_ca: str = _setting("", "PEM file with the authorities that client certificates come from")
    tls_verify: str = _setting(
        "none",
        "client certificates: none are asked for, optional, or required",
        choices=("none", "optional", "required"),
    )
    tls_login_from: str = _setting(
        "distinguished_name",
        "what of a client certificate is the user's name: distinguished_name or common_name",
        choices=("distinguished_name", "common_name"),
    )

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            _check(item, getattr(self, item.name), "argument")

    management_port: int = _setting(
        -1,
        "port for the management HTTP API and /metrics; 0 takes any free one, -1 none "
        "(the default in a program; that of warren broker is 10000 above its port)",
        least=-1,
        most=65535,
    )
    management_host: str = _setting("", "address for the management HTTP API; as host if not given")
    management_tls_port: int = _setting(
        -1,
        "port for the management HTTP API over TLS, usually 15671; 0 takes any free one, -1 none",
        least=-1,
        most=65535,
    )
    management_tls_verify: str = _setting(
        "none",
        "client certificates of the HTTP API: none are asked for, optional, or required",
        choices=("none", "optional", "required"),
    )

    @property
    def loopback_user_names(self) -> frozenset[str]:
        names = (name.strip() for name in self.loopback_users.split(","))
        return frozenset(name for name in names if name not in ("", "none"))

    def replace(self, **changes: Any) -> BrokerConfig:
        """A copy with other values; unknown names are an error that tells the nearest."""
        known = {item.name for item in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise ConfigError(name, _unknown(name, known))
        return dataclasses.replace(self, **changes)

    @classmethod
    def load(
        cls,
        *,
        file: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] | None = None,
        defaults: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda given: {},
    ) -> BrokerConfig:
        """Defaults, then the ``[broker]`` table of a TOML file, ``WARREN_…``, arguments.

        ``defaults`` gives others than the class has, from what was given.
        """
        values: dict[str, Any] = {}
        items = {item.name: item for item in dataclasses.fields(cls)}
        if file is not None:
            for name, value in _read_file(file).items():
                if name not in items:
                    raise ConfigError(name, _unknown(name, set(items)), str(file))
                values[name] = _check(items[name], value, str(file))
        for name, item in items.items():
            variable = f"WARREN_{name.upper()}"
            if environment and variable in environment:
                values[name] = _check(item, _parse(item, environment[variable], variable), variable)
        values.update({k: v for k, v in (arguments or {}).items() if v is not None})
        return cls(**{**defaults(values), **values})


def _read_file(file: str | Path) -> dict[str, Any]:
    import tomllib

    try:
        table = tomllib.loads(Path(file).read_text())
    except FileNotFoundError:
        raise ConfigError("--config", f"there is no file {file}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError("--config", f"{file} can't be read as TOML: {error}") from None
    for name in table:
        # Other programs may keep tables of theirs in the file; ours misspelt is a mistake.
        if name != "broker" and difflib.get_close_matches(name, ["broker"], 1, 0.7):
            raise ConfigError(
                f"[{name}]", "there is no such table; did you mean [broker]?", str(file)
            )
    broker = table.get("broker", {})
    if not isinstance(broker, dict):
        raise ConfigError(
            "broker", "must be a table: write [broker] on a line of its own", str(file)
        )
    return broker


def _unknown(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
    return f"there is no such setting; {hint}"


def _parse(item: dataclasses.Field[Any], value: str, source: str) -> Any:
    if item.type != "int":
        return value
    try:
        return int(value)
    except ValueError:
        raise ConfigError(item.name, f"{value!r} is not a whole number", source) from None


def _check(item: dataclasses.Field[Any], value: Any, source: str) -> Any:
    if item.type == "int":
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(item.name, f"{value!r} is not a whole number", source)
        least, most = item.metadata["least"], item.metadata["most"]
        if (least is not None and value < least) or (most is not None and value > most):
            top = "" if most is None else f" and at most {most}"
            raise ConfigError(item.name, f"{value} must be at least {least}{top}", source)
    elif not isinstance(value, str) or (not value and item.default):
        raise ConfigError(item.name, f"{value!r} is not a name or address", source)
    elif item.metadata["choices"] and value not in item.metadata["choices"]:
        known = ", ".join(item.metadata["choices"])
        raise ConfigError(item.name, f"{value!r} is not one of {known}", source)
    return value
