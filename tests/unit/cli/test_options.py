"""Where the server and the passwords come from, and that passwords are not shown."""

from __future__ import annotations

import argparse
import io
import sys

import pytest

from warren.cli import options
from warren.client.management import Management
from warren.errors import ConfigError


def given(**values: object) -> argparse.Namespace:
    defaults = {
        "url": None,
        "timeout_s": 10.0,
        "ca_file": None,
        "client_certificate": None,
        "client_key": None,
        "yes": False,
    }
    return argparse.Namespace(**{**defaults, **values})


def login(api: Management) -> str:
    return api._headers["Authorization"]


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARREN_URL", raising=False)
    monkeypatch.delenv("WARREN_PASSWORD", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))


def test_without_a_word_it_is_guest_on_this_machine() -> None:
    api = options.open_api(given())
    assert (api.address, api.user) == ("http://127.0.0.1:15672", "guest")


def test_the_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_URL", "https://alice:pw@rabbit")
    assert options.open_api(given()).address == "https://rabbit:15671"
    assert options.open_api(given(url="http://[::1]:80/x/")).address == "http://[::1]:80/x"


def test_the_password_comes_from_the_url_or_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_url = options.open_api(given(url="http://alice:p%40w@h"))
    monkeypatch.setenv("WARREN_PASSWORD", "p@w")
    in_environment = options.open_api(given(url="http://alice@h"))
    assert login(in_url) == login(in_environment)


def test_a_password_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "secret")
    asked = options.open_api(given(url="http://alice@h"))
    assert login(asked) == login(Management("http://alice:secret@h"))


def test_no_password_and_nobody_to_ask_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no password for user 'alice', and no terminal"):
        options.open_api(given(url="http://alice@h"))


def test_a_password_is_never_shown() -> None:
    api = Management("http://alice:secret@h")
    assert "secret" not in f"{api!r} {api} {api.address}"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("amqp://alice:secret@h", "amqp://h is where clients connect"),
        ("localhost:15672", "'localhost:15672' is not like"),
        ("http://alice:secret@h:port", "'http://h:port' is not like"),
        ("ftp://alice:secret@h", "'ftp://h' is not like"),
        ("http://", "'http://' is not like"),
        ("http://alice:secret@[::1", "'http://[::1' is not like"),
        ("http://alice:secret/secret@h", "'http://h' is not like"),
    ],
)
def test_a_url_that_is_none_is_told_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(ConfigError) as told:
        options.open_api(given(url=url))
    assert problem in str(told.value)
    assert "secret" not in str(told.value)


# -- new passwords -------------------------------------------------------------------------------
def test_a_new_password_is_the_first_line_of_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("s e\r\nmore\n"))
    assert options.new_password(given(password_stdin=True), "alice") == "s e"


@pytest.mark.parametrize("stdin", [True, False])
def test_no_new_password_is_an_error(stdin: bool) -> None:
    with pytest.raises(ConfigError, match="stdin"):
        options.new_password(given(password_stdin=stdin), "alice")


def test_two_different_new_passwords_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["one", "two"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(answers))
    with pytest.raises(ConfigError, match="not the same; nothing was changed"):
        options.new_password(given(password_stdin=False), "alice")


# -- questions -----------------------------------------------------------------------------------
@pytest.mark.parametrize(("answer", "yes"), [("y\n", True), ("\n", False), ("no\n", False)])
def test_a_question_needs_a_yes(monkeypatch: pytest.MonkeyPatch, answer: str, yes: bool) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert options.confirmed(given(), "delete?") is yes


def test_nobody_to_ask_is_an_error() -> None:
    assert options.confirmed(given(yes=True), "delete?")
    with pytest.raises(ConfigError, match="--yes"):
        options.confirmed(given(), "delete?")
