"""Data folders that can't be used."""

from __future__ import annotations

from warren.errors.base import WarrenError


class StoreError(WarrenError):
    """A data folder that can't be used as it is."""


class StoreDamaged(StoreError):
    """The store's file is not what warren wrote."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file, self.reason = file, reason

    def __str__(self) -> str:
        return (
            f"{self.file} is damaged or not a warren store ({self.reason}); nothing was changed. "
            "Restore it from a backup, or start with another data folder."
        )


class StoreInUse(StoreError):
    """Another broker has the data folder open."""

    def __init__(self, folder: str, holder: str) -> None:
        super().__init__(folder, holder)
        self.folder, self.holder = folder, holder

    def __str__(self) -> str:
        return (
            f"the data folder {self.folder} is in use by {self.holder}; stop it, or give this "
            "broker a folder of its own"
        )


class StoreUnusable(StoreError):
    """The data folder can't be made, read or written."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(folder, reason)
        self.folder, self.reason = folder, reason

    def __str__(self) -> str:
        return f"the data folder {self.folder} can't be used: {self.reason}"


class StoreTooNew(StoreError):
    """The data folder was written by another version."""

    def __init__(self, folder: str, found: int, known: int) -> None:
        super().__init__(folder, found, known)
        self.folder, self.found, self.known = folder, found, known

    def __str__(self) -> str:
        return (
            f"the data folder {self.folder} has format {self.found}, this warren knows format "
            f"{self.known}; nothing was changed. Use the version of warren that wrote it."
        )
