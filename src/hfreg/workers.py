"""The loops of child processes that answer messages on their standard streams.

Standard output is moved away first: what anybody prints goes to standard error, and cannot break the protocol.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import BinaryIO

from hfreg.wire import Message, dump, load

Answer = Callable[[Message], Message]


def serve(answer: Answer) -> None:
    """Answer messages until the parent closes the stream."""
    requests, answers = _streams()
    while True:
        answers.write(dump(answer(_next(requests))))
        answers.flush()


def serve_forked(answer: Answer) -> None:
    """Answer each message in a fork of this process, so none finds what another has left behind.

    What ends a fork ends this process in the same way; where none can be started it ends with EX_OSERR. Standard error
    holds what the latest fork wrote.
    """
    requests, answers = _streams()
    while True:
        request = _next(requests)
        with contextlib.suppress(OSError):  # a terminal has no length
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
        try:
            child = os.fork()
        except OSError as error:
            print(f"cannot start a process: {error.strerror}", file=sys.stderr)  # noqa: T201 - for the parent
            raise SystemExit(os.EX_OSERR) from error
        if child == 0:
            answers.write(dump(answer(request)))
            answers.flush()
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code < 0:
            with contextlib.suppress(OSError):  # SIGKILL has no handler
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        if code:
            raise SystemExit(code)


def _streams() -> tuple[BinaryIO, BinaryIO]:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return requests, answers


def _next(requests: BinaryIO) -> Message:
    def read(count: int) -> bytes:
        data = requests.read(count)
        if len(data) != count:
            raise SystemExit(0)
        return data

    return load(read)
