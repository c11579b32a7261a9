"""What a pipeline can run into."""

from __future__ import annotations

from warren.errors.base import FileError, WarrenError


class PipelineError(FileError):
    """A pipeline file that can't be taken as it is; nothing was consumed."""


class PipelineStopped(WarrenError):
    """A pipeline that could not go on.

    ``goes_on``: the next run goes on from the last whole batch, and nothing is lost. Otherwise the
    reason says what is to be done first, or what can't be had any more.
    """

    def __init__(self, name: str, reason: str, goes_on: bool = True) -> None:
        super().__init__(name, reason, goes_on)
        self.name, self.reason, self.goes_on = name, reason, goes_on

    def __str__(self) -> str:
        more = "; nothing is lost, the next run goes on from the last batch that was whole"
        return f"pipeline '{self.name}' stopped: {self.reason}{more if self.goes_on else ''}"
