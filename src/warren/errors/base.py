"""The root of the tree, and what any part can run into."""

from __future__ import annotations


class WarrenError(Exception):
    """Base of everything below."""


class ConfigError(WarrenError):
    """A setting that can't be used, and what to do about it."""

    def __init__(self, option: str, problem: str, source: str = "argument") -> None:
        super().__init__(option, problem, source)
        self.option, self.problem, self.source = option, problem, source

    def __str__(self) -> str:
        return f"{self.option} ({self.source}): {self.problem}"


class UsageError(WarrenError):
    """A command line that makes no sense."""

    def __init__(self, command: str, problem: str) -> None:
        super().__init__(command, problem)
        self.command, self.problem = command, problem

    def __str__(self) -> str:
        return f"{self.problem} ('{self.command} --help' shows how)"


class FileError(WarrenError):
    """A file that people write and that can't be taken as it is; names the line, 0 for none."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(file, line, problem)
        self.file, self.line, self.problem = file, line, problem

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.problem}"


class ListenError(WarrenError):
    """The broker could not listen where it was told to.

    ``remedy`` has a place for the name of the ``setting`` to change.
    """

    def __init__(
        self, host: str, port: int, reason: str, setting: str = "", remedy: str = ""
    ) -> None:
        super().__init__(host, port, reason, setting, remedy)
        self.host, self.port, self.reason = host, port, reason
        self.setting, self.remedy = setting, remedy

    def __str__(self) -> str:
        remedy = f" ({self.remedy.format(self.setting)})" if self.remedy else ""
        return f"can't listen on {self.host}:{self.port}: {self.reason}{remedy}"


class NotStarted(WarrenError):
    """A broker was asked for what it knows only while it runs."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"the broker has not started, so its {self.what} is not known yet: ask inside "
            "'async with Broker(port=0) as broker', or 'with Broker.in_thread() as broker'"
        )


class BrokerStopped(WarrenError):
    """A broker was told to do something after its end."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.host, self.port = host, port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"the broker at {host}:{self.port} has stopped: do this inside its 'with' block"


#: What RabbitMQ's HTTP API calls by a code, for people.
_WORDS = {
    "no_such_user": "there is no user '{}'",
    "no_such_vhost": "there is no virtual host '{}'",
}


class AdminError(WarrenError):
    """A change of users, virtual hosts, permissions or limits that can't be made.

    ``kind`` is ``not_found`` or ``bad_request``, as in RabbitMQ's HTTP API.
    """

    def __init__(self, kind: str, text: str, detail: str = "") -> None:
        super().__init__(kind, text, detail)
        self.kind, self.text, self.detail = kind, text, detail

    @property
    def reason(self) -> str | list[str]:
        """What RabbitMQ's HTTP API gives as its reason."""
        return [self.text, self.detail] if self.detail else self.text

    def __str__(self) -> str:
        if self.text in _WORDS:
            return _WORDS[self.text].format(self.detail)
        return f"{self.text}: {self.detail}" if self.detail else self.text


class ProtocolError(WarrenError):
    """Bytes that can't be read as AMQP 0-9-1."""
