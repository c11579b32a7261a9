"""The command line when the server is not there, not well, or not a broker."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import warren
from warren.cli.main import main

Serve = Callable[[bytes | None], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that says one thing to whoever comes, and closes; None: it says nothing."""
    with ExitStack() as opened:

        def start(answer: bytes | None) -> str:
            listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
            if answer is not None:
                threading.Thread(target=say, args=(listener, answer), daemon=True).start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}"

        def say(listener: socket.socket, answer: bytes) -> None:
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(answer)

        yield start


def failure(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["queues", "list", "--url", url, *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch("warren: .+\n", err), err
    return err.removeprefix("warren: ").rstrip("\n")


def test_nothing_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert failure(f"http://127.0.0.1:{port}", capsys) == (
        f"nothing answers at http://127.0.0.1:{port} (Connection refused): start the broker "
        "there, or say where its management API is with --url or WARREN_URL"
    )


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("WARREN_COORDINATOR", "amqp://127.0.0.1:{port}"),
        ("WARREN_URL", "amqp://127.0.0.1:{port}"),
        ("WARREN_URL", "http://ann:secret@127.0.0.1:{beyond}"),
        (None, "amqp://127.0.0.1:{port}"),
    ],
)
def test_nothing_listens_where_dead_letters_should_be(
    variable: str | None,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = 1  # nobody listens there
    for name in ("WARREN_COORDINATOR", "WARREN_URL"):
        monkeypatch.delenv(name, raising=False)
    url = url.format(port=port, beyond=port + 10_000)
    if variable is not None:
        monkeypatch.setenv(variable, url)
    assert main(["dead-letters", "list", "billing", *([] if variable else ["--url", url])]) == 1
    told = capsys.readouterr().err
    assert re.fullmatch(r"warren: no broker answers at 127.0.0.1:1 .*: --url amqp://HOST.*\n", told)
    assert "secret" not in told


@pytest.mark.parametrize("host", ["warren.invalid", "a" * 64, "a..b"])
def test_there_is_no_such_host(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = failure(f"http://{host}", capsys)
    assert said.startswith(f"nothing answers at http://{host}:15672 (there is no host of")


def test_the_server_does_not_answer(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    url = serve(None)
    assert failure(url, capsys, "--timeout-s", "0.1") == (
        f"{url} has not answered within 0.1 s: --timeout-s gives it longer"
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"AMQP\x00\x00\x09\x01", "it speaks AMQP, not HTTP"),
        (b"220 mail.example ESMTP\r\n", "it does not speak HTTP"),
        (b"", "it closes the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "its answer is not JSON"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n[", "it does not speak HTTP"),
    ],
)
def test_it_is_no_management_api(
    serve: Serve, capsys: pytest.CaptureFixture[str], answer: bytes, told: str
) -> None:
    url = serve(answer)
    assert failure(url, capsys).startswith(f"{url} is no management API ({told}): give its address")


def test_it_speaks_no_tls(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    url = serve(b"HTTP/1.1 400 Bad Request\r\n\r\n").replace("http", "https")
    assert failure(url, capsys).startswith(f"{url} is no management API (it does not speak TLS)")


class _Closing(BaseHTTPRequestHandler):
    """Promises to keep the connection open, and closes it after each answer."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b'{"name": "guest"}' if "whoami" in self.path else b"[]"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Silence."""


def test_a_connection_that_the_server_closed_between_calls_is_opened_again() -> None:
    from warren.client.management import Management

    with HTTPServer(("127.0.0.1", 0), _Closing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with Management(f"http://127.0.0.1:{server.server_port}") as api:
                assert [api.get("whoami")["name"] for _ in range(3)] == ["guest"] * 3
        finally:
            server.shutdown()
            thread.join()


def test_who_reads_the_output_may_stop(serve: Serve) -> None:
    body = b'[{"name": "q"}]'
    url = serve(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "warren", "queues", "list", "--url", url]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m warren broker --help | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: warren broker")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_behind_the_output_is_told_in_one_line() -> None:
    with warren.Broker.in_thread(management_port=0) as broker:
        done = subprocess.run(
            f"{sys.executable} -m warren vhost list --url {broker.management_url} > /dev/full",
            shell=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
    told = "warren: standard output could not be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_output_that_is_closed_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m warren --version >&-",
        shell=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
