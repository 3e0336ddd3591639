"""Files that are written whole or not at all, and a lock between processes.

A reader never sees half a file: content goes to a temporary file beside the target, is flushed to the disk, and takes
the target's name in one rename.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from hfreg.errors import MachineError

TEMPORARY_PREFIX = ".tmp-"


def kind_of(path: Path) -> Literal["file", "folder", "other", "nothing"]:
    """What a path names. What the system refuses to look at (a name too long, a loop of links) counts as nothing."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return "nothing"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def read_plain(path: Path, *, limit: int) -> bytes:
    """Read a file that somebody else may have put there: no pipe or device is waited for, and memory has a bound.

    Raises:
        OSError: it is not there, no plain file, or larger than `limit` bytes.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        content = file.read(limit + 1) if status.st_size <= limit else b""
        if (size := max(status.st_size, len(content))) > limit:
            raise OSError(errno.EFBIG, f"it has {size} bytes, expected at most {limit}", str(path))
        return content


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
    """Write a file in one step; after a crash the path holds the old content or the new, never a mixture.

    Args:
        path: the file.
        content: its bytes; they are on the disk before the name is.
        mode: permissions of a new file.
        sync: whether the name is on the disk too; without it, the caller syncs the folder after several files.

    Raises:
        MachineError: the disk is full or the folder cannot be written.
    """
    temporary = path.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    with writing(path):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if sync:
            sync_folder(path.parent)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system refuses while a path is written is a fault of the machine.

    Raises:
        MachineError: the disk is full, or the path cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise MachineError(
            f"cannot write: {error.strerror}", where=str(path), hint="check the free space and the permissions"
        ) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> int:
    """Delete temporary files that a killed writer left. Call it only while holding the lock of the folder."""
    leftovers = [path for path in folder.rglob(f"{TEMPORARY_PREFIX}*") if path.is_file()]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


@contextlib.contextmanager
def locked(path: Path, *, purpose: str, timeout_s: float = 60.0) -> Iterator[None]:
    """Hold an exclusive lock on a file, which names its holder. The kernel releases it when the holder dies.

    Raises:
        MachineError: somebody else holds it for longer than `timeout_s`, or the file cannot be written.
    """
    with writing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, timeout_s)
        with writing(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}: {purpose}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                raise MachineError(f"cannot lock: {error.strerror}", where=str(path)) from error
        if time.monotonic() >= deadline:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            raise MachineError(
                f"still locked after {timeout_s:g} s by {holder}",
                where=str(path),
                hint="wait for it, or end that process if it hangs; the lock goes with its holder",
            )
        time.sleep(0.05)
