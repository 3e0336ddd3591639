"""Loops that answer messages, as real children; `test_processes.py` has the other side."""

from __future__ import annotations

import signal
import sys

import pytest

from hfreg.processes import Exited, Killed, Worker, clean_environment
from hfreg.wire import Message

LONG_S = 20.0

FORKING = """
import os, sys
from hfreg.wire import Message
from hfreg.workers import serve_forked

seen = []

def answer(message):
    seen.append(message.body)
    print("call", len(seen), file=sys.stderr, flush=True)
    if "signal" in message.body: os.kill(os.getpid(), message.body["signal"])
    if "status" in message.body: os._exit(message.body["status"])
    return Message({"seen": len(seen)}, message.arrays)

serve_forked(answer)
"""


def forking() -> Worker:
    return Worker([sys.executable, "-c", FORKING], env=clean_environment())


def test_a_fork_finds_nothing_of_the_one_before() -> None:
    with forking() as worker:
        for _ in range(3):
            answer = worker.ask(Message({}), timeout_s=LONG_S)
            assert isinstance(answer, Message)
            assert answer.body == {"seen": 1}


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, 40], ids=int)
def test_the_signal_that_ends_a_fork_ends_the_worker(number: int) -> None:
    with forking() as worker:
        assert worker.ask(Message({"signal": int(number)}), timeout_s=LONG_S) == Killed(number, "call 1")


def test_the_status_of_a_fork_is_that_of_the_worker_and_only_its_own_words_are_kept() -> None:
    with forking() as worker:
        assert isinstance(worker.ask(Message({}), timeout_s=LONG_S), Message)
        assert worker.ask(Message({"status": 3}), timeout_s=LONG_S) == Exited(3, b"", "call 1")
