"""The command line against a running broker."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.brokers import TestBroker
from warren.cli.main import main


@dataclass(frozen=True)
class Said:
    """What a command has printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table without its heading; cells have no spaces in them here."""
        return [line.split() for line in self.out.splitlines()[1:]]


Cli = Callable[..., Said]


@pytest.fixture
def cli(
    broker: TestBroker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """Runs ``warren`` against the broker; fails on a traceback."""
    monkeypatch.setenv("WARREN_URL", broker.management)
    monkeypatch.delenv("WARREN_PASSWORD", raising=False)

    def run(*words: str, stdin: bytes = b"", **environment: str) -> Said:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(words)
        out, err = capsys.readouterr()
        for name in environment:
            monkeypatch.delenv(name)
        return Said(code, out, err)

    return run


@pytest.fixture
def refused(cli: Cli) -> Callable[..., str]:
    """Runs a command that must fail with 1 and one line, which it gives back."""

    def run(*words: str, code: int = 1, **options: Any) -> str:
        said = cli(*words, **options)
        assert (said.code, said.err.count("\n")) == (code, 1), said
        assert said.err.startswith("warren: ")
        return said.err.removeprefix("warren: ").rstrip("\n")

    return run


@pytest.fixture
def vhost(broker: TestBroker, name: Callable[[str], str]) -> Iterator[str]:
    """A vhost for the test alone."""
    made = name("cli")
    broker.add_vhost(made)
    yield made
    with suppress(Exception):  # the test may have deleted it
        broker.delete_vhost(made)
