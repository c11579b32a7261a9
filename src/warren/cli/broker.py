"""``warren broker``: the embedded broker as a program."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from warren.config import BrokerConfig
from warren.errors import ListenError
from warren.management import api  # noqa: F401 - now, and not when Ctrl-C is on
from warren.server import http  # noqa: F401
from warren.server.broker import Broker
from warren.server.thread import run
from warren.store import sqlite  # noqa: F401

with suppress(ImportError):
    import uvloop  # noqa: F401

#: How long one thread may keep the interpreter while another wants it; Python's own is 5 ms.
SWITCH_INTERVAL_S = 0.0005


MANAGEMENT_PORT = (
    "port for the management HTTP API and /metrics; 0 takes any free one, -1 none (default: 10000 "
    "above the port, so 15672; 10000 below a port over 55535; any free one with --port 0)"
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "broker",
        help="run a RabbitMQ-compatible broker",
        description="Run a RabbitMQ-compatible broker until it is stopped (Ctrl-C, SIGTERM).",
    )
    for item in dataclasses.fields(BrokerConfig):
        names = ["--" + item.name.replace("_", "-")]
        if item.name == "data_dir":
            names.insert(0, "--data")
        parser.add_argument(
            *names,
            dest=item.name,
            type=int if item.type == "int" else str,
            metavar=item.name.upper().split("_")[-1],
            help=_help(item),
        )
    parser.add_argument("--config", metavar="FILE", help="TOML file with a [broker] table")
    parser.add_argument("--verbose", action="store_true", help="log what happens")
    parser.set_defaults(run=_run)


def _help(item: dataclasses.Field[Any]) -> str:
    if item.name == "management_port":  # whose default is another than in a program
        return MANAGEMENT_PORT
    return str(item.metadata["help"]) + (f" (default {item.default})" if item.default != "" else "")


def _run(options: argparse.Namespace) -> int:
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    names = [item.name for item in dataclasses.fields(BrokerConfig)]
    config = BrokerConfig.load(
        file=options.config,
        environment=os.environ,
        arguments={name: getattr(options, name) for name in names},
        defaults=_usual,
    )
    try:
        run(lambda: _serve(config))
    except ListenError as error:
        raise _by_option(error) from None
    return 0


def _by_option(error: ListenError) -> ListenError:
    """The same, with the settings as the command line knows them."""
    words = error.setting.split(" ")
    setting = " ".join(w if w == "or" else f"--{w.replace('_', '-')}" for w in words)
    return ListenError(error.host, error.port, error.reason, setting, error.remedy)


def _usual(given: Mapping[str, Any]) -> dict[str, Any]:
    """The management API beside the broker, 10000 above its port, as people run RabbitMQ.

    Above 55535 there is no such port: it is 10000 below then. Any free one goes with any free one.
    """
    port = given.get("port", BrokerConfig().port)
    if not port:
        return {"management_port": 0}
    return {"management_port": port + 10_000 if port <= 55_535 else port - 10_000}


async def _serve(config: BrokerConfig) -> None:
    # Millions of queued messages are no garbage: look for cycles seldom, and not among what the
    # start has made.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    # The store's thread has little to do at a time, and confirms wait for it.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with Broker(config=config) as broker:
        host = f"[{broker.host}]" if ":" in broker.host else broker.host
        tls = f", TLS on {host}:{broker.tls_port}" if broker.tls_port >= 0 else ""
        print(f"warren broker listens on {host}:{broker.port}{tls} (Ctrl-C stops it)", flush=True)
        urls = [url for url in (broker.management_url, broker.management_tls_url) if url]
        if urls:
            print(f"management API on {', '.join(f'{url}/api/' for url in urls)}", flush=True)
        await stop.wait()
        print("warren broker stops", flush=True)
