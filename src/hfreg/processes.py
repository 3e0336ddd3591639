"""Child processes with limits and a deadline.

Whatever may crash, hang or misbehave (a compiler, an op package's Python, a kernel) runs in a child of its own session.
How it ended is a value that says so; nothing that a child does ends its parent.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from hfreg.errors import MachineError, RunError
from hfreg.wire import Message, dump, load

STDERR_TAIL = 2000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child process may use."""

    address_space_bytes: int | None = 8 << 30
    file_bytes: int | None = 64 << 20
    """The largest file that it may write."""
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Exited:
    """The process ended by itself."""

    status: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True)
class Killed:
    """A signal ended the process."""

    signal: int
    stderr: str

    def __str__(self) -> str:
        name = next((known.name for known in signal.Signals if known == self.signal), f"signal {self.signal}")
        return f"{name} ({signal.strsignal(self.signal)})"


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The process was killed at its deadline."""

    seconds: float
    stderr: str


Ending = Exited | Killed | TimedOut


def run(
    command: Sequence[str], *, stdin: bytes = b"", timeout_s: float, cwd: Path | None = None, env: Mapping[str, str]
) -> Ending:
    """Run a command to its end, or to the deadline.

    Raises:
        MachineError: it cannot be started.
    """
    with _start(command, cwd=cwd, env=env, stderr=subprocess.PIPE) as process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired as expired:
            _kill(process)
            return TimedOut(timeout_s, _tail(expired.stderr or b""))
    return _ending(process.returncode, stdout, _tail(stderr))


def python_command(module: str, *arguments: str) -> list[str]:
    """A command that runs a module of hfreg in this interpreter; neither the working folder nor a user site counts."""
    return [sys.executable, "-P", "-s", "-m", module, *arguments]


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment of child processes: the search paths and nothing that could change what they compute."""
    kept = ("PATH", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "OPENBLAS_CORETYPE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return environment | threads | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"} | extra


def apply_limits(limits: Limits) -> None:
    """Limit this process. A child calls it before it touches what it does not trust.

    A limit that is tighter already, since the system or the user has set it, stays.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    if limits.address_space_bytes is not None:
        _lower(resource.RLIMIT_AS, limits.address_space_bytes)
    if limits.file_bytes is not None:
        _lower(resource.RLIMIT_FSIZE, limits.file_bytes)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


class Worker:
    """A child process that answers messages. Use it as a context manager; leaving it ends the process."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, pass_fds: Sequence[int] = ()
    ) -> None:
        with contextlib.ExitStack() as opened:
            self._stderr = opened.enter_context(tempfile.TemporaryFile())
            self._process = _start(command, cwd=cwd, env=env, stderr=self._stderr, pass_fds=pass_fds)
            opened.pop_all()  # it is running: __exit__ closes what it uses
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    def ask(self, message: Message, *, timeout_s: float) -> Message | Ending:
        """Send a message and wait for the answer, or for the end of the process.

        Raises:
            RunError: the answer is no message.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._write(dump(message), deadline)
            return load(lambda count: self._read(count, deadline))
        except TimeoutError:
            return TimedOut(timeout_s, self._end())
        except (BrokenPipeError, EOFError):
            return self._ended(timeout_s, deadline)

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            _wait(self._to, select.POLLOUT, deadline)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._to, view) :]

    def _read(self, count: int, deadline: float) -> bytes:
        chunks: list[bytes] = []
        while count:
            _wait(self._from, select.POLLIN, deadline)
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(self._from, min(count, 1 << 20))
                if not chunk:
                    raise EOFError
                chunks.append(chunk)
                count -= len(chunk)
        return b"".join(chunks)

    def _ended(self, timeout_s: float, deadline: float) -> Ending:
        """How the process ended, once its end of a pipe is closed."""
        try:
            self._process.wait(max(0.5, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return TimedOut(timeout_s, self._end())
        return _ending(self._process.returncode, b"", self._end())

    def _end(self) -> str:
        if self._process.poll() is None:
            _kill(self._process)
        self._process.wait()
        self._stderr.seek(0)
        return _tail(self._stderr.read())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class WorkerPool:
    """Workers of one kind that wait for the next request; one that ended is not kept. Safe for several threads."""

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self._idle: list[Worker] = []

    def ask(self, message: Message, *, timeout_s: float) -> Message | Ending:
        """Have a worker answer a message; one is started where none is idle.

        A message may number its `call`, which the answer then repeats.

        Raises:
            RunError: the answer is no message, or one to another call.
        """
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = self._start()
        with contextlib.ExitStack() as ended:
            ended.push(worker)
            answer = worker.ask(message, timeout_s=timeout_s)
            if isinstance(answer, Message):
                if answer.body.get("call") != message.body.get("call"):
                    raise RunError("the answer is to another call: the process has forked, or wrote into its pipe")
                ended.pop_all()
                self._idle.append(worker)
        return answer

    def close(self) -> None:
        """End the workers that are idle."""
        while self._idle:
            self._idle.pop().__exit__(None, None, None)


def _start(
    command: Sequence[str],
    *,
    cwd: Path | None,
    env: Mapping[str, str],
    stderr: int | IO[bytes],
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    for pause_s in (0.1, 1.0, None):
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=cwd,
                env=dict(env),
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except BlockingIOError as error:  # no process to be had at the moment
            if pause_s is None:
                hint = "the machine runs too many processes; try again with fewer --jobs"
                raise MachineError(f"cannot start {command[0]}: {error.strerror}", hint=hint) from error
            time.sleep(pause_s)
        except OSError as error:
            raise MachineError(f"cannot start {command[0]}: {error.strerror}", hint="is it installed?") from error
    raise AssertionError


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _wait(descriptor: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not poll.poll(remaining * 1000):
        raise TimeoutError


def _ending(status: int, stdout: bytes, stderr: str) -> Ending:
    return Killed(-status, stderr) if status < 0 else Exited(status, stdout, stderr)


def _tail(data: bytes) -> str:
    return data[-STDERR_TAIL:].decode(errors="replace").strip()
