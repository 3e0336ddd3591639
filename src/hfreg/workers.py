"""The loop of a child process that answers messages on its standard streams.

Standard output is moved away first: what anybody prints goes to standard error, and cannot break the protocol.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from hfreg.wire import Message, dump, load


def serve(answer: Callable[[Message], Message]) -> None:
    """Answer messages until the parent closes the stream."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def read(count: int) -> bytes:
        data = requests.read(count)
        if len(data) != count:
            raise SystemExit(0)
        return data

    while True:
        answers.write(dump(answer(load(read))))
        answers.flush()
