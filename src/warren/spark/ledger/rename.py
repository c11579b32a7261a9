"""A rename that never replaces: for file systems on which a file has one name only."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

#: Linux: with the path's own folder, not to replace.
_HERE, _NO_REPLACE = -100, 1


class NoSafeRename(Exception):
    """A file that is there can't be kept from being replaced here."""


def rename_new(source: Path, target: Path) -> bool:
    """Give a file its name in one step; False if the name is taken.

    Raises NoSafeRename where the system, or the file system, knows no such step.
    """
    try:
        _rename(source, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise NoSafeRename from None
        raise
    return True


def _rename(source: Path, target: Path) -> None:
    if sys.platform == "win32":
        os.rename(source, target)  # here it does not replace
        return
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        raise NoSafeRename
    if renameat2(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _NO_REPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(target))
