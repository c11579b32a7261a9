"""What a pipeline can run into."""

from __future__ import annotations

from warren.errors.base import FileError, WarrenError


class PipelineError(FileError):
    """A pipeline file that can't be taken as it is; nothing was consumed."""


class PipelineStopped(WarrenError):
    """A pipeline that could not go on; the next run goes on from its last whole batch."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return (
            f"pipeline '{self.name}' stopped: {self.reason}; nothing is lost, the next run goes on "
            "from the last batch that was whole"
        )
