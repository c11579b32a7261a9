"""The documentation tells the truth: snippets run, links lead somewhere, nothing is left out."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import gc
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import warren
from tests.docs import pages
from tests.docs.pages import ROOT, Snippet
from tests.support.brokers import TestBroker
from tools import build_docs
from warren.config import BrokerConfig
from warren.server.faults import Faults
from warren.testing import FakeClock

REFERENCE = ROOT / "docs" / "reference"
SCRIPTS = [snippet for snippet in pages.snippets("python") if not snippet.is_test]
TESTS = [snippet for snippet in pages.snippets("python") if snippet.is_test]


# -- snippets ------------------------------------------------------------------------------------
@pytest.mark.parametrize("snippet", SCRIPTS, ids=str)
def test_a_snippet_prints_what_its_page_says(
    snippet: Snippet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(snippet)
    assert capsys.readouterr().out.splitlines() == snippet.expected


@pytest.mark.parametrize("broker", ["rabbitmq"], indirect=True)
@pytest.mark.parametrize("snippet", [each for each in SCRIPTS if each.is_portable], ids=str)
def test_a_snippet_prints_the_same_on_rabbitmq(
    snippet: Snippet,
    broker: TestBroker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with own_vhost(broker) as vhost:
        monkeypatch.setattr(warren, "Broker", stand_in(broker.url + quote(vhost, safe="")))
        run(snippet)
    printed = capsys.readouterr().out.replace(f"'{vhost}'", "'/'")
    assert printed.splitlines() == snippet.expected


def run(snippet: Snippet) -> None:
    with warnings.catch_warnings():
        # A page need not close its connections, and pika's own leave sockets to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        exec(snippet.compiled(), {"__name__": "__main__"})
        gc.collect()


@contextmanager
def own_vhost(broker: TestBroker) -> Iterator[str]:
    """A vhost for one snippet: they all name their queues alike."""
    name = f"docs-{os.getpid()}"
    broker.add_vhost(name)
    try:
        yield name
    finally:
        broker.delete_vhost(name)


def stand_in(at: str) -> type:
    """Takes the place of ``warren.Broker``: nothing is started, ``url`` leads elsewhere."""

    class StandIn:
        url = at

        def __init__(self, **settings: Any) -> None:
            """Whatever the settings, it is the broker it is."""

        @classmethod
        @contextmanager
        def in_thread(cls) -> Iterator[StandIn]:
            yield cls()

        async def __aenter__(self) -> StandIn:
            return self

        async def __aexit__(self, *_: object) -> None:
            """Somebody else ends it."""

    return StandIn


@pytest.mark.parametrize("snippet", TESTS, ids=str)
def test_a_test_on_a_page_passes(snippet: Snippet, tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text(snippet.code)
    installed = any(point.value == "warren.testing.plugin" for point in entry_points(name="warren"))
    plugin = [] if installed else ["-p", "warren.testing.plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("snippet", pages.snippets("toml"), ids=str)
def test_a_settings_file_on_a_page_can_be_loaded(snippet: Snippet, tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text(snippet.code)
    assert BrokerConfig.load(file=file) != BrokerConfig()


@pytest.mark.parametrize("snippet", pages.snippets("sh"), ids=str)
def test_a_command_on_a_page_exists(snippet: Snippet) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in snippet.code.splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"\w+=.*", words[0]):  # variables in front
            words.pop(0)
        if words[:1] == ["make"]:
            assert {word for word in words[1:] if "=" not in word} <= targets
        elif words[:1] == ["warren"]:
            build_docs.command_line().parse_args(words[1:])


def test_the_readme_names_the_python_that_make_sets_up() -> None:
    """The system's own has none of what tests and benchmarks need."""
    text = " ".join((ROOT / "README.md").read_text().split())
    named = re.findall(r"`(\S*) -m (?:bench|tests)\b", text)
    assert set(named) == {".venv/bin/python"}


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_code_gives_addresses_by_a_name_that_spark_hides(page: Path) -> None:
    """``uri`` is shown in the plans of a session that warren did not make."""
    assert not re.findall(r"""\.option\(["']uri["'].*""", page.read_text())


# -- the reference -------------------------------------------------------------------------------
@pytest.mark.timeout(300)  # it collects the whole contract suite
def test_generated_pages_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "build_docs.py"), "--check"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stdout


OPTIONS = [
    (command, action)
    for command, parser in build_docs.commands(build_docs.command_line())
    for action in build_docs.options(parser)
]


@pytest.mark.parametrize(
    ("command", "action"), OPTIONS, ids=[f"{c} {build_docs.spelled(a)}" for c, a in OPTIONS]
)
def test_a_command_and_its_option_are_documented(command: str, action: argparse.Action) -> None:
    page = (REFERENCE / "cli.md").read_text()
    section = page.partition(f"\n## `{command}`\n")[2].partition("\n## ")[0]
    assert f"`{build_docs.spelled(action)}" in section
    assert action.help


@pytest.mark.parametrize("field", dataclasses.fields(BrokerConfig), ids=lambda field: field.name)
def test_a_setting_is_documented(field: dataclasses.Field[Any]) -> None:
    assert f"`{field.name}`" in (REFERENCE / "settings.md").read_text()
    assert f"`{field.name}`" in (ROOT / "docs" / "guide" / "settings.md").read_text()


MEMBERS = [
    f"{cls.__name__}.{name}"
    for cls in (warren.Broker, BrokerConfig, Faults, FakeClock)
    for name in vars(cls)
    if not name.startswith("_") and name != "runs"
]


@pytest.mark.parametrize("member", MEMBERS)
def test_a_public_member_is_in_the_reference(member: str) -> None:
    owner, _, name = member.partition(".")
    page = (REFERENCE / "api.md").read_text()
    section = re.search(rf"^## `[\w.]*{owner}\b.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert re.search(rf"`{name}\b", section[0])


# -- links ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in pages.links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in pages.anchors(target), link


@pytest.mark.parametrize(
    "page", [p for p in pages.PAGES if p.is_relative_to(ROOT / "docs")], ids=pages.name_of
)
def test_a_page_is_in_the_table_of_contents(page: Path) -> None:
    contents = ROOT / "docs" / "README.md"
    links = pages.links(contents)
    listed = {(contents.parent / link.partition("#")[0]).resolve() for link in links}
    assert page in listed or page == contents


# -- flows ---------------------------------------------------------------------------------------
INTERNALS = sorted((ROOT / "docs" / "internals").glob("*.md"))


def names(page: str) -> list[str]:
    """What stands in backticks, in one line each however it is broken."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    return [" ".join(name.split()) for name in re.findall(r"`([^`]+)`", text)]


def hops(page: str) -> list[tuple[str, str]]:
    """File and name of each function, class or attribute that a page leads to."""
    found = [re.fullmatch(r"([\w/]+\.py): ([\w., ]+)", name) for name in names(page)]
    return [(hop[1], name) for hop in found if hop for name in hop[2].split(", ")]


HOPS = sorted({hop for page in INTERNALS for hop in hops(page.read_text())})


@pytest.mark.parametrize(("file", "name"), HOPS, ids=lambda part: part)
def test_a_hop_of_a_flow_is_in_the_source(file: str, name: str) -> None:
    scope: list[ast.stmt] = ast.parse((ROOT / "src" / "warren" / file).read_text()).body
    *owners, last = name.split(".")
    for word in owners:
        found = [node for node in scope if getattr(node, "name", None) == word]
        assert found, f"{file} has no {name}"
        scope = getattr(found[0], "body", [])
    defined = {getattr(node, "name", None) for node in scope}
    assert last in defined | (attributes(scope) if owners else set()), f"{file} has no {name}"


def attributes(scope: list[ast.stmt]) -> set[str | None]:
    """What the methods of a class set on ``self``."""
    every = [node for each in scope for node in ast.walk(each) if isinstance(node, ast.Attribute)]
    return {node.attr for node in every if isinstance(node.ctx, ast.Store)}


@pytest.mark.parametrize("page", INTERNALS, ids=pages.name_of)
def test_a_method_of_a_flow_is_named_with_its_file(page: Path) -> None:
    alone = [name for name in names(page.read_text()) if re.fullmatch(r"_?[A-Z]\w*\.\w+", name)]
    assert alone == []


def test_a_hop_that_is_broken_over_a_line_is_seen() -> None:
    assert hops("so `a/b.py:\n   C.d, C.e` and `C.f`") == [("a/b.py", "C.d"), ("a/b.py", "C.e")]
